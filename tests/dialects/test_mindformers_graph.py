"""Graph-mode MindFormers: distinguishing releases, inheritance, overrides, and the recorded results of the real
code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pairs import loaded

import preflight
from preflight import schemas
from preflight.dialects import Surroundings
from preflight.dialects.mindformers import MindFormersDialect
from preflight.dialects.mindformers.config_kind_and_loading import kind_of
from preflight.dialects.mindformers.graph_config import read_graph
from preflight.dialects.mindformers.json_schema import VERSIONS, files
from preflight.dialects.mindformers.release_tables import table
from preflight.loaders.yaml import load_yaml
from preflight.run.request import Request, Target
from preflight.run.value import derived
from preflight.source.source_file import Source

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
needs_labels = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded results of the real code are not here")


def reading(text: str, version: str = "", **overrides: object) -> Any:
    document = load_yaml(Source(text, "run.yaml"))
    request = Request(world_size=8, target=Target("mindformers", version) if version else None)
    surroundings = Surroundings(request, lambda document, name: None, lambda name: None)
    return read_graph(
        document, surroundings, {name.replace("__", "."): derived(value) for name, value in overrides.items()}
    )


def test_the_kind_is_told_by_content() -> None:
    texts = {
        "parallel_config: {data_parallel: 1}\nmodel: {model_config: {type: LlamaConfig}}": "legacy",
        "parallel_config: {data_parallel: 1}\nuse_legacy: False": "mcore",
        "training: {steps: 1}\nparallelism: {tensor_parallel: 1}": "pynative",
        (
            "parallelism: {tensor_parallel: 2}\nparallel_config: {data_parallel: 1}\n"
            "model: {model_config: {type: LlamaConfig}}"
        ): "legacy",
    }
    for text, kind in texts.items():
        tree = load_yaml(Source(text, "run.yaml")).tree
        assert tree is not None
        assert kind_of(tree) == kind


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("model: {model_config: {type: LlamaConfig}}\nparallel_config: {data_parallel: 1}", "2.1.0"),
        ("model: {model_config: {type: GPT2Config}}\nparallel_config: {data_parallel: 1}", "1.5.0"),
        ("model: {model_config: {type: LlamaConfig}}\nrunner_config: {image_size: 224}", "1.3.2"),
        ("model: {model_config: {type: LlamaConfig}}\nparallel_config: {data_paralel: 1}", "2.1.0"),
    ],
)
def test_without_a_target_the_newest_release_that_fits_is_taken(text: str, version: str) -> None:
    assert reading(f"run_mode: train\n{text}").target.version == version


def test_a_base_config_lies_below_and_keeps_its_places(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "run_mode: train\nuse_parallel: True\nparallel_config:\n  data_parallel: 4\n  model_parallel: 2\n"
    )
    (tmp_path / "run.yaml").write_text(
        "base_config: base.yaml\nparallel_config: {data_parallel: 2}\nmodel: {model_config: {type: LlamaConfig}}\n"
    )
    report = preflight.check(tmp_path / "run.yaml", world_size=8, target="mindformers@1.5.0")
    assert report.plan is not None
    assert (report.plan.layout.data.raw, report.plan.layout.tensor.raw) == (2, 2)
    tensor = report.plan.layout.tensor
    assert tensor.span is not None
    assert (Path(tensor.span.path).name, tensor.span.line) == ("base.yaml", 5)


def test_overrides_of_the_launch_win_over_the_file() -> None:
    text = (
        "run_mode: train\nuse_parallel: False\nparallel_config: {data_parallel: 8}\n"
        "model: {model_config: {type: LlamaConfig}}\n"
    )
    plan = reading(text, "1.5.0", use_parallel=True, parallel_config__model_parallel=2).plan
    assert (plan.layout.data.raw, plan.layout.tensor.raw) == (8, 2)


def test_gradient_accumulation_and_micro_batches_take_turns() -> None:
    text = (
        "run_mode: train\nuse_parallel: True\nrunner_config: {{batch_size: 2, gradient_accumulation_steps: 4}}\n"
        "parallel_config: {{{}}}\n"
    )
    piped = reading(text.format("data_parallel: 4, pipeline_stage: 2, micro_batch_num: 8"), "1.5.0")
    flat = reading(text.format("data_parallel: 8, micro_batch_num: 8"), "1.5.0")
    assert (piped.plan.batch.total.raw, flat.plan.batch.total.raw) == (2 * 4 * 8, 2 * 8 * 4)
    assert [switch.name for switch in piped.arguments.switches] == ["runner_config.gradient_accumulation_steps"]


def test_the_dialect_lists_its_releases_newest_first() -> None:
    assert MindFormersDialect().targets[0] == Target("mindformers", "2.1.0")


def test_written_schemas_are_what_the_tables_say() -> None:
    for name, text in files().items():
        assert schemas.text(f"mindformers/json/{name}") == text, f"{name} is stale: write it again"
        jsonschema.Draft7Validator.check_schema(json.loads(text))


@pytest.mark.slow
@needs_labels
@pytest.mark.parametrize("version", VERSIONS["legacy"][3:])
def test_schemas_and_checks_agree_on_strict_sections(version: str) -> None:
    validators = {
        kind: jsonschema.Draft7Validator(json.loads(files()[f"{kind}-{version}.json"]))
        for kind in VERSIONS
        if version in VERSIONS[kind]
    }
    checked = 0
    for path in sorted((SHARED / "corpus" / "mindformers" / f"v{version}").rglob("*.yaml")):
        report = preflight.check(path, target=f"mindformers@{version}")
        kind = report.jobs[0].arguments.get("kind").raw if report.jobs else None
        if kind not in validators:
            continue
        mode = report.jobs[0].arguments.get("run_mode").raw
        strict = [
            s
            for s in table(version).strict
            if mode in ("train", "finetune") or s in ("parallel_config", "moe_config", "runner_config")
        ]
        errors = validators[kind].iter_errors(loaded(path))
        theirs = {str(e.path[0]) for e in errors if e.validator == "additionalProperties" and e.path[0] in strict}
        ours = {
            str(f.key[0])
            for f in report.findings
            if f.rule == "unknown-key" and f.severity == "error" and f.key[0] in strict
        }
        assert theirs == ours, path
        checked += 1
    assert checked


@pytest.mark.slow
@needs_labels
def test_layers_and_batch_are_as_the_real_code_has_them() -> None:
    right = wrong = 0
    for line in (SHARED / "oracle" / "mindformers.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("dialect") == "pynative" or not row["accept"]:
            continue
        text = row["yaml"].replace("hf/", f"{SHARED / 'oracle' / 'hf'}/")
        plan = preflight.check_text(
            text, name=Path(row["base"]).name, world_size=row["world_size"], target=f"mindformers@{row['tag'][1:]}"
        ).plan
        assert plan is not None
        for got, want in compared(plan, row):
            right, wrong = right + (got == want), wrong + (got != want)
    assert right / (right + wrong) >= 0.99


def compared(plan: Any, row: dict[str, Any]) -> list[tuple[object, object]]:
    """Pairs of planned and recorded values."""
    pairs: list[tuple[object, object]] = []
    if row["layering"]:
        pairs.append(([list(stage) for stage in plan.layout.stages.raw], row["layering"]["layers_per_stage"]))
        pairs.append((plan.layout.virtual.raw or 1, row["layering"]["pp_interleave_effective"]))
    if isinstance(row["global_batch_size"], int):
        pairs.append((plan.batch.total.raw, row["global_batch_size"]))
    return pairs


@pytest.mark.parametrize(("name", "size"), [("embedding_size", 5120), ("hidden_size", 5120), ("none", 768)])
def test_the_former_name_of_a_size_is_that_size(name: str, size: int) -> None:
    keys = "num_layers: 2, num_heads: 40" + (f", {name}: 5120" if name != "none" else "")
    text = (
        "run_mode: train\nuse_parallel: False\nrunner_config: {epochs: 1, batch_size: 1}\n"
        f"model:\n  model_config: {{type: GPT2Config, {keys}}}\n  arch: {{type: GPT2LMHeadModel}}\n"
        "trainer: {type: CausalLanguageModelingTrainer}\n"
    )
    (job,) = preflight.check_text(text, name="run.yaml", target="mindformers@1.5.0").jobs
    assert job.plan.model.hidden.raw == size
