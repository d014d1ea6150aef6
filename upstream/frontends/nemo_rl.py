"""The keys of NeMo RL, from its largest base config."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from upstream.frontends.rows import SCHEMAS, paths

NEMO = "examples/configs/grpo_math_1B.yaml"
"""NeMo RL's largest base config."""


def nemo_rl(text: Callable[[str], str]) -> dict[str, Any]:
    """NeMo RL's keys have no defaults except those of a config's parents; the corresponding arguments of Megatron are
    written by hand."""
    table = json.loads((SCHEMAS / "nemo-rl.json").read_text(encoding="utf-8"))
    known = sorted(paths(yaml.safe_load(text(NEMO))))
    return {"inside": table["inside"], "keys": table["keys"], "all keys": known}
