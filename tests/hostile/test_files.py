"""Special files, and files that must not be opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import COMMAND, EVIL, GRAPH, check

from preflight.api import installed
from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, judge
from preflight.loaders import load
from preflight.source.source_file import InputError, Source

pytestmark = pytest.mark.usefixtures("quick")


def preflight(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "preflight", *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["check", "fix"])
def test_what_is_not_a_regular_file(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / ("x" * 200 + ".yaml")).mkdir()
    for name in ("pipe.yaml", "loop.yaml", "gone.yaml", "/dev/zero", "a" * 5000, "nul\\0.yaml", f"{EVIL}.yaml"):
        done = preflight(command, name, cwd=tmp_path)
        assert done.returncode == 2, (name, done)
        assert (
            done.stderr.startswith("preflight: ")
            and "Traceback" not in done.stderr
            and "\x1b" not in done.stderr + done.stdout
        ), name


def test_a_folder_of_links_and_pipes_is_walked_without_opening_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / "run.yaml").write_text(GRAPH)
    done = preflight("check", ".", "--output-format", "concise", "--world-size", "8", cwd=tmp_path)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "run.yaml", "wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    done = preflight("check", "run.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "are not read" in done.stderr


NAMING = {
    "source.sh": f"#!/bin/bash\nsource secret.sh\n. ../secret.sh\nsource /etc/passwd\n{COMMAND}\n",
    "config.sh": "#!/bin/bash\npython run_mindformer.py --config secret.yaml --run_mode train\n",
    "launcher.sh": '#!/bin/bash\nbash msrun_launcher.sh "run_mindformer.py --config secret.yaml" 8\nbash secret.sh\n',
    "layers.sh": f"#!/bin/bash\n{COMMAND} --yaml-cfg secret.yaml --config-yaml secret.yaml --load secret\n",
    "ranks.sh": "#!/bin/bash\nexport RANK_TABLE_FILE=secret.json\npython run_mindformer.py --config secret.yaml\n",
    "tokens.sh": "#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model {folder}\n",
    "parents.yaml": "defaults: [secret.yaml, '{folder}/secret.yaml']\npolicy: {megatron_cfg: {enabled: true}}\n",
    "base.yaml": f"base_config: secret.yaml\npretrained_model_dir: {{folder}}\n{GRAPH}",
}


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("name", NAMING)
def test_the_gate_opens_nothing_that_a_submission_names(
    name: str, follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("secret.sh", "secret.yaml", "secret.json", "config.json"):
        (tmp_path / other).write_text("HIDDEN=1\n")
    monkeypatch.setenv("PREFLIGHT_CACHE_DIR", "")  # a file of the cache has such a name, too
    monkeypatch.chdir(tmp_path)
    load(Source(GRAPH, "warm.yaml"))
    installed().rules(None)
    judge(Submission(NAMING["source.sh"].encode(), "warm.sh"), installed(), Policies())
    opened: list[str] = []
    watching = True

    def watch(event: str, given: tuple[object, ...]) -> None:
        if (
            watching
            and event == "open"
            and ("secret" in str(given[0]) or "config.json" in str(given[0]) or "passwd" in str(given[0]))
        ):
            opened.append(str(given[0]))

    sys.addaudithook(watch)
    verdict = judge(
        Submission(NAMING[name].replace("{folder}", str(tmp_path)).encode(), name), installed(), Policies(follow=follow)
    )
    watching = False
    assert verdict.code in (0, 1) and not opened


def test_a_script_sources_only_from_its_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "outside.sh").write_text("TP=3\n")
    (inner / "link.sh").symlink_to(tmp_path / "outside.sh")
    for name in ("../outside.sh", str(tmp_path / "outside.sh"), "link.sh"):
        (document,) = load(
            Source(
                f"#!/bin/bash\nsource {name}\n{COMMAND} --tensor-model-parallel-size $TP\n",
                "run.sh",
                path=inner / "run.sh",
            )
        )
        assert document.also == ()
        assert document.launch is not None and document.launch.words[-1].text != "3"


@pytest.mark.slow
def test_a_script_sources_only_from_its_checkout(tmp_path: Path) -> None:
    inner = tmp_path / "checkout" / "scripts"
    (inner / "deep").mkdir(parents=True)
    (tmp_path / "checkout" / "setup.py").touch()
    (tmp_path / "outside.sh").write_text("TP=3\n")
    (tmp_path / "checkout" / "inside.sh").write_text("TP=3\n")
    (tmp_path / "checkout" / "link.sh").symlink_to(tmp_path / "outside.sh")
    (inner / "deep" / "first.sh").write_text('source "$(dirname "${BASH_SOURCE[0]}")/second.sh"\n')
    (inner / "deep" / "second.sh").write_text("TP=3\n")

    def found(name: str, *options: str) -> bool:
        text = f"#!/bin/bash\nsource {name}\n{COMMAND} --tensor-model-parallel-size $TP\n"
        (inner / "run.sh").write_text(text)
        return "not a multiple of tensor 3" in preflight("check", *options, "run.sh", cwd=inner).stdout

    for name in ("../inside.sh", "/elsewhere/checkout/inside.sh", "$TOP/scripts/deep/second.sh", "deep/first.sh"):
        assert found(name), name
    for name in (
        "../../outside.sh",
        str(tmp_path / "outside.sh"),
        "../link.sh",
        "/elsewhere/other/inside.sh",
        "$HOME/inside.sh",
    ):
        assert not found(name), name
    assert not found("../inside.sh", "--isolated")


def test_a_base_that_names_itself_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "run.yaml").write_text("base_config: run.yaml\n" + GRAPH)
    for name in ("run.yaml", "pipe.yaml", "/dev/zero", "a" * 5000, "nul\0"):
        text = f'base_config: "{name}"\n{GRAPH}'.replace("\0", "\\0")
        try:
            check(text, "run.yaml", tmp_path)
        except InputError as error:
            assert "run.yaml" in str(error)
