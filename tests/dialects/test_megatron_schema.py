"""The option schemas against jsonschema, on the shipped example and on published functional tests."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from preflight.dialects.megatron.json_schema import names, schema

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared/data/corpus/megatron/d98e8a6"


@pytest.mark.parametrize("name", sorted(names()))
def test_every_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(schema(*names()[name]))


def test_a_misspelt_option_and_a_wrong_type_are_named() -> None:
    validator = jsonschema.Draft7Validator(schema("megatron", "0.20.0"))
    found = [
        error.message
        for error in validator.iter_errors({"MODEL_ARGS": {"--num-layer": 2, "--hidden-size": "wide", "--bf16": True}})
    ]
    assert len(found) == 2 and any("--num-layer" in text for text in found)


def test_published_configs_of_the_entry_script_validate() -> None:
    if not CORPUS.exists():
        pytest.skip("the published configs are not here")
    validator = jsonschema.Draft7Validator(schema("megatron", "0.20.0"))
    wrong = {}
    for path in sorted((CORPUS / "gpt").rglob("model_config.yaml")):
        config = yaml.safe_load(path.read_text())
        errors = [e.message for e in validator.iter_errors(config) if e.validator != "additionalProperties"]
        if errors:
            wrong[path.parent.name] = errors[0][:120]
    assert not wrong, dict(list(wrong.items())[:5])
