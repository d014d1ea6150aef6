"""The names of MindFormers settings on pages."""

from __future__ import annotations

from preflight.dialects.mindformers.pynative_network_fields import NAMES
from preflight.lint.condition_in_words import Spelled
from preflight.lint.expressions import Handle

_WORDS = {
    "kind": "the model kind",
    "world_size": "the number of devices",
    "world": "the number of devices",
    "parallel_mode": "the parallel mode",
    "ulysses_degree": "the Ulysses degree",
    "ulysses": "the Ulysses degree",
    "pipeline_layers": "the number of layers to distribute over the stages",
    "global_batch_size": "the global batch size",
    "micro_batches": "the number of micro-batches",
    "schedule": "the pipeline schedule",
    "context_method": "the method of context parallelism",
    "shape.family": "the model family",
    "shape.layers": "the number of layers",
    "shape.hidden": "the hidden size",
    "shape.heads": "the number of attention heads",
    "shape.query_groups": "the number of key/value heads",
    "shape.experts": "the number of experts",
    "shape.vocab": "the vocabulary size",
    "shape.ffn": "the width of the feed-forward layers",
}
_SWITCHES = (
    "use_",
    "enable_",
    "add_",
    "apply_",
    "auto_",
    "do_",
    "only_",
    "swap_",
    "qk_layernorm",
    "untie_",
    "calculate_",
    "share_",
)
_CLAUSES = {
    "training": ("the run trains", "the run does not train"),
    "distributed": ("more than one device takes part", "one device takes part"),
    "pipeline_interleave": ("interleaving of pipeline stages is on", "interleaving of pipeline stages is off"),
}


def spelled(handle: Handle) -> Spelled:
    """The key of a setting, or a description of it."""
    if handle.name in _CLAUSES:
        return Spelled(handle.name, *_CLAUSES[handle.name])
    if handle.name in _WORDS:
        return Spelled(_WORDS[handle.name])
    section, _, field = handle.name.partition(".")
    name = (
        f"model.{NAMES[field][0]}"
        if section == "net" and field in NAMES
        else field
        if section == "mcore"
        else handle.name
    )
    switch = name.rpartition(".")[2].startswith(_SWITCHES)
    return Spelled(f"`{name}`", f"`{name}` is on", f"`{name}` is off") if switch else Spelled(f"`{name}`")
