"""The keys of MindRLHF: the fields of its dataclasses, one section per class, and their names in MindFormers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

FILES = ("mindrlhf/configs/grpo_configs.py",)
KINDS = {"int": "int", "float": "float", "bool": "bool", "list": "list"}
NAMES = {
    "actor_config.parallel_config.": "parallel_config.",
    "actor_config.recompute_config.": "recompute_config.",
    "actor_config.offset": "model.model_config.offset",
    "actor_config.use_eod_attn_mask_compression": "model.model_config.use_eod_attn_mask_compression",
    "rl_config.seq_length": "model.model_config.seq_length",
    "rl_config.batch_size": "runner_config.batch_size",
    "rl_config.use_parallel": "use_parallel",
    "context.": "context.",
}
"""The places where MindRLHF writes one of its keys into the config of MindFormers
(mindrlhf/worker/train_worker.py:65-74)."""
Row = list[Any]


def mindrlhf(text: Callable[[str], str]) -> dict[str, Any]:
    """The keys by section."""
    nodes = ast.parse(text(FILES[0])).body
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    keys: dict[str, Row] = {}
    for section, name in _sections(classes["GRPOConfig"]):
        keys |= dict(_fields(classes, name, f"{section}."))
    return {"release": "0.5.0", "keys": keys}


def _sections(root: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The sections of a file, with their classes."""
    for node in root.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, ast.unparse(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation)


def _fields(classes: dict[str, ast.ClassDef], name: str, above: str) -> Iterator[tuple[str, Row]]:
    """The fields of a class; those of a nested class are prefixed with the name of its field."""
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            key, of = f"{above}{node.target.id}", ast.unparse(node.annotation)
            if of in classes:
                yield from _fields(classes, of, f"{key}.")
            else:
                start = next((one for one in NAMES if key.startswith(one)), "")
                dest = key.replace(start, NAMES[start], 1) if start else key
                yield key, [dest, KINDS.get(of, "pattern"), _literal(node.value)]


def _literal(value: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None
