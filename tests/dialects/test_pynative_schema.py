"""The schema of pynative configs is valid, correct for published files, and evaluated like by jsonschema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import preflight
from preflight.dialects.mindformers.pynative_schema import defaults, faults, schema
from preflight.loaders.yaml import load_yaml
from preflight.source.source_file import Source

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "corpus" / "mindformers" / "v2.1.0" / "configs"
PUBLISHED = [path for path in sorted(CORPUS.rglob("*.yaml")) if "\nlr_scheduler:" in path.read_text(encoding="utf-8")]
SOUND: dict[str, Any] = {
    "training": {"steps": 10, "max_norm": 1},
    "parallelism": {
        "tensor_parallel": 2,
        "dense_fsdp_shard_size": None,
        "pipeline_parallel_layers_per_stage": ["0-7", "8-15"],
    },
    "lr_scheduler": {"type": "ConstantWarmUpLR", "learning_rate": 1.5},
    "optimizer": {"betas": [0.9, 0.95], "anything": [1]},
    "train_dataset": {"dataloader": {"type": "HFDataLoader", "column_names": ["a"]}},
    "model": {"model_type": "qwen3", "architectures": "Qwen3ForCausalLM"},
    "callbacks": [{"type": "LossCallback", "per": 2}],
    "monitor": {"train_state": {"local_norm": ["a"], "device_norm": True}},
    "lora_config": None,
    "whatever": 1,
}


def validator() -> Any:
    from jsonschema import Draft7Validator

    return Draft7Validator(schema())


def places(config: object) -> set[str]:
    """The errors found by preflight's evaluation."""
    document = load_yaml(Source(json.dumps(config), "run.yaml"))
    assert document.tree is not None
    return {
        ".".join(map(str, f.key[:-1] if f.kind in ("unknown", "missing") else f.key)) for f in faults(document.tree)
    }


def expected(config: object) -> set[str]:
    """The errors found by jsonschema."""
    return {".".join(map(str, error.absolute_path)) for error in validator().iter_errors(config)}


def test_the_schema_is_one() -> None:
    from jsonschema import Draft7Validator

    Draft7Validator.check_schema(schema())
    assert all(
        "description" in field
        for section in schema()["properties"].values()
        for field in section.get("properties", {}).values()
    )


def test_defaults_are_of_their_own_type() -> None:
    sections: dict[str, Any] = {}
    for name, value in defaults().items():
        here = sections
        for part in name.split(".")[:-1]:
            here = here.setdefault(part, {})
        here[name.rpartition(".")[2]] = value
    for name in ("lr_scheduler", "model"):
        sections.pop(name, None)
    assert {e for e in expected(sections) if e not in ("", "train_dataset", "train_dataset.dataloader")} == set()


def test_a_sound_config_has_no_fault() -> None:
    assert places(SOUND) == expected(SOUND) == set()


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from([0.5, -1.25]), st.sampled_from(["", "x", "1e-5"])
)
ANY = st.one_of(
    LEAVES, st.lists(LEAVES, max_size=2), st.dictionaries(st.sampled_from(["type", "steps", "a"]), LEAVES, max_size=2)
)
NAMES = [
    (section, name)
    for section, part in schema()["properties"].items()
    for name in (*part.get("properties", {}), "unheard_of")
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), ANY), max_size=4),
    st.lists(st.tuples(st.sampled_from(list(schema()["properties"])), ANY), max_size=1),
)
def test_our_walk_agrees_with_jsonschema(
    fields: list[tuple[tuple[str, str], Any]], whole: list[tuple[str, Any]]
) -> None:
    config = json.loads(json.dumps(SOUND))
    for (section, name), value in fields:
        if not isinstance(config.get(section), dict):
            config[section] = {}
        config[section][name] = value
    config.update(whole)
    assert places(config) == expected(config)


ODD = st.one_of(
    ANY, st.sampled_from([10**9, float("inf"), ["0-3"], [[1]], {"a": ["0"]}, "auto", "(a*)*", {"mlp": True}])
)
MODEL = (
    "num_hidden_layers",
    "num_attention_heads",
    "n_routed_experts",
    "num_nextn_predict_layers",
    "first_k_dense_replace",
    "moe_layer_freq",
    "model_type",
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*NAMES, *(("model", name) for name in MODEL)]), ODD), max_size=5),
    st.sampled_from([None, 1, 8, 12]),
)
def test_no_value_makes_a_rule_crash(fields: list[tuple[tuple[str, str], Any]], world: int | None) -> None:
    config = json.loads(json.dumps(SOUND))
    for (section, name), value in fields:
        if not isinstance(config.get(section), dict):
            config[section] = {}
        config[section][name] = value
    import yaml

    report = preflight.check_text(yaml.safe_dump(config), world_size=world, target="mindformers@2.1.0")
    assert not [crash for crash in report.crashes if "pynative" in crash.rule]


@pytest.mark.skipif(not PUBLISHED, reason="the published configs are not here")
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_published_configs_are_sound(path: Path) -> None:
    import yaml

    assert expected(yaml.safe_load(path.read_text(encoding="utf-8"))) == set()
    report = preflight.check_text(
        path.read_text(encoding="utf-8"), name=path.name, world_size=8, target="mindformers@2.1.0"
    )
    assert [f.message for f in report.findings if str(f.severity) == "error" and f.rule != "predicted-oom"] == []
    assert not report.crashes
