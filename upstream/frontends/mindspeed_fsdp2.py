"""The options of MindSpeed-LLM's FSDP2 entry: `--section.field` for each field of its dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from upstream.frontends.rows import Row

ENTRY, ARGUMENTS = "train_fsdp2.py", "mindspeed_llm/fsdp2/utils/arguments.py"
NAMES = {
    "parallel.cp_size": "context_parallel_size",
    "parallel.ep_size": "expert_model_parallel_size",
    "parallel.tp_size": "fsdp2_tensor_size",
    "training.per_device_train_batch_size": "micro_batch_size",
    "training.lr": "lr",
    "training.min_lr": "min_lr",
    "training.weight_decay": "weight_decay",
    "training.adam_beta1": "adam_beta1",
    "training.adam_beta2": "adam_beta2",
    "training.adam_epsilon": "adam_eps",
    "training.max_grad_norm": "clip_grad",
    "training.seed": "seed",
    "data.cutoff_len": "seq_length",
    "model.model_name_or_path": "model_path",
}
"""Options that correspond to an argument of Megatron with another name."""


def mindspeed_fsdp2(text: Callable[[str], str]) -> dict[str, Any]:
    """The options by their spelling."""
    classes = {node.name: node for node in ast.walk(ast.parse(text(ARGUMENTS))) if isinstance(node, ast.ClassDef)}
    keys: dict[str, Row] = {}
    for section in _fields(_named(text(ENTRY), "Arguments")):
        for field in _fields(classes[ast.unparse(section.annotation)]):
            name = f"{_name(section)}.{_name(field)}"
            keys[f"--{name}"] = _row(NAMES.get(name, f"fsdp2_{name.replace('.', '_')}"), field)
    return {"keys": keys, "keys in files": True}


def _named(code: str, name: str) -> ast.ClassDef:
    return next(one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.ClassDef) and one.name == name)


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [one for one in node.body if isinstance(one, ast.AnnAssign)]


def _name(field: ast.AnnAssign) -> str:
    return ast.unparse(field.target)


def _row(dest: str, field: ast.AnnAssign) -> Row:
    """A field in the form that its parser accepts."""
    annotation = field.annotation
    while isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Optional":
        annotation = annotation.slice
    text = ast.unparse(annotation)
    if text.startswith("Literal["):
        return [dest, "str", _default(field), None, [str(one) for one in ast.literal_eval(_tuple(annotation))]]
    if text.startswith("List["):
        item = text[5:-1]
        return [dest, item if item in ("int", "float", "str") else "str", None, "+"]
    if text == "bool":
        return [dest, "yesno", _default(field) or False, "?"]
    return [dest, text if text in ("int", "float") else "str", _default(field)]


def _tuple(annotation: ast.expr) -> ast.expr:
    assert isinstance(annotation, ast.Subscript)
    inner = annotation.slice
    return inner if isinstance(inner, ast.Tuple) else ast.Tuple([inner], ast.Load())


def _default(field: ast.AnnAssign) -> Any:
    """The default of a field; None if code computes it."""
    words = field.value.keywords if isinstance(field.value, ast.Call) else []
    found = next((word.value for word in words if word.arg == "default"), None)
    return ast.literal_eval(found) if found is not None else None
