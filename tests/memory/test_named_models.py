"""The table of published models, and paths that name one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from memory_plans import make

from preflight.memory.estimate import with_published
from preflight.run.published_models import published
from preflight.run.value import Origin, derived, unknown

ROWS = json.loads((Path(__file__).parents[2] / "schemas" / "models.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_model_says_where_its_sizes_come_from_and_what_they_were_compared_with(row):
    assert row["source"].startswith("config.json of ")
    assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w.]+:\S+", row["checked"])
    assert row["hidden"] == row["heads"] * row.get("head", row["hidden"] // row["heads"]) or "head" in row


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("./model_from_hf/qwen25_7b_hf", "Qwen2.5-7B"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
        ("Qwen/Qwen2-57B-A14B", "Qwen2-57B-A14B"),
        ("qwen2_0.5b", "Qwen2-0.5B"),
        ("Qwen2.5-0_5B", "Qwen2.5-0.5B"),
        ("mixtral-8x7b", "Mixtral-8x7B"),
        ("llama-2-70b-hf", "Llama-2-70B"),
    ],
)
def test_a_path_names_a_model_by_its_whole_size(path, name):
    found = published((path,))
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("name", "latent", "rank"), [("Moonlight-16B-A3B-Instruct", True, 512), ("Qwen3-8B", False, None)]
)
def test_latent_attention_is_the_named_models_where_a_run_leaves_it_open(name, latent, rank):
    plan = make()
    open_ = {field: unknown("a switch of the script") for field in ("layers", "latent", "kv_lora_rank")}
    found = with_published(replace(plan, model=replace(plan.model, names=derived((name,)), **open_))).model
    assert (found.latent.raw, found.latent.origin) == (latent, Origin.ASSUMED)
    assert not latent or found.kv_lora_rank.raw == rank
