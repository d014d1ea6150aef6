"""A pynative config in neutral terms: its network, layout and training."""

from __future__ import annotations

from preflight.dialects.mindformers.graph_plan import STREAMS, find_untimed
from preflight.dialects.mindformers.pynative_derived import MOST_LAYERS, Derived, whole
from preflight.loaders.document import Unknown
from preflight.run.arguments import Arguments
from preflight.run.request import Target
from preflight.run.training_plan import Batch, Inference, Layout, Model, Optimizer, Plan, Precision, Recompute
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Value, default, derived, unknown
from preflight.source.record import replace
from preflight.source.typing_without_import import Any

# fmt: off
_SIZES = frozenset(
    (
        *("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "ffn_hidden_size",
            "vocab_size", "seq_length"),
        *("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim", "num_moe_experts",
            "moe_router_topk"),
        *("moe_ffn_hidden_size", "shared_expert_num", "mtp_num_layers"),
    )
)
# fmt: on


def net(arguments: Arguments, field: str) -> Value:
    """A field of the network; a size that is not an integer is reported elsewhere, and unknown here."""
    value = arguments.get(f"net.{field}")
    return sound(value) if field in _SIZES else value


def sound(value: Value) -> Value:
    """A size, or unknown if the value is not one."""
    return (
        value
        if value.raw is None or isinstance(value.raw, Unknown) or whole(value) is not None
        else unknown(f"{value.raw!r} is not an integer")
    )


def make_model(a: Arguments) -> Model:
    """The network's shape."""
    return _experts(a, _attention(a, _shape(a)))


def _shape(a: Arguments) -> Model:
    heads, hidden = whole(net(a, "num_attention_heads")), whole(net(a, "hidden_size"))
    width = net(a, "kv_channels")
    if whole(width) is None and heads and hidden:
        width = derived(hidden // heads, "hidden / heads")
    return Model(
        family=a.get("model.model_type"),
        layers=_layers(a),
        hidden=net(a, "hidden_size"),
        heads=net(a, "num_attention_heads"),
        head_dim=width,
        ffn=net(a, "ffn_hidden_size"),
        gated=_gated(a),
        vocab=net(a, "vocab_size"),
        sequence=_sequence(a),
        positions=default(0),
        tied=net(a, "tie_word_embeddings"),
        bias=net(a, "add_bias_linear"),
        norm=default("rms"),
        hidden_dropout=net(a, "hidden_dropout"),
        lora_rank=a.get("lora_config.lora_rank") if "lora_config" in a.written else default(None),
        kernels=derived("mindspore"),
        cross_entropy=derived("mindspore"),
        dispatcher=a.get("parallelism.moe_token_dispatcher_type"),
        grouped_gemm=derived(True),
    )


def _attention(a: Arguments, model: Model) -> Model:
    latent, groups = net(a, "multi_latent_attention"), net(a, "num_query_groups")
    return replace(
        model,
        query_groups=model.heads if latent.raw is True or groups.raw is None else groups,
        qkv_bias=net(a, "add_qkv_bias"),
        qk_norm=net(a, "qk_layernorm"),
        attention_dropout=net(a, "attention_dropout"),
        attention=derived("flash" if net(a, "use_flash_attention").raw is True else "unfused", "use_flash_attention"),
        latent=latent,
        q_lora_rank=net(a, "q_lora_rank"),
        kv_lora_rank=net(a, "kv_lora_rank"),
        qk_nope_dim=net(a, "qk_head_dim"),
        qk_rope_dim=net(a, "qk_pos_emb_head_dim"),
        v_dim=net(a, "v_head_dim"),
    )


def _experts(a: Arguments, model: Model) -> Model:
    experts = net(a, "num_moe_experts")
    return replace(
        model,
        experts=experts,
        top_k=net(a, "moe_router_topk"),
        expert_ffn=net(a, "moe_ffn_hidden_size"),
        shared_ffn=_shared(a),
        expert_layers=_mixture(a, whole(model.layers), experts),
        capacity=default(None),
        mtp=net(a, "mtp_num_layers"),
    )


def _layers(a: Arguments) -> Value:
    """Decoder layers; unrealistically large numbers are ignored."""
    value = net(a, "num_layers")
    count = whole(value)
    return value if count is None or 0 < count <= MOST_LAYERS else unknown(f"{count} is not a number of layers")


def _gated(a: Arguments) -> Value:
    gated = net(a, "gated_linear_unit")
    return derived(True, "qwen3 is gated") if a.get("model.model_type").raw == "qwen3" and not gated.written else gated


def _sequence(a: Arguments) -> Value:
    own = a.given("net.seq_length") or a.given("train_dataset.dataloader.config.seq_length")
    return sound(own) if own is not None else unknown("seq_length is not given")


def _shared(a: Arguments) -> Value:
    given = a.given("net.moe_shared_expert_intermediate_size")
    if given is not None and given.raw is not None:
        return sound(given)
    count, width = whole(net(a, "shared_expert_num")), whole(net(a, "moe_ffn_hidden_size"))
    return (
        derived(count * width, "shared experts × expert width")
        if count is not None and width is not None
        else unknown("not given")
    )


def _mixture(a: Arguments, layers: int | None, experts: Value) -> Value:
    """The decoder layers that hold experts."""
    if layers is None or not 0 < layers <= MOST_LAYERS:
        return unknown("the number of layers is unknown")
    if experts.raw in (None, 0):
        return derived((False,) * layers, "dense")
    dense, each = whole(net(a, "first_k_dense_replace")), net(a, "moe_layer_freq").raw
    if isinstance(experts.raw, Unknown):
        return unknown("the number of experts is unknown")
    if dense:
        return derived(tuple(i >= dense for i in range(layers)), "first_k_dense_replace")
    if isinstance(each, list) and len(each) == layers:
        return derived(tuple(bool(n) for n in each), "moe_layer_freq")
    return (
        derived(tuple(i % each == 0 for i in range(layers)), "moe_layer_freq")
        if isinstance(each, int) and each > 0
        else unknown("moe_layer_freq")
    )


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
        untimed=find_untimed(arguments.written),
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
        schedule=schedule.derived(name, "pipeline_parallel_schedule") if name else unknown("the schedule is unknown"),
        sequence_splits=default(None),
        heads_split=attention_variant(a) != "dsv4_hybrid",  # only this attention splits the query projection
    )


def _degree(a: Arguments, name: str) -> Value:
    """A parallel degree; one that is refused anyway is unknown."""
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
        else unknown("recompute.mode is unknown"),
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
            else unknown(f"{field} is unknown")
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
        else unknown("optimizer.type is unknown"),
        zero=derived(3, "FSDP"),
        shards=derived(limit or region, "FSDP shard × context")
        if region is not None
        else unknown("the shard degree is unknown"),
        expert_shards=derived(experts, "FSDP shard × context × tensor / expert")
        if experts
        else unknown("the expert shard degree is unknown"),
        offload=derived(1.0 if a.get("parallelism.cpu_offload").raw is True else 0.0, "cpu_offload"),
        fsdp=derived("pynative"),
    )


def attention_variant(a: Arguments) -> str:
    """The experimental attention of the network, "" for the standard one."""
    name = net(a, "experimental_attention_variant").raw
    return name if isinstance(name, str) else ""


def _unmodelled(a: Arguments) -> tuple[Unmodelled, ...]:
    found = (STREAMS,) if net(a, "enable_hyper_connections").raw is True else ()
    return (*found, *((Unmodelled.OTHER_ATTENTION,) if attention_variant(a) else ()))
