"""The keys of mcore_adapter: the fields of its MegatronArguments, and of ROLL's training arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from preflight.dialects.megatron.options import table
from upstream.frontends.rows import Row

MEGATRON = "mcore_adapter/src/mcore_adapter/training_args.py"
TRAINING = "roll/configs/training_args.py"
CORE = "0.18.0"
"""The newest release of Megatron-LM that its pyproject.toml allows."""
NAMES = {
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "learning_rate": "lr",
    "adam_epsilon": "adam_eps",
    "max_grad_norm": "clip_grad",
    "per_device_train_batch_size": "micro_batch_size",
}
"""Keys that have another name in Megatron."""
ROLES: dict[str, Row] = {
    "pretrain": ["model_path", "str", None],
    "role.model_args.model_name_or_path": ["model_path", "str", None],
    "role.model_args.dtype": ["role_dtype", "str", "bf16"],
    "role.device_mapping": ["role_devices", "any", None],
    "role.use_dynamic_batching_in_train": ["role_dynamic_batches", "bool", False],
    "sequence_length": ["seq_length", "int", None],
    "prompt_length": ["prompt_length", "int", 1024],
    "response_length": ["response_length", "int", None],
    "rollout_batch_size": ["rollout_batch_size", "int", 128],
    "num_return_sequences_in_group": ["num_return_sequences", "int", 1],
    "adv_estimator": ["roll_adv_estimator", "str", "gae"],
    "init_kl_coef": ["roll_init_kl_coef", "float", 0.2],
    "use_kl_loss": ["roll_use_kl_loss", "bool", False],
    "enable_reference": ["roll_enable_reference", "bool", False],
    "chosen_key": ["role_chosen", "str", None],
    "rewards": ["role_rewards", "any", None],
    "actor_infer.device_mapping": ["engine_devices", "any", None],
    "actor_infer.strategy_args.strategy_name": ["engine_strategy", "str", None],
    "actor_infer.strategy_args.strategy_config.tensor_parallel_size": ["engine_tensor_parallel_size", "int", 1],
    "actor_infer.strategy_args.strategy_config.pipeline_parallel_size": ["engine_pipeline_parallel_size", "int", 1],
    **{
        f"{role}.{key}": [f"{role}_{name}", kind, default]
        for role in ("reference", "critic")
        for key, name, kind, default in (
            ("device_mapping", "devices", "any", None),
            ("strategy_args.strategy_name", "strategy", "str", None),
            ("strategy_args.strategy_config.tensor_model_parallel_size", "tensor_model_parallel_size", "int", 1),
            ("strategy_args.strategy_config.pipeline_model_parallel_size", "pipeline_model_parallel_size", "int", 1),
            ("strategy_args.strategy_config.context_parallel_size", "context_parallel_size", "int", 1),
        )
    },
}
"""Keys of ROLL's own config classes (roll/configs/base_config.py, worker_config.py, rlvr_config.py); `role` represents
the role that trains."""
KINDS = {"true": "bool", "false": "bool", "pair": "bool"}


def mcore_adapter(text: Callable[[str], str]) -> dict[str, Any]:
    """The fields of the strategy, and of the training arguments, by their names."""
    known = {flag.dest: KINDS.get(flag.kind, flag.kind) for flag in table("megatron", CORE).options.values()}
    strategy = {name: _row(name, one, known) for name, one in _fields(text(MEGATRON))}
    training = {name: _row(name, one, known) for name, one in _fields(text(TRAINING))}
    training |= {
        name: [NAMES[name], "float", default]
        for name, default in (("adam_epsilon", 1e-8), ("max_grad_norm", 1.0))
        if name not in training
    }
    return {"keys": {**training, **strategy, **ROLES}, "strategy": sorted(strategy), "training": sorted(training)}


def _fields(code: str) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The fields of the dataclasses of a module."""
    for one in ast.walk(ast.parse(code)):
        for field in one.body if isinstance(one, ast.ClassDef) else ():
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                yield field.target.id, field


def _row(name: str, field: ast.AnnAssign, known: dict[str, str]) -> Row:
    """A field as a row: under Megatron's name if Megatron has one of its kind."""
    annotation = ast.unparse(field.annotation)
    plain = annotation.removeprefix("Optional[").removesuffix("]") if annotation.startswith("Optional[") else annotation
    kind = plain if plain in ("int", "float", "bool", "str") else "str" if plain.startswith("Literal[") else "any"
    dest = NAMES.get(name, name)
    same = known.get(dest) == kind
    return [dest if same or name in NAMES else f"mca_{name}", kind, _default(field)]


def _default(field: ast.AnnAssign) -> Any:
    """The default of a field; None if code computes it."""
    words = field.value.keywords if isinstance(field.value, ast.Call) else []
    found = next((word.value for word in words if word.arg == "default"), None)
    return ast.literal_eval(found) if found is not None else None
