"""verl's config, as composed by its trainer."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import yaml

from upstream.frontends.rows import SCHEMAS, paths, without_targets

VERL = "verl/trainer/config/_generated_ppo_megatron_trainer.yaml"
"""The config of its trainer with Megatron, including all of its parts."""
_FALLBACK = re.compile(r"\$\{oc\.select:[\w.]+,\s*([^${}]*)\}")


def verl(text: Callable[[str], str]) -> dict[str, Any]:
    """verl's trainer config; the corresponding arguments of Megatron, and their names, are written by hand in the
    table."""
    trainer = without_targets(yaml.safe_load(text(VERL)))
    table = json.loads((SCHEMAS / "verl.json").read_text(encoding="utf-8"))
    keys = {key: [*row_[:2], _value_at(trainer, key), *row_[3:]] for key, row_ in table["keys"].items()}
    known = sorted(paths(trainer))
    return {"inside": table["inside"], "keys": keys, "all keys": known, "sft": _sft(text), "trainer": trainer}


def _sft(text: Callable[[str], str]) -> dict[str, Any]:
    """The config of its fine-tuning with Megatron, composed from the parts in its `defaults`."""

    def part(name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = yaml.safe_load(text(f"verl/trainer/config/{name}.yaml"))
        except subprocess.CalledProcessError:  # not in this release
            return {}
        found.pop("defaults", None)
        return found

    parts = {"engine": "engine/megatron", "optim": "optim/megatron", "model": "model/hf_model"}
    found: dict[str, Any] = without_targets(
        {**part("sft_trainer_engine"), **{name: part(file) for name, file in parts.items()}}
    )
    return found


def _value_at(tree: Any, key: str) -> Any:
    """A default; if it refers to the value of another key, the default without that key."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    found = _FALLBACK.fullmatch(tree) if isinstance(tree, str) else None
    if found is not None:
        return yaml.safe_load(found[1])
    return None if isinstance(tree, str) and "${" in tree else tree
