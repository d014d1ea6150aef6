"""Which linears a pet_config puts adapters on, in neutral names."""

from __future__ import annotations

import re

from preflight.dialects.mindformers.namespace import Run
from preflight.dialects.mindformers.operators import compiled
from preflight.dialects.mindformers.typed import any_starts
from preflight.loaders.document import Unknown
from preflight.run.value import Value, derived, unknown

_PET = "model.model_config.pet_config"
# fmt: off
_CELLS = {
    "llama": {
        "attention.wq": "query",
        "attention.wk": "key",
        "attention.wv": "value",
        "attention.w_qkv": "qkv",
        "attention.wo": "projection",
        "feed_forward.w1": "gate",
        "feed_forward.w3": "up",
        "feed_forward.w_gate_hidden": "fc1",
        "feed_forward.w2": "fc2",
    },
    "glm": {"attention.query_key_value": "qkv", "attention.dense": "projection", "mlp.dense_h_to_4h": "fc1",
        "mlp.dense_4h_to_h": "fc2"},
    "gpt2": {"attention.dense1": "query", "attention.dense2": "key", "attention.dense3": "value",
        "attention.projection": "projection"},
    "mcore": {"self_attention.linear_qkv": "qkv", "self_attention.linear_proj": "projection", "mlp.linear_fc1": "fc1",
        "mlp.linear_fc2": "fc2"},
}
# fmt: on
_EITHER = {"qkv": ("query", "key", "value"), "fc1": ("gate", "up")}


def targets(run: Run, family: str) -> Value:
    """The linears with an adapter; () where no pet_config is given."""
    if _PET not in run.written and not any_starts(run.written, f"{_PET}."):
        return derived(())
    kind, pattern = run.raw(f"{_PET}.pet_type"), run.raw(f"{_PET}.target_modules")
    if isinstance(kind, Unknown) or kind != "lora":
        return unknown(kind.because if isinstance(kind, Unknown) else f"pet_type is {kind!r}")
    found = _matched(pattern, _CELLS.get("mcore" if run.kind == "mcore" else family, {}))
    return derived(found, "target_modules") if found else unknown("the linears that target_modules names are not known")


def _matched(pattern: object, cells: dict[str, str]) -> tuple[str, ...]:
    """Names of the cells that one of the alternatives matches from the start;
    nothing for patterns that are not plain alternatives."""
    if not isinstance(pattern, str) or "(" in pattern:
        return ()
    expressions = [compiled(part) for part in pattern.split("|")]
    plain = [one for one in expressions if isinstance(one, re.Pattern)]
    found = [name for cell, name in cells.items() if any(one.match(f"model.layers.0.{cell}") for one in plain)]
    return tuple(name for name in found if not any(part in found for part in _EITHER.get(name, ())))
