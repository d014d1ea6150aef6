"""The keys of AReaL: the fields of its config's dataclasses, by their paths."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from upstream.frontends.rows import Row

CONFIG = "areal/api/cli_args.py"
ROOT = "PPOConfig"
SECTIONS = ("actor", "cluster", "gconfig", "rollout", "scheduler", "train_dataset")
"""The sections of a run that are read; others configure data, checkpoints, logs and engines."""
APART = ("actor.archon.", "actor.fsdp.", "rollout.agent.")
MEGATRON, OPTIMIZER = "actor.megatron.", "actor.optimizer."
SAME = (
    *("moe_router_dtype", "moe_shared_expert_overlap", "moe_enable_deepep", "moe_token_dispatcher_type"),
    *("moe_permute_fusion", "use_precision_aware_optimizer", "main_grads_dtype", "main_params_dtype"),
    *("exp_avg_dtype", "exp_avg_sq_dtype", "ddp.overlap_grad_reduce", "ddp.overlap_param_gather"),
    "ddp.use_distributed_optimizer",
)
NAMES = {
    **{f"{MEGATRON}{key}": key.rpartition(".")[2] for key in SAME},
    f"{MEGATRON}ddp.grad_reduce_in_fp32": "accumulate_allreduce_grads_in_fp32",
    f"{OPTIMIZER}lr": "lr",
    f"{OPTIMIZER}weight_decay": "weight_decay",
    f"{OPTIMIZER}gradient_clipping": "clip_grad",
    f"{OPTIMIZER}beta1": "adam_beta1",
    f"{OPTIMIZER}beta2": "adam_beta2",
    f"{OPTIMIZER}eps": "adam_eps",
    "actor.path": "model_path",
}
"""Keys that correspond to an argument of Megatron."""


def areal(text: Callable[[str], str]) -> dict[str, Any]:
    """Every field of these sections that is not a section itself, with its default."""
    classes = {node.name: node for node in ast.walk(ast.parse(text(CONFIG))) if isinstance(node, ast.ClassDef)}
    found = {
        key: row
        for key, row in _fields(classes, ROOT, "")
        if key.startswith(tuple(f"{one}." for one in SECTIONS)) and not key.startswith(APART)
    }
    return {"keys": {key: [NAMES.get(key, f"areal_{key.replace('.', '_')}"), *found[key]] for key in sorted(found)}}


def _fields(classes: Mapping[str, ast.ClassDef], name: str, above: str) -> Iterator[tuple[str, Row]]:
    for base in classes[name].bases:
        if ast.unparse(base) in classes:
            yield from _fields(classes, ast.unparse(base), above)
    for one in classes[name].body:
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        annotation = ast.unparse(one.annotation).removesuffix(" | None")
        key = f"{above}{one.target.id}"
        if annotation in classes and _is_section(classes[annotation]):
            yield from _fields(classes, annotation, f"{key}.")
        else:
            kind = annotation if annotation in ("int", "float", "bool", "str") else "any"
            yield key, [kind, _default(one.value)]


def _is_section(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _default(value: ast.expr | None) -> Any:
    """A default; None if code computes it, or if there is none."""
    if isinstance(value, ast.Call):
        value = next((one.value for one in value.keywords if one.arg == "default"), None)
    try:
        found = ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None
    return None if isinstance(found, set) else found
