"""The keys of MindSpeed-RL: the attributes that its config classes set; those of MegatronConfig become options of
MindSpeed-LLM."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from preflight.dialects.megatron.options import Flag, Table, table

CLASSES = "mindspeed_rl/config_cls"
LLM = "2.3.0"
"""The underlying release of MindSpeed-LLM."""
RESOURCES = {"actor": "actor", "reference": "reference", "reward": "reward", "critic": "critic", "vit": "vit"}
ROLES = {"ref_config": "reference", "critic_config": "critic"}
LAYOUT = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
BATCH = ("global_batch_size", "micro_batch_size")
Row = list[Any]


def mindspeed_rl(text: Callable[[str], str]) -> dict[str, Any]:
    """MegatronConfig's keys by their names, and those of the other sections prefixed with the section."""
    below = table("mindspeed-llm", LLM)
    taken = {flag.dest for flag in below.options.values()} | {"data_parallel_size"}
    keys = {key: _megatron(key, raw, below) for key, raw in _attributes(text(f"{CLASSES}/megatron_config.py"))}
    keys["global_batch_size"][0] = "prompts"
    for key, raw in _attributes(text(f"{CLASSES}/rl_config.py")):
        if not key.endswith("_resource"):
            keys[f"rl_config.{key}"] = _own(f"rl_{key}" if key in taken else key, raw)
    for name, role in RESOURCES.items():
        keys[f"rl_config.{name}_resource.num_npus"] = [f"{role}_npus", "int", None]
    for key, raw in _attributes(text(f"{CLASSES}/generate_config.py")):
        if key == "sampling_config":
            keys |= {f"generate_config.{key}.{one}": _own(f"sampling_{one}", value) for one, value in raw.items()}
        else:
            keys[f"generate_config.{key}"] = _own(key if key.startswith("infer_") else f"generate_{key}", raw)
    for section, role in ROLES.items():
        keys |= {f"{section}.{key}": [f"{role}_{key}", "int", 1] for key in LAYOUT}
        keys |= {f"{section}.{key}": [f"{role}_{key}", "int", None] for key in BATCH}
    return {"keys": keys}


def _attributes(code: str) -> Iterator[tuple[str, Any]]:
    """The attributes that a class sets, with their values before the config is read."""
    seen: set[str] = set()
    for one in ast.walk(ast.parse(code)):
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(one, ast.Assign) or not isinstance(target, ast.Attribute) or target.attr in seen:
            continue
        if ast.unparse(target.value) == "self":
            seen.add(target.attr)
            yield target.attr, _literal(one.value)


def _literal(value: ast.expr) -> Any:
    """A value; None if code computes it."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        return ast.literal_eval(value.left) ** ast.literal_eval(value.right)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "config_dict.get" and len(value.args) == 2:
        return _literal(value.args[1])
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None


def _megatron(key: str, raw: Any, below: Table) -> Row:
    """A key that becomes an option, unless it is off or None: then MindSpeed-LLM's default is in effect."""
    flag: Flag | None = below.options.get(f"--{key.replace('_', '-')}")
    if flag is None:
        return _own(key, raw)
    default = flag.stores(flag.option) if raw is True else flag.default if raw in (None, False) else raw
    found: Row = [flag.dest, flag.kind, default, flag.nargs, list(flag.choices) if flag.choices is not None else None]
    while len(found) > 3 and found[-1] is None:
        found.pop()
    return found


def _own(dest: str, raw: Any) -> Row:
    kinds = {bool: "bool", int: "int", float: "float", list: "list"}
    return [dest, kinds.get(type(raw), "pattern"), raw]
