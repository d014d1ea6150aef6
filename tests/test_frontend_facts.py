"""The sizes of published configs of front ends, as the programs compose them, compared with the values that preflight
reads."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import preflight
from preflight.job import Job

OWN = Path(__file__).parent / "frontend_facts.jsonl"
"""20 scripts each of ms-swift and slime, with the sizes that their text has (options as typed, the last one wins)."""
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "frontend-facts.jsonl.gz"
MIRRORS = Path(os.environ.get("PREFLIGHT_UPSTREAM", "/nowhere"))
BAR = 0.97
ARGUMENTS = {
    "vpp": "num_virtual_stages_per_pipeline_rank",
    "sequence_parallel": "sequence_parallel",
    "rollout_tp": "rollout_tensor_model_parallel_size",
    "lr": "lr",
    "param_offload": "engine_param_offload",
    "tokens_per_gpu": "ppo_max_token_len_per_gpu",
    "dynamic": "use_dynamic_bsz",
    "mini_batch": "ppo_mini_batch_size",
    "prompts": "train_batch_size",
    "global_batch": "global_batch_size",
    "micro_batch": "train_micro_batch_size",
    "length": "seq_length",
    "packing": "sequence_packing_enabled",
    "micro_size": "micro_batch_size",
    "samples_a_step": "global_batch_size",
    "rollout_prompts": "rollout_batch_size",
    "dynamic_size": "use_dynamic_batch_size",
    "tokens_a_gpu": "max_tokens_per_gpu",
}


def read(job: Job, fact: str) -> Any:
    """The value that preflight reads for a fact, None if unknown."""
    layout = job.plan.layout
    own = {"tp": layout.tensor, "pp": layout.pipeline, "cp": layout.context, "ep": layout.expert, "dp": layout.data}
    if fact == "world":
        return job.cluster.count.raw if job.cluster.count.known else None
    if fact == "samples":
        prompts, each = job.arguments.get("train_batch_size"), job.arguments.get("rollout_n")
        return prompts.raw * each.raw if prompts.known and each.known else None
    if fact == "rollout_samples":
        prompts, each = job.arguments.get("rollout_batch_size"), job.arguments.get("n_samples_per_prompt")
        return prompts.raw * each.raw if prompts.known and each.known else None
    value = own.get(fact) or job.arguments.get(ARGUMENTS[fact])
    return value.raw if value.known else None


def shown(repo: str, tag: str, path: str) -> str | None:
    """A file at a tag, None if the repository is missing."""
    folder = MIRRORS / repo / "repo"
    if not folder.is_dir():
        return None
    done = subprocess.run(["git", f"--git-dir={folder}", "show", f"{tag}:{path}"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def put(row: dict[str, Any], top: Path) -> Path | None:
    """A file with the parents that it names, below a folder."""
    left = [row["path"]]
    while left:
        path = os.path.normpath(left.pop())
        text = shown(row["repo"], row["tag"], path)
        if text is None or (top / path).exists():
            continue
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")
        if path.endswith(".yaml"):
            left += [os.path.join(os.path.dirname(path), name) for name in parents(text)]
    return top / row["path"] if (top / row["path"]).exists() else None


def parents(text: str) -> list[str]:
    """The parents that a config names."""
    import yaml

    named = (yaml.safe_load(text) or {}).get("defaults") or []
    return [str(one) for one in (named if isinstance(named, list) else [named]) if isinstance(one, str)]


@pytest.mark.skipif(not SHARED.exists(), reason="the facts are not beside this checkout")
@pytest.mark.skipif(not MIRRORS.is_dir(), reason="PREFLIGHT_UPSTREAM names no folder of repositories")
def test_sizes_are_those_that_the_programs_compose(tmp_path: Path) -> None:
    with gzip.open(SHARED, "rt", encoding="utf-8") as lines:
        compare([json.loads(line) for line in lines], tmp_path)


@pytest.mark.skipif(not MIRRORS.is_dir(), reason="PREFLIGHT_UPSTREAM names no folder of repositories")
def test_sizes_are_those_that_scripts_type(tmp_path: Path) -> None:
    compare([json.loads(line) for line in OWN.read_text(encoding="utf-8").splitlines()], tmp_path)


def compare(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """Compare the values with the required share."""
    wrong, unknown, right = [], [], 0
    for number, row in enumerate(rows):
        top = tmp_path / str(number)
        top.mkdir()
        (top / "setup.py").touch()  # the top of a checkout
        file = put(row, top)
        if file is None:
            continue
        report = preflight.check([str(file)], target=row["target"])
        assert not report.crashes, report.crashes[0].trace
        for fact, true in row["facts"].items():
            found = read(report.jobs[0], fact) if report.jobs else None
            if found == true:
                right += 1
            else:
                (unknown if found is None else wrong).append(f"{row['path']}: {fact} {true}, read {found}")
    count = right + len(wrong) + len(unknown)
    assert right >= BAR * count, f"{right} of {count}\n" + "\n".join([*wrong, "not known:", *unknown])
