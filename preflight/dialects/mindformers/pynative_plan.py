"""A pynative config in neutral terms."""

from __future__ import annotations

from typing import Any

from preflight.dialects.mindformers.pynative_derive import Derived, whole
from preflight.dialects.mindformers.pynative_shape import make_model, net, sound
from preflight.dialects.mindformers.unmodelled import STREAMS
from preflight.run.arguments import Arguments
from preflight.run.plan import Batch, Inference, Layout, Optimizer, Plan, Precision
from preflight.run.recomputation import Recompute
from preflight.run.request import Target
from preflight.run.value import Value, default, derived, unknown

_DTYPES = {"float32": "fp32", "fp32": "fp32", "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16"}
_SCHEDULES = {"1f1b": "1f1b", "interleaved_1f1b": "interleaved", "gpipe": "gpipe"}


def make_plan(target: Target, arguments: Arguments, found: Derived) -> Plan:
    """The plan of a run."""
    mode = arguments.get("run_mode")
    return Plan(
        target=target,
        model=make_model(arguments),
        layout=_layout(arguments, found),
        batch=Batch(
            micro=sound(arguments.get("training.local_batch_size")),
            count=found.values["micro_batches"],
            total=sound(found.values["first_batch"]),
        ),
        recompute=_recompute(arguments),
        precision=_precision(arguments),
        optimizer=_optimizer(arguments),
        inference=Inference(enabled=mode.derived(mode.raw == "predict", "run_mode")),
        unmodelled=_unmodelled(arguments),
    )


def _layout(a: Arguments, found: Derived) -> Layout:
    chunks = sound(a.get("parallelism.pipeline_parallel_interleave_num"))
    pipeline = whole(a.get("parallelism.pipeline_parallel"))
    virtual = chunks if (whole(chunks) or 1) > 1 and (pipeline or 1) > 1 else default(None)
    schedule = found.values["schedule"]
    name = _SCHEDULES.get(schedule.raw) if isinstance(schedule.raw, str) else None
    return Layout(
        world=found.values["world"],
        data=found.values["data_parallel"],
        tensor=_degree(a, "tensor_parallel"),
        pipeline=_degree(a, "pipeline_parallel"),
        context=_degree(a, "context_parallel"),
        expert=_degree(a, "expert_parallel"),
        expert_tensor=derived(1, "experts are sharded by FSDP"),
        only_expert_tensor=1,
        virtual=virtual,
        sequence_parallel=a.get("parallelism.sequence_parallel"),
        tensor_x=default(None),
        stages=found.values["stages"],
        schedule=schedule.derived(name, "pipeline_parallel_schedule")
        if name
        else unknown("the schedule is not one that is known"),
        sequence_splits=default(None),
        heads_split=attention_variant(a) != "dsv4_hybrid",  # it splits the query projection
    )


def _degree(a: Arguments, name: str) -> Value:
    """A parallel degree; one that is refused anyway is not known."""
    value = a.get(f"parallelism.{name}")
    size = whole(value)
    return value if size is not None and size >= 1 else unknown(f"{name} is not a positive integer")


def _recompute(a: Arguments) -> Recompute:
    mode = a.get("recompute.mode")
    names = {"None": "none", "full": "full", "select": "selective"}
    modules = a.get("recompute.select_module").raw
    return Recompute(
        mode=mode.derived(names[mode.raw], "recompute.mode")
        if isinstance(mode.raw, str) and mode.raw in names
        else unknown("recompute.mode is none that is known"),
        method=default(None),
        layers=default(None),
        modules=derived(tuple(str(name) for name in modules), "select_module")
        if isinstance(modules, dict)
        else default(()),
        offload=a.get("swap.enable"),
    )


def _precision(a: Arguments) -> Precision:
    def kind(field: str) -> Value:
        value = net(a, field)
        raw: Any = value.raw
        return (
            value.derived(_DTYPES[raw], field)
            if isinstance(raw, str) and raw in _DTYPES
            else unknown(f"{field} is not known")
        )

    parameters = kind("params_dtype")
    master = derived("fp32", "always kept for 16-bit weights") if parameters.raw in ("bf16", "fp16") else default(None)
    return Precision(
        parameters=parameters,
        compute=kind("compute_dtype"),
        gradients=parameters,
        master=master if parameters.known else unknown(),
        states=derived("fp32"),
        fp8=default(None),
    )


def _optimizer(a: Arguments) -> Optimizer:
    kind = a.get("optimizer.type")
    names = {"AdamW": "adam", "Muon": "muon"}
    shard, context = whole(a.get("parallelism.data_parallel_shard")), whole(a.get("parallelism.context_parallel"))
    limit = whole(a.get("parallelism.dense_fsdp_shard_size"))
    region = shard * context if shard is not None and context is not None else None
    tensor, expert = whole(a.get("parallelism.tensor_parallel")), whole(a.get("parallelism.expert_parallel"))
    experts = region * tensor // expert if region is not None and tensor and expert and expert > 0 else None
    return Optimizer(
        name=kind.derived(names[kind.raw], "optimizer.type")
        if isinstance(kind.raw, str) and kind.raw in names
        else unknown("optimizer.type is none that is known"),
        zero=derived(3, "FSDP"),
        shards=derived(limit or region, "FSDP shard x context")
        if region is not None
        else unknown("the shard degree is not known"),
        expert_shards=derived(experts, "FSDP shard x context x tensor / expert")
        if experts
        else unknown("the expert shard degree is not known"),
        offload=derived(1.0 if a.get("parallelism.cpu_offload").raw is True else 0.0, "cpu_offload"),
        fsdp=derived("pynative"),
    )


def attention_variant(a: Arguments) -> str:
    """The experimental attention of the network, "" for the usual one."""
    name = net(a, "experimental_attention_variant").raw
    return name if isinstance(name, str) else ""


def _unmodelled(a: Arguments) -> tuple[str, ...]:
    found = (STREAMS,) if net(a, "enable_hyper_connections").raw is True else ()
    return (*found, *(("another kind of attention",) if attention_variant(a) else ()))
