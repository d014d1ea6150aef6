"""The plan of a graph-mode config, and the features for which its step time has no term."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.dialects.mindformers.graph_namespace import TRAINING, Run
from preflight.dialects.mindformers.layout import AUTOMATIC, Spread, full_layers, virtual
from preflight.dialects.mindformers.network_shape import precision, whole
from preflight.loaders.document import Unknown
from preflight.run.request import Target
from preflight.run.training_plan import Batch, Inference, Layout, Model, Optimizer, Plan, Precision, Recompute
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Value, derived, unknown
from preflight.run.version_ranges import matches
from preflight.source.record import replace

UNTIMED: dict[Unmodelled, str] = {
    Unmodelled.SAMPLES_OF_ANY_LENGTH: "is_dynamic",
    Unmodelled.SEVERAL_SAMPLES_IN_ONE: "use_eod_reset eod_reset",
    Unmodelled.OFFLOAD_OF_STATES: "cpu_offload cpu_offloading layer_swap op_swap",
    Unmodelled.DETERMINISTIC_KERNELS: "train_precision_sync deterministic",
    Unmodelled.EXPERT_TRICKS: "comp_comm_parallel enable_deredundency enable_cold_hot_expert enable_sdrop "
    "enable_expert_relocation moe_shared_expert_overlap group_wise_a2a balanced_load use_allgather_dispatcher "
    "moe_pad_expert_input_to_capacity expert_parallel_async_d2h use_fused_ops_permute use_fused_ops_topkrouter "
    "moe_permute_fusion moe_router_fusion moe_enable_deepep moe_router_force_expert_balance ep_extend_tp",
    Unmodelled.COMMUNICATION_TRICKS: "enable_mc2 fine_grain_interleave compute_in_2d micro_batch_interleave_num "
    "context_parallel_async pipeline_parallel_overlap_b_f pipeline_parallel_enable_dxdw_split "
    "pipeline_parallel_overlap_p2p pipeline_parallel_p2p_transport "
    "reshard_after_forward_policy data_parallel_shard_strategy cp_comm_type",
    Unmodelled.MIXED_PRECISIONS: "fp32_residual_connection quantization_config quant quant_config",
    Unmodelled.ATTENTION_VARIANTS: "nope_layer_interval window_size window_attn_skip_freq",
    Unmodelled.CHOSEN_BY_THE_FRAMEWORK: "auto_pipeline search_mode",
    Unmodelled.CHECKS_OF_EACH_STEP: "profile track_max_attention_logit save_token_distribution callback_moe_droprate "
    "print_expert_load monitor_local_loss monitor_device_local_loss monitor_on moe_monitor dump_path save_graphs",
}
"""By feature: keys of any section that switch it on."""
FUSED = ("fused_rms_norm", "fused_norm", "bias_swiglu_fusion", "apply_rope_fusion", "masked_softmax_fusion")
"""Keys that are on by default."""
SAVES, SAVE_KEY = 100, "save_checkpoint_steps"
OFF = (None, False, 0, 1, "", "OFF", "off")


def find_untimed(written: Mapping[str, Value]) -> tuple[Unmodelled, ...]:
    """The features that are on, as far as the config sets their keys itself."""
    given = {name.rpartition(".")[2]: name for name in written}
    found = [
        feature for feature, keys in UNTIMED.items()
        if any(_is_on(written[given[key]]) for key in keys.split() if key in given)
    ]  # fmt: skip
    if any(key in given and written[given[key]].raw is False for key in FUSED):
        found.append(Unmodelled.UNFUSED_OPERATORS)
    each = written[given[SAVE_KEY]].raw if SAVE_KEY in given else 0
    if isinstance(each, int) and 0 < each < SAVES:
        found.append(Unmodelled.FREQUENT_SAVES)
    return tuple(found)


def _is_on(value: Value) -> bool:
    if not value.known or isinstance(value.raw, (list, tuple, dict)):
        return value.known and bool(value.raw)
    return value.raw is True or value.raw not in OFF


SEARCHED = Unmodelled.SHARDING_THAT_IS_SEARCHED
STREAMS = Unmodelled.HYPER_CONNECTIONS


def unmodelled(run: Run) -> tuple[Unmodelled, ...]:
    """Every reason."""
    searched = (SEARCHED,) if run.raw("parallel_mode") == "auto_parallel" else ()
    streams = (STREAMS,) if run.raw("mcore.enable_hyper_connections") is True else ()
    return (*switched_off(run), *searched, *streams)


def switched_off(run: Run) -> tuple[Unmodelled, ...]:
    """A layout for many devices under use_parallel: False is usually enabled on the command line; such values have no
    effect on memory."""
    off = run.written.get("use_parallel") is not None and run.raw("use_parallel") is False
    sizes = [
        run.written.get(f"parallel_config.{name}") for name in ("data_parallel", "model_parallel", "pipeline_stage")
    ]
    many = any(size is not None and isinstance(size.raw, int) and size.raw > 1 for size in sizes)
    return (Unmodelled.LAYOUT_SWITCHED_OFF,) if off and many else ()


_SCHEDULES = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "seqpipe": "seqpipe",
    "seqvpp": "seqvpp",
    "seqsmartvpp": "seqsmartvpp",
    "zero_bubble_v": "zero-bubble-v",
}
_LEVELS = {"level1": 1, "level2": 2, "level3": 3}
ONE_BY_ONE = 1 << 20
"""Maximum number of parts that are each a single parameter."""


def make_plan(run: Run, target: Target, model: Model, laid: Spread | None) -> Plan:
    """The parts of the plan that the config determines."""
    return Plan(
        target=target,
        model=replace(model, **_kernels(run)),
        layout=_layout(run, model, laid),
        batch=_batch(run),
        recompute=_recompute(run, laid),
        precision=_precision(run),
        optimizer=_optimizer(run, model.experts),
        inference=_inference(run),
        unmodelled=unmodelled(run),
        untimed=find_untimed(run.written),
    )


def _kernels(run: Run) -> dict[str, Value]:
    """The backend on which MindSpore runs the layers, and the implementation of experts."""
    mcore = run.kind == "mcore"
    return {
        "kernels": derived("mindspore"),
        "cross_entropy": derived("mindspore"),
        "dispatcher": run.value("mcore.moe_token_dispatcher_type") if mcore else derived("alltoall"),
        "grouped_gemm": run.value("mcore.moe_grouped_gemm" if mcore else "moe_config.use_gmm"),
    }


def degree(run: Run, name: str) -> Value:
    """A parallel size of at least 1; anything else is unknown, and another rule reports it."""
    value = run.value(f"parallel_config.{name}")
    if not value.known:
        return value
    if isinstance(value.raw, bool) or not isinstance(value.raw, int) or value.raw < 1:
        return unknown(f"{name} is {value.raw!r}")
    return value


def _layout(run: Run, model: Model, laid: Spread | None) -> Layout:
    mode = run.raw("parallel_mode")
    count, (data, tensor, pipeline, context) = _degrees(run, mode)
    expert = degree(run, "expert_parallel")
    experts = model.experts
    if mode not in AUTOMATIC or (run.kind == "legacy" and experts.known and not experts.raw):
        expert = expert.derived(1, "has no effect without experts") if expert.known and expert.raw != 1 else expert
    chunks = virtual(run)
    return Layout(
        world=count,
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        expert_tensor=derived(1) if run.kind == "mcore" else tensor,
        virtual=unknown("pp_interleave_num is not usable")
        if chunks is None
        else derived(chunks if chunks > 1 else None),
        sequence_parallel=run.value("parallel_config.use_seq_parallel"),
        stages=derived(laid.stages, "layers over stages, plus offset")
        if laid and laid.stages
        else unknown("the layers per stage are unknown"),
        schedule=_schedule(run),
        sequence_splits=whole(run.value("parallel_config.seq_split_num")),
        deferred=derived(0),
        data_stated=True,
        only_expert_tensor=int(run.kind == "mcore"),
        split="any",
    )


def _degrees(run: Run, mode: object) -> tuple[Value, tuple[Value, ...]]:
    """The number of devices; data, tensor, pipeline and context parallel."""
    count, names = run.value("world_size"), ("model_parallel", "pipeline_stage", "context_parallel")
    if isinstance(mode, Unknown):
        return count, (unknown(mode.because),) * 4
    if mode in AUTOMATIC:
        automatic = mode == "auto_parallel"
        data = unknown("auto_parallel chooses the sharding") if automatic else degree(run, "data_parallel")
        return count, (data, *(degree(run, name) for name in names))
    if run.true("use_parallel") and run.raw("run_mode") == "predict":
        data = unknown("the serving layout is not checked against the devices")
        return count, (data, *(degree(run, name) for name in names))
    count = derived(1, "every process runs independently") if mode == "stand_alone" else count
    return count, (count, *(_alone(run, name) for name in names))


def _alone(run: Run, name: str) -> Value:
    """A degree that this mode does not use."""
    value = run.value(f"parallel_config.{name}")
    return value.derived(1, "has no effect in this mode") if value.known and value.raw != 1 else value


def _schedule(run: Run) -> Value:
    asked = run.value("parallel.pipeline_config.pipeline_scheduler")
    if not asked.known:
        return asked
    return asked.derived(_SCHEDULES.get(asked.raw, "1f1b"), "") if isinstance(asked.raw, str) else derived("1f1b")


def _batch(run: Run) -> Batch:
    pipeline, mode = run.number("parallel_config.pipeline_stage"), run.raw("parallel_mode")
    if pipeline is None or isinstance(mode, Unknown):
        count = unknown("the pipeline stages are unknown")
    else:
        count = run.value(
            "parallel_config.micro_batch_num" if pipeline > 1 else "runner_config.gradient_accumulation_steps"
        )
        if isinstance(count.raw, bool) or not isinstance(count.raw, int) or count.raw < 1:
            count = unknown("the number of micro-batches is not usable")
    return Batch(
        micro=whole(run.value("runner_config.batch_size")),
        count=count,
        total=run.value("global_batch_size"),
        mask_from_loader=derived(False),
    )


def _recompute(run: Run, laid: Spread | None) -> Recompute:
    full, selected = run.value("recompute_config.recompute"), run.value("recompute_config.select_recompute")
    swap = run.value("swap_config.swap")
    if run.value("training").raw is False:
        return Recompute(
            mode=derived("none"), method=derived(None), layers=derived(None), full_layers=derived(None), offload=swap
        )
    known = laid is not None and laid.stages is not None and full.known and swap.known
    counts = full_layers(full.raw, laid.stages, ids=bool(swap.raw)) if known and laid and laid.stages else None
    whole = bool(full.raw) if full.known else None
    mode = (
        unknown(full.because)
        if whole is None
        else derived("full" if whole else "selective" if selected.known and selected.raw else "none")
    )
    return Recompute(
        mode=mode,
        method=derived(None),
        layers=derived(None),
        full_layers=derived(counts) if counts is not None else unknown("the recomputed layers per stage are unknown"),
        offload=swap,
    )


def _precision(run: Run) -> Precision:
    legacy = run.kind == "legacy"
    weights = precision(run.raw("model.model_config.param_init_type" if legacy else "mcore.params_dtype"))
    compute = precision(run.raw("model.model_config.compute_dtype" if legacy else "mcore.compute_dtype"))
    return Precision(
        parameters=weights,
        compute=compute,
        gradients=weights if accumulates(run) else derived("none"),
        master=derived(None),
        states=derived("fp32"),
        fp8=derived(None),
        fp8_parameters=derived(False),
    )


def accumulates(run: Run) -> bool:
    """Whether gradients are kept between micro-batches; otherwise each is reduced immediately."""
    stages, steps = run.raw("parallel_config.pipeline_stage"), run.raw("runner_config.gradient_accumulation_steps")
    return (isinstance(stages, int) and stages > 1) or (isinstance(steps, int) and steps > 1)


def _optimizer(run: Run, experts: Value) -> Optimizer:
    name = run.value("optimizer.type")
    on = run.value("parallel.enable_parallel_optimizer")
    level = run.raw("parallel.parallel_optimizer_config.optimizer_level")
    zero = (_LEVELS.get(level, 1) if isinstance(level, str) else 1) if on.known and on.raw else 0
    if zero and run.raw("parallel.parallel_optimizer_config.gradient_accumulation_shard") is True:
        zero = max(zero, 2)
    shard, same = run.number("parallel.parallel_optimizer_config.optimizer_weight_shard_size"), _same(run)
    ranks = 1 if not zero else shard if shard is not None and shard > 0 else same
    return Optimizer(
        name=derived("adam")
        if not name.known or name.raw is None or "adam" in str(name.raw).lower()
        else name.derived(str(name.raw).lower(), ""),
        zero=derived(zero) if on.known else on,
        shards=derived(ranks) if ranks is not None else unknown("data_parallel is unknown"),
        expert_shards=_expert_shards(run, experts, ranks),
        weights_sharded=derived(bool(zero)),
        gradient_fusion=derived(False),
        offload=derived(0),
        swapped=_swapped(run, name),
        fsdp=derived(None),
    )


def _swapped(run: Run, name: Value) -> Value:
    """Since 1.7, AdamW's moments may be on the host and are copied to the device one parameter at a time (v1.7.0,
    core/optim/adamw.py:181, fused_adamw.py:193)."""
    able = name.raw in ("AdamW", "PmaAdamW") and matches(run.table.version, ">=1.7")
    return derived(ONE_BY_ONE if able and run.raw("optimizer.swap") is True else 0)


def _same(run: Run) -> int | None:
    """Ranks of a stage with the same slice of a dense weight, which optimizer parallelism divides: data x context
    parallel."""
    data, context = run.number("parallel_config.data_parallel"), run.number("parallel_config.context_parallel")
    return data * context if data and context else data


def _expert_shards(run: Run, experts: Value, ranks: int | None) -> Value:
    """Ranks with the same experts divide them further if each gets whole ones: optimizer parallelism splits the first
    dimension."""
    expert, same = run.number("parallel_config.expert_parallel"), _same(run)
    if not isinstance(experts.raw, int) or not expert or not same or not ranks or expert < 1:
        return derived(1)
    most = min(same // expert, ranks)
    return derived(most if most > 1 and experts.raw % expert == 0 and (experts.raw // expert) % most == 0 else 1)


def _inference(run: Run) -> Inference:
    mode = run.value("run_mode")
    enabled = mode.derived(mode.raw not in TRAINING, "run_mode") if mode.known else mode
    legacy = run.kind == "legacy"
    return Inference(
        enabled=enabled,
        batch=whole(run.value("model.model_config.batch_size" if legacy else "predict_batch_size")),
        length=whole(run.value("model.model_config.seq_length" if legacy else "mcore.seq_length")),
        block_size=whole(run.value("model.model_config.block_size" if legacy else "mcore.block_size")),
        blocks=whole(run.value("model.model_config.num_blocks" if legacy else "mcore.num_blocks")),
    )
