"""Values that MindSpore's setters of its two contexts refuse: kinds and values that every release since 2.2 checks.

Read in mindspore/context.py (set_auto_parallel_context, set_context and its setters), in
mindspore/parallel/_auto_parallel_context.py and in mindspore/parallel/_cost_model_context.py. Names of settings and
schedules that only some releases have are not refused with certainty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from preflight.program.values import OPAQUE_VALUES, Value

KINDS: dict[str, type] = {
    **dict.fromkeys(("device_num", "global_rank", "pipeline_stages", "pipeline_segments"), int),
    **dict.fromkeys(
        """gradients_mean gradient_fp32_sync parameter_broadcast full_batch enable_parallel_optimizer
        enable_alltoall pipeline_result_broadcast force_fp32_communication""".split(),
        bool,
    ),
    **dict.fromkeys(
        "parallel_mode auto_parallel_search_mode search_mode strategy_ckpt_load_file strategy_ckpt_save_file".split(),
        str,
    ),
    "all_reduce_fusion_config": list,
    **dict.fromkeys("parallel_optimizer_config pipeline_config comm_fusion strategy_ckpt_config".split(), dict),
}
"""The requirements of @args_type_check of set_auto_parallel_context on each argument, if it is not None."""
NOT_NONE = frozenset(
    """enable_parallel_optimizer enable_alltoall search_mode parallel_mode parallel_optimizer_config pipeline_config
    strategy_ckpt_config loss_repeated_mean optimizer_weight_shard_size communi_parallel_mode
    dataset_strategy""".split()
)
"""Arguments with a setter that fails with None."""
SEARCH = ("recursive_programming", "dynamic_programming", "sharding_propagation")
STRATEGIES = ("full_batch", "data_parallel")
LEVELS = ("level1", "level2", "level3")
SCHEDULES = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
NAMES = frozenset(
    """device_num global_rank gradients_mean gradient_fp32_sync loss_repeated_mean pipeline_stages auto_pipeline
    pipeline_result_broadcast pipeline_segments parallel_mode search_mode auto_parallel_search_mode
    parameter_broadcast strategy_ckpt_load_file strategy_ckpt_save_file group_ckpt_save_file full_batch
    dataset_strategy enable_parallel_optimizer force_fp32_communication parallel_optimizer_config pipeline_config
    grad_accumulation_step all_reduce_fusion_config communi_parallel_mode optimizer_weight_shard_size
    optimizer_weight_shard_aggregated_save sharding_propagation enable_alltoall strategy_ckpt_config comm_fusion
    dump_local_norm dump_local_norm_path dump_device_local_norm init_param_in_compile""".split()
)
INNER = {
    "parallel_optimizer_config": frozenset(
        "gradient_accumulation_shard parallel_optimizer_threshold optimizer_weight_shard_size optimizer_level".split()
    ),
    "pipeline_config": frozenset(("pipeline_interleave", "pipeline_scheduler")),
    "strategy_ckpt_config": frozenset(("load_file", "save_file", "only_trainable_params")),
}
MEMORY = re.compile(r"[1-9][0-9]*(\.)?[0-9]*GB|0\.[0-9]*GB")
"""_RE_PATTERN in mindspore/context.py, which is matched as a whole."""


class Veto(NamedTuple):
    """A refused value. sure: by every release."""

    error: Exception
    sure: bool = True


def parallel_fault(key: str, value: Value) -> Veto | None:
    """The refusal of one argument by set_auto_parallel_context."""
    if isinstance(value, OPAQUE_VALUES):
        return None
    if key not in NAMES:
        return Veto(ValueError(f"Set context keyword {key} is not recognized!"), False)
    kind = KINDS.get(key)
    if value is None:
        return Veto(TypeError(f"'{key}' must not be None")) if key in NOT_NONE else None
    if kind is not None and not isinstance(value, kind):
        return Veto(TypeError(f"The parameter '{key}' must be {kind}, but got {type(value)}"))
    check = CHECKS.get(key)
    return next(check(value), None) if check is not None else None


def _stages(value: Value) -> Iterator[Veto]:
    if isinstance(value, bool):
        yield Veto(TypeError(f"the argument 'pipeline_stages' must be int, but got the type : {type(value)}."))
    elif value < 1:
        yield Veto(ValueError(f"the argument 'pipeline_stages' should be greater or equal 1, but got {value}."))


def _devices(value: Value) -> Iterator[Veto]:
    if value < 1 or value > 4096:
        yield Veto(ValueError(f"'device_num' must be in [1, 4096], but got {value}."), value < 1)


def _search(value: Value) -> Iterator[Veto]:
    if value not in SEARCH:
        yield Veto(ValueError(f"'search_mode' only support {', '.join(SEARCH)}, but got the value: {value}."))


def _switch(name: str) -> Callable[[Value], Iterator[Veto]]:
    def check(value: Value) -> Iterator[Veto]:
        if not isinstance(value, bool):
            yield Veto(TypeError(f"the argument '{name}' must be bool, but got the type : {type(value)}."))

    return check


def _strategy(value: Value) -> Iterator[Veto]:
    if isinstance(value, str):
        if value not in STRATEGIES:
            yield Veto(ValueError(f"'dataset_strategy' must be 'full_batch' or 'data_parallel', but got {value}."))
    elif not isinstance(value, tuple):
        yield Veto(TypeError(f"'dataset_strategy' must be str or tuple type, but got the type : {type(value)}."))
    else:
        for row in value:
            if isinstance(row, OPAQUE_VALUES):
                return
            if not isinstance(row, tuple):
                yield Veto(TypeError(f"the element of 'dataset_strategy' must be tuple, but got {type(row)}."), False)
                return
            for size in row:
                if not isinstance(size, (int, *OPAQUE_VALUES)):
                    yield Veto(TypeError(f"the element of 'dataset_strategy' must be int type, but got {type(size)}."))


def _inner(name: str, value: Mapping[str, Value]) -> Iterator[Veto]:
    for key in value:
        if key not in INNER[name]:
            yield Veto(ValueError(f"Unknown config: ['{key}']"), False)


def _optimizer(value: Mapping[str, Value]) -> Iterator[Veto]:
    yield from _inner("parallel_optimizer_config", value)
    shard = value.get("gradient_accumulation_shard")
    if "gradient_accumulation_shard" in value and not isinstance(shard, (bool, *OPAQUE_VALUES)):
        yield Veto(TypeError(f"'gradient_accumulation_shard' must be a bool, but got {shard!r}."))
    for key, least in (("parallel_optimizer_threshold", 0), ("optimizer_weight_shard_size", 1)):
        number = value.get(key)
        if key not in value or isinstance(number, OPAQUE_VALUES):
            continue
        if isinstance(number, bool) or not isinstance(number, int):
            yield Veto(TypeError(f"'{key}' must be int, but got {number!r}."))
        elif number < least:
            yield Veto(ValueError(f"'{key}' must be at least {least}, but got {number}."))
    level = value.get("optimizer_level")
    if "optimizer_level" in value and not isinstance(level, OPAQUE_VALUES):
        if level not in LEVELS:
            yield Veto(ValueError(f"Optimizer level should in {list(LEVELS)}, but got {level}"))
        elif shard is True and level != "level2":
            yield Veto(ValueError(f"The optimizer_level is set as {level}, thus cannot set grad_accumulation_shard."))


def _pipeline(value: Mapping[str, Value]) -> Iterator[Veto]:
    yield from _inner("pipeline_config", value)
    interleave, schedule = value.get("pipeline_interleave"), value.get("pipeline_scheduler")
    if "pipeline_interleave" in value and not isinstance(interleave, (bool, *OPAQUE_VALUES)):
        yield Veto(TypeError(f"'pipeline_interleave' must be a bool, but got {interleave!r}."))
    if "pipeline_scheduler" in value and not isinstance(schedule, OPAQUE_VALUES):
        if not isinstance(schedule, str):
            yield Veto(ValueError(f"the schedule of the pipeline must be a str, but got {schedule!r}."))
        elif schedule not in SCHEDULES:
            yield Veto(
                ValueError(f"the schedule of the pipeline must be one of {SCHEDULES}, but got {schedule}."), False
            )


def _checkpoint(value: Mapping[str, Value]) -> Iterator[Veto]:
    yield from _inner("strategy_ckpt_config", value)
    kinds = {"load_file": str, "save_file": str, "only_trainable_params": bool}
    for key, kind in kinds.items():
        if key in value and not isinstance(value[key], (kind, *OPAQUE_VALUES)):
            yield Veto(TypeError(f"the argument '{key}' must be {kind.__name__}, but got {type(value[key])}."))


CHECKS: dict[str, Callable[[Value], Iterator[Veto]]] = {
    "pipeline_stages": _stages,
    "device_num": _devices,
    "search_mode": _search,
    "auto_parallel_search_mode": _search,
    "loss_repeated_mean": _switch("loss_repeated_mean"),
    "enable_alltoall": _switch("enable_a2a"),
    "dataset_strategy": _strategy,
    "parallel_optimizer_config": _optimizer,
    "pipeline_config": _pipeline,
    "strategy_ckpt_config": _checkpoint,
}


def context_fault(key: str, value: Value) -> Veto | None:
    """The refusal of one argument by set_context."""
    if isinstance(value, OPAQUE_VALUES):
        return None
    if key == "max_device_memory":
        if not isinstance(value, str):
            return Veto(TypeError(f"The parameter 'max_device_memory' must be str, but got {type(value)}"))
        if not MEMORY.fullmatch(value) or float(value[:-2]) == 0:
            return Veto(ValueError(f"'max_device_memory' must be a string such as '5GB', but got {value}."))
    if key == "mode" and value not in (0, 1):
        return Veto(ValueError(f"'mode' must be 0 or 1, but got {value}."))
    return None


def memory_fault(key: str, value: Value) -> Veto | None:
    """The refusal of one argument by mindspore.runtime.set_memory (mindspore/runtime/memory.py)."""
    if isinstance(value, OPAQUE_VALUES):
        return None
    if not isinstance(value, str):
        return Veto(TypeError(f"The parameter '{key}' must be str, but got {type(value)}"))
    if key == "optimize_level" and value not in ("O0", "O1"):
        return Veto(ValueError(f"The optimize_level must be one of ['O0', 'O1'], but got {value}."))
    if key in ("init_size", "increase_size", "max_size") and (not MEMORY.fullmatch(value) or value == "0.0GB"):
        return Veto(ValueError(f"'{key}' must be a string such as '5GB', but got {value}."))
    return None


def coefficient_fault(value: Value) -> Veto | None:
    """Invalid values of the memory coefficient of a matrix product."""
    if isinstance(value, OPAQUE_VALUES):
        return None
    if not isinstance(value, (int, float)):
        return Veto(TypeError(f"set_rp_matmul_mem_coef(): incompatible function arguments: {value!r}"))
    return Veto(RuntimeError(f"the coefficient must be positive, but got {value}")) if value <= 0 else None
