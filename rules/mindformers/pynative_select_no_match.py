"""A recompute module of a pynative config names nothing that a layer has.

## What it does
Looks at the first part of each path in `select_module` and `exclude_op`, and compares it with the modules of a decoder
layer and of a multi-token-prediction layer. Paths that are true expressions are left alone.

## Why is this bad?
The run logs one line and goes on without the recomputation, so it needs more memory.

## Example
    recompute: {mode: select, select_module: {mpl: ["0-15"]}}
Use instead:
    recompute: {mode: select, select_module: {mlp: ["0-15"]}}

## Fix safety
Unsafe: more is recomputed, which saves memory and costs time.

## References
MindFormers 2.1.0, mindformers/pynative/distributed/activation_checkpoint.py:582, _expand_select_module
MindFormers 2.1.0, mindformers/pynative/transformers/transformer_layer.py:142-191, TransformerLayer
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule

MODULES = (
    *(
        "self_attention",
        "mlp",
        "input_layernorm",
        "pre_mlp_layernorm",
        "pre_cross_attn_layernorm",
        "cross_attention",
        "hidden_states_dropout",
        "add",
    ),
    *("attn_hc", "ffn_hc", "enorm", "hnorm", "eh_proj", "transformer_layer", "final_layernorm", "hc_head"),
)
_OLD = {
    "attention": "self_attention",
    "feed_forward": "mlp",
    "attention_norm": "input_layernorm",
    "ffn_norm": "pre_mlp_layernorm",
}


@rule(severity=Severity.WARNING, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    for section, name in (
        ("recompute", "select_module"),
        ("recompute", "exclude_op"),
        ("recompute_comm", "select_module"),
    ):
        node = tree.get(section, name) if tree is not None else None
        mode = job.arguments.get("recompute.mode" if section == "recompute" else "recompute_comm.enable").raw
        if node is None or mode in ("None", False) or (mode == "full" and name == "select_module"):
            continue
        for entry in node.entries:
            first = _first(entry.key.value)
            if entry.shadowed or first is None or first in MODULES:
                continue
            near = None if first in _OLD else next(iter(get_close_matches(first, MODULES, 1, 0.6)), None)
            key = (section, name, str(entry.key.value))
            meant = near + str(entry.key.value)[len(first) :] if near else ""
            fix = Fix(f"write {meant}", (Edit("rename", key, meant),)) if meant and node.get(meant) is None else None
            hint = (
                Message("; did you mean {meant}?", meant=meant)
                if meant
                else Message("; here it is {old}", old=_OLD[first])
                if first in _OLD
                else ""
            )
            message = Message(
                "no layer has a module {first}, so {key} is not recomputed{hint}",
                first=first,
                key=entry.key.value,
                hint=hint,
            )
            yield Finding(
                message,
                entry.key.span,
                key=key,
                fix=fix,
                upstream="mindformers/pynative/distributed/activation_checkpoint.py:582",
            )


def _first(path: object) -> str | None:
    """The first module of a path that is plain enough to read; None for a true expression."""
    match = re.match(r"([A-Za-z_]\w*)(?:$|\\?\.[A-Za-z_])", path) if isinstance(path, str) else None
    return match[1] if match else None
