"""A pynative config in neutral terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from preflight.arguments import Arguments
from preflight.dialects.mindformers.pynative_derive import MOST_LAYERS, Derived, whole
from preflight.document import Unknown
from preflight.plan import Batch, Inference, Layout, Loss, Model, Optimizer, Plan, Precision, Recompute
from preflight.request import Target
from preflight.value import Value, default, derived, unknown

_DTYPES = {"float32": "fp32", "fp32": "fp32", "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16"}
_SIZES = frozenset(
    (
        *("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "ffn_hidden_size", "vocab_size", "seq_length"),
        *("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim", "num_moe_experts", "moe_router_topk"),
        *("moe_ffn_hidden_size", "shared_expert_num", "mtp_num_layers"),
    )
)
_SCHEDULES = {"1f1b": "1f1b", "interleaved_1f1b": "interleaved", "gpipe": "gpipe"}


def make_plan(target: Target, arguments: Arguments, found: Derived) -> Plan:
    """The plan of a run."""
    mode = arguments.get("run_mode")
    return Plan(
        target=target,
        model=_model(arguments),
        layout=_layout(arguments, found),
        batch=Batch(micro=sound(arguments.get("training.local_batch_size")), count=found.values["micro_batches"], total=sound(found.values["first_batch"])),
        recompute=_recompute(arguments),
        precision=_precision(arguments),
        optimizer=_optimizer(arguments),
        loss=_loss(arguments),
        inference=Inference(enabled=mode.derived(mode.raw == "predict", "run_mode")),
        unmodelled=_unmodelled(arguments),
    )


def _net(arguments: Arguments, field: str) -> Value:
    """A field of the network; a size that is no integer is refused elsewhere, and not known here."""
    value = arguments.get(f"net.{field}")
    return sound(value) if field in _SIZES else value


def sound(value: Value) -> Value:
    """A size, or unknown where something else was typed."""
    return value if value.raw is None or isinstance(value.raw, Unknown) or whole(value) is not None else unknown(f"{value.raw!r} is no integer")


def _model(a: Arguments) -> Model:
    return _experts(a, _attention(a, _shape(a)))


def _shape(a: Arguments) -> Model:
    heads, hidden = whole(_net(a, "num_attention_heads")), whole(_net(a, "hidden_size"))
    width = _net(a, "kv_channels")
    if whole(width) is None and heads and hidden:
        width = derived(hidden // heads, "hidden / heads")
    return Model(
        family=a.get("model.model_type"),
        layers=_net(a, "num_layers"),
        hidden=_net(a, "hidden_size"),
        heads=_net(a, "num_attention_heads"),
        head_dim=width,
        ffn=_net(a, "ffn_hidden_size"),
        gated=_gated(a),
        vocab=_net(a, "vocab_size"),
        sequence=_sequence(a),
        positions=default(0),
        tied=_net(a, "tie_word_embeddings"),
        bias=_net(a, "add_bias_linear"),
        norm=default("rms"),
        hidden_dropout=_net(a, "hidden_dropout"),
        lora_rank=a.get("lora_config.lora_rank") if "lora_config" in a.written else default(None),
    )


def _attention(a: Arguments, model: Model) -> Model:
    latent, groups = _net(a, "multi_latent_attention"), _net(a, "num_query_groups")
    return replace(
        model,
        query_groups=model.heads if latent.raw is True or groups.raw is None else groups,
        qkv_bias=_net(a, "add_qkv_bias"),
        qk_norm=_net(a, "qk_layernorm"),
        attention_dropout=_net(a, "attention_dropout"),
        attention=derived("flash" if _net(a, "use_flash_attention").raw is True else "unfused", "use_flash_attention"),
        latent=latent,
        q_lora_rank=_net(a, "q_lora_rank"),
        kv_lora_rank=_net(a, "kv_lora_rank"),
        qk_nope_dim=_net(a, "qk_head_dim"),
        qk_rope_dim=_net(a, "qk_pos_emb_head_dim"),
        v_dim=_net(a, "v_head_dim"),
    )


def _experts(a: Arguments, model: Model) -> Model:
    experts = _net(a, "num_moe_experts")
    return replace(
        model,
        experts=experts,
        top_k=_net(a, "moe_router_topk"),
        expert_ffn=_net(a, "moe_ffn_hidden_size"),
        shared_ffn=_shared(a),
        expert_layers=_mixture(a, whole(model.layers), experts),
        capacity=default(None),
        mtp=_net(a, "mtp_num_layers"),
    )


def _gated(a: Arguments) -> Value:
    gated = _net(a, "gated_linear_unit")
    return derived(True, "qwen3 is gated") if a.get("model.model_type").raw == "qwen3" and not gated.written else gated


def _sequence(a: Arguments) -> Value:
    own = a.given("net.seq_length") or a.given("train_dataset.dataloader.config.seq_length")
    return sound(own) if own is not None else unknown("seq_length is not given")


def _shared(a: Arguments) -> Value:
    given = a.given("net.moe_shared_expert_intermediate_size")
    if given is not None and given.raw is not None:
        return sound(given)
    count, width = whole(_net(a, "shared_expert_num")), whole(_net(a, "moe_ffn_hidden_size"))
    return derived(count * width, "shared experts x expert width") if count is not None and width is not None else unknown("not given")


def _mixture(a: Arguments, layers: int | None, experts: Value) -> Value:
    """Which decoder layers hold experts."""
    if layers is None or not 0 < layers <= MOST_LAYERS:
        return unknown("the number of layers is not known")
    if experts.raw in (None, 0):
        return derived((False,) * layers, "dense")
    dense, each = whole(_net(a, "first_k_dense_replace")), _net(a, "moe_layer_freq").raw
    if isinstance(experts.raw, Unknown):
        return unknown("the number of experts is not known")
    if dense:
        return derived(tuple(i >= dense for i in range(layers)), "first_k_dense_replace")
    if isinstance(each, list) and len(each) == layers:
        return derived(tuple(bool(n) for n in each), "moe_layer_freq")
    return derived(tuple(i % each == 0 for i in range(layers)), "moe_layer_freq") if isinstance(each, int) and each > 0 else unknown("moe_layer_freq")


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
        virtual=virtual,
        sequence_parallel=a.get("parallelism.sequence_parallel"),
        tensor_x=default(None),
        tensor_y=default(None),
        stages=found.values["stages"],
        schedule=schedule.derived(name, "pipeline_parallel_schedule") if name else unknown("the schedule is not one that is known"),
        sequence_splits=default(None),
        context_method=a.get("parallelism.context_parallel_method"),
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
        mode=mode.derived(names[mode.raw], "recompute.mode") if mode.raw in names else unknown("recompute.mode is none that is known"),
        method=default(None),
        layers=default(None),
        modules=derived(tuple(str(name) for name in modules), "select_module") if isinstance(modules, dict) else default(()),
        patterns=default(None),
        offload=a.get("swap.enable"),
    )


def _precision(a: Arguments) -> Precision:
    def kind(field: str) -> Value:
        value = _net(a, field)
        raw: Any = value.raw
        return value.derived(_DTYPES[raw], field) if isinstance(raw, str) and raw in _DTYPES else unknown(f"{field} is not known")

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
        name=kind.derived(names[kind.raw], "optimizer.type") if kind.raw in names else unknown("optimizer.type is none that is known"),
        zero=derived(3, "FSDP"),
        shards=derived(limit or region, "FSDP shard x context") if region is not None else unknown("the shard degree is not known"),
        expert_shards=derived(experts, "FSDP shard x context x tensor / expert") if experts else unknown("the expert shard degree is not known"),
        instances=default(1),
        offload=derived(1.0 if a.get("parallelism.cpu_offload").raw is True else 0.0, "cpu_offload"),
        fsdp=derived("pynative"),
    )


def _loss(a: Arguments) -> Loss:
    return Loss(
        cross_entropy=derived("mindspore"),
        logits_fp32=derived(True),
        implementation=derived("pynative"),
        overlap_expert=a.get("parallelism.pipeline_parallel_overlap_b_f"),
        dispatcher=a.get("parallelism.moe_token_dispatcher_type"),
        grouped_gemm=derived(True),
    )


def _unmodelled(a: Arguments) -> tuple[str, ...]:
    found = ["hyper connections"] if _net(a, "enable_hyper_connections").raw is True else []
    if isinstance(variant := _net(a, "experimental_attention_variant").raw, str):
        found.append(variant)
    return tuple(found)
