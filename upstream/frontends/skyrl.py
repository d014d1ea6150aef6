"""The keys of SkyRL: the fields of its config's dataclasses, by their paths."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from upstream.frontends.rows import Row

CONFIG = "skyrl/train/config/config.py"
ROOT = "SkyRLTrainConfig"
POLICY = "trainer.policy.megatron_config."
NAMES = {
    **{f"{POLICY}{key}": key for key in ("tensor_model_parallel_size", "pipeline_model_parallel_size")},
    **{f"{POLICY}{key}": key for key in ("context_parallel_size", "expert_model_parallel_size")},
    f"{POLICY}expert_tensor_parallel_size": "expert_tensor_parallel_size",
    f"{POLICY}moe_token_dispatcher_type": "moe_token_dispatcher_type",
    f"{POLICY}moe_router_load_balancing_type": "moe_router_load_balancing_type",
    f"{POLICY}moe_grouped_gemm": "moe_grouped_gemm",
    "trainer.policy.optimizer_config.lr": "lr",
    "trainer.policy.optimizer_config.weight_decay": "weight_decay",
    "trainer.policy.optimizer_config.max_grad_norm": "clip_grad",
    "trainer.policy.model.path": "model_path",
    "trainer.micro_train_batch_size_per_gpu": "micro_batch_size",
}
"""Keys that correspond to an argument of Megatron."""


def skyrl(text: Callable[[str], str]) -> dict[str, Any]:
    """Every field that is not a section, with its default."""
    classes = {node.name: node for node in ast.walk(ast.parse(text(CONFIG))) if isinstance(node, ast.ClassDef)}
    found = dict(_fields(classes, ROOT, ""))
    keys = {key: [NAMES.get(key, f"skyrl_{key.replace('.', '_')}"), *row] for key, row in found.items()}
    return {"keys": keys}


def _fields(classes: Mapping[str, ast.ClassDef], name: str, above: str) -> Iterator[tuple[str, Row]]:
    for one in classes[name].body:
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        annotation = ast.unparse(one.annotation).strip("'\"")
        plain = (
            annotation.removeprefix("Optional[").removesuffix("]") if annotation.startswith("Optional[") else annotation
        )
        key = f"{above}{one.target.id}"
        if plain in classes:
            yield from _fields(classes, plain, f"{key}.")
        else:
            kind = plain if plain in ("int", "float", "bool", "str") else "any"
            yield key, [kind, _default(one.value)]


def _default(value: ast.expr | None) -> Any:
    """A default; None if code computes it."""
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None
