"""Another parallel layout in MindFormers' keys: graph mode states data parallelism, pynative derives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from preflight.run.arguments import REMOVE, Arguments
from preflight.run.training_plan import Sizes
from preflight.source.finding import Edit

_GRAPH = {
    "parallel_config.data_parallel": "data",
    "parallel_config.model_parallel": "tensor",
    "parallel_config.pipeline_stage": "pipeline",
    "parallel_config.context_parallel": "context",
    "parallel_config.expert_parallel": "expert",
    "runner_config.batch_size": "micro",
}
_PYNATIVE = {
    "parallelism.tensor_parallel": "tensor",
    "parallelism.pipeline_parallel": "pipeline",
    "parallelism.context_parallel": "context",
    "parallelism.expert_parallel": "expert",
    "parallelism.pipeline_parallel_interleave_num": "virtual",
    "training.local_batch_size": "micro",
}


def relayout(arguments: Arguments, *, pynative: bool = False) -> Callable[[Sizes], tuple[Edit, ...]]:
    """The function that writes Sizes as edits of the keys that differ from those of the run."""
    return partial(_edits, arguments, pynative)


def _edits(arguments: Arguments, pynative: bool, sizes: Sizes) -> tuple[Edit, ...]:
    wanted: dict[str, object] = {
        name: getattr(sizes, field) for name, field in (_PYNATIVE if pynative else _GRAPH).items()
    }
    if pynative:
        wanted |= {"parallelism.sequence_parallel": True} if sizes.tensor > 1 else {}
    else:
        wanted |= (
            (_accumulation(sizes) if sizes.micro_batches else {})
            | _interleave(arguments, sizes)
            | _recompute(arguments, sizes)
        )
        wanted |= {"parallel_config.use_seq_parallel": sizes.sequence_parallel} if sizes.tensor > 1 else {}
        wanted |= {"parallel.enable_parallel_optimizer": True} if sizes.sharded else {}
        wanted |= {"model.model_config.use_flash_attention": True} if sizes.fused == "attention" else {}
    return tuple(
        edit
        for name, value in wanted.items()
        if _differs(arguments, name, value)
        for edit in arguments.put(name, value)
    )


def _differs(arguments: Arguments, name: str, value: object) -> bool:
    given = arguments.given(name)
    if value is REMOVE:
        return given is not None
    now = given if given is not None else arguments.get(name)
    if not now.known or now.raw is None:
        return given is not None or value is True or value not in (1, False, 0)
    return type(now.raw) is not type(value) or bool(now.raw != value)


def _accumulation(sizes: Sizes) -> dict[str, object]:
    """Micro-batches are accumulated by micro_batch_num in a pipeline and by gradient_accumulation_steps otherwise."""
    if sizes.pipeline > 1:
        return {"parallel_config.micro_batch_num": sizes.micro_batches}
    return {"runner_config.gradient_accumulation_steps": sizes.micro_batches}


def _interleave(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    """Interleaving needs both switches; the offsets must match the chunks of the stages."""
    given = arguments.given("model.model_config.pp_interleave_num")
    now = (
        given.raw
        if given is not None and arguments.get("parallel.pipeline_config.pipeline_interleave").raw is True
        else 1
    )
    if (
        now == sizes.virtual
        and not _differs(arguments, "parallel_config.pipeline_stage", sizes.pipeline)
        and not (sizes.stages or sizes.chunks)
    ):
        return {}
    wanted: dict[str, object] = {}
    if sizes.virtual > 1 and now != sizes.virtual:
        switches: dict[str, object] = {"pipeline_interleave": True, "pipeline_scheduler": "1f1b"}
        names = {f"parallel.pipeline_config.{name}": value for name, value in switches.items()}
        section = any(arguments.given(name) is not None for name in names)
        wanted = {
            **(names if section else {"parallel.pipeline_config": switches}),
            "model.model_config.pp_interleave_num": sizes.virtual,
        }
    elif sizes.virtual == 1 and given is not None:
        wanted = {"model.model_config.pp_interleave_num": 1}
    offset = _offset(sizes.stages) if sizes.chunks is None else _offsets(sizes.chunks)
    if arguments.given("model.model_config.offset") is not None or offset:
        wanted["model.model_config.offset"] = offset
    return wanted


def _offset(stages: tuple[int, ...] | None) -> object:
    """Layers of each stage beyond an even share; 0 if all are equal."""
    if not stages or len(set(stages)) == 1:
        return 0
    share = sum(stages) // len(stages)
    return [layers - share for layers in stages]


def _offsets(chunks: tuple[tuple[int, ...], ...]) -> object:
    """The same by virtual stage."""
    share = sum(map(sum, chunks)) // (len(chunks) * len(chunks[0]))
    return [[layers - share for layers in row] for row in chunks]


def _recompute(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    """Full recomputation as a switch or as counts per stage; selective as the framework's default patterns."""
    stages_change = _differs(arguments, "parallel_config.pipeline_stage", sizes.pipeline)
    now = arguments.get("recompute_config.recompute")
    listed = isinstance(now.raw, list) if now.known else False
    if sizes.listed is not None:
        whole = list(sizes.full_layers or ())
        return {
            "recompute_config.recompute": whole if any(whole) else False,
            "recompute_config.select_recompute": {pattern: list(sizes.listed) for pattern in _cheap(arguments)},
        }
    if sizes.full_layers is not None:
        return {"recompute_config.recompute": list(sizes.full_layers)}
    if sizes.recompute == "full":
        return {} if listed and not stages_change else {"recompute_config.recompute": True}
    if listed and not stages_change:
        return {}
    selective = sizes.recompute == "selective"
    if selective and _everywhere(arguments.get("recompute_config.select_recompute").raw):
        return {"recompute_config.recompute": False}
    return {"recompute_config.recompute": False, "recompute_config.select_recompute": selective}


def _cheap(arguments: Arguments) -> tuple[str, ...]:
    """Patterns of the activation and the product of a gated MLP, including the reshapes around the linears."""
    legacy = arguments.given("use_legacy")
    if legacy is not None and legacy.raw is False:
        return (r"mlp\.mul", r"mlp\.activation_func\.silu")
    concat = arguments.given("model.model_config.qkv_concat")
    if concat is not None and concat.raw is True:
        return (
            r"feed_forward\.mul",
            r"feed_forward\.activate\.silu",
            r"feed_forward\.w2\.reshape",
            r"feed_forward\.reshape",
        )
    return (
        r"feed_forward\.mul",
        r"feed_forward\.w1\.activation\.silu",
        r"feed_forward\.w1\.reshape",
        r"feed_forward\.w2\.reshape",
    )


def _everywhere(patterns: object) -> bool:
    """Whether named operators are recomputed in every stage, so that the setting is valid for any number of stages."""
    flags = list(patterns.values()) if isinstance(patterns, Mapping) else patterns if isinstance(patterns, list) else []
    return bool(flags) and all(flag is True or isinstance(flag, str) for flag in flags)
