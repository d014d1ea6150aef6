"""slime's own options, from its parser."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from preflight.dialects.megatron.options import table
from preflight.program.checkout.parser_options import own_options
from upstream.frontends.rows import row

PATCHED = ("--post-self-attn-layernorm", "--post-mlp-layernorm", "--use-gated-attention", "--offload-optimizer-states")
"""Options that slime's underlying commit, and its patch (docker/patch/latest/megatron.patch), add to Megatron-LM
0.16."""


def slime(text: Callable[[str], str]) -> dict[str, Any]:
    """slime's own options, and the defaults that it changes in Megatron's parser."""
    code = text("slime/utils/arguments.py")
    below = table("megatron", "0.16.0").options
    resets = dict(_resets(ast.parse(code)))
    found = own_options(re.sub(r"(?<!def )reset_arg\(\s*parser,", "parser.add_argument(", code))
    defaults = {name: raw for name, raw in resets.items() if name in below and below[name].default != raw}
    keys = {one.option: row(one) for one in found if one.option not in below}
    keys |= {name: [name[2:].replace("-", "_"), "true", False] for name in PATCHED}
    keys["--sglang-mem-fraction-static"] = ["sglang_mem_fraction_static", "float", None]  # SGLang's, which it accepts
    return {"takes megatron": True, "defaults": defaults, "keys": keys}


def _resets(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The options whose default `reset_arg` changes."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "reset_arg":
            said = {one.arg: one.value for one in call.keywords}
            if "default" in said:
                yield ast.literal_eval(call.args[1]), ast.literal_eval(said["default"])
