"""Errors in attention and sequences that no validator catches and that make the model build or the first step fail."""

from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of, env
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="the first attention layer rejects these settings when the model is built")
ENGINE = "megatron/core/extensions/transformer_engine.py"
SCALED = env("NVTE_APPLY_QK_LAYER_SCALING")
GPT = all_of(a.hybrid_layer_pattern.is_none, a.spec.is_none)
PER_RANK = a.seq_length // a.context_parallel_size

MEGATRON.add(
    divides(
        "heads-over-query-groups",
        a.num_query_groups,
        a.num_attention_heads,
        when=all_of(a.group_query_attention, a.num_query_groups.is_set, ~a.multi_latent_attention),
        message="{num_attention_heads} attention heads are not divisible by {num_query_groups} query groups",
        why=(
            "no earlier check catches this, so Transformer Engine rejects the head counts when the first layer is "
            "built, and local attention fails in the first step"
        ),
        upstream={
            "mindspeed": "megatron/core/transformer/attention.py:817",
        },
        at=(a.num_query_groups, a.num_attention_heads),
        after=(
            "heads-not-divisible",
            "megatron/hidden-over-heads",
            "megatron/query-groups-over-tensor",
            "megatron/query-groups-split-over-tensor",
        ),
    ),
    refuse(
        "local-attention-with-context-parallel",
        all_of(a.transformer_impl == "local", a.context_parallel_size > 1, GPT),
        message=(
            "a context-parallel size of {context_parallel_size} needs --transformer-impl transformer_engine, not local"
        ),
        at=(a.transformer_impl, a.context_parallel_size),
        unless_framework="mindspeed",
        fixes=(put(a.transformer_impl, "transformer_engine"),),
        layout=True,
    ),
    refuse(
        "query-key-scaling-variable",
        all_of(
            a.transformer_impl == "transformer_engine",
            any_of(
                all_of(a.apply_query_key_layer_scaling, any_of(SCALED.is_none, SCALED == "0")),
                all_of(~a.apply_query_key_layer_scaling, SCALED == "1"),
            ),
        ),
        message=(
            "--apply-query-key-layer-scaling and NVTE_APPLY_QK_LAYER_SCALING must agree, but only one of them is on"
        ),
        why=(
            "Transformer Engine reads only the variable, so the first attention layer rejects a mismatch when the "
            "model is built"
        ),
        always=True,
        at=(a.apply_query_key_layer_scaling,),
        unless_framework="mindspeed",
        fixes=(drop(a.apply_query_key_layer_scaling),),
    ),
    refuse(
        "fused-mla-without-query-rank",
        all_of(
            a.mla_down_proj_fusion,
            a.multi_latent_attention,
            a.q_lora_rank.is_none,
            GPT,
            a.transformer_impl == "transformer_engine",
        ),
        message="--mla-down-proj-fusion needs --q-lora-rank, because without it there is no query projection to fuse",
        at=(a.mla_down_proj_fusion,),
        fixes=(drop(a.mla_down_proj_fusion, safety=Safety.SAFE),),
    ),
    refuse(
        "hyper-connections-without-spec",
        all_of(a.enable_mhc_connections, GPT),
        message=(
            "--enable-mhc-connections needs a layer specification with hyper-connections (--spec); the built-in "
            "layers have none"
        ),
        why="the first layer rejects these settings when the model is built",
        at=(a.enable_mhc_connections,),
    ),
    divides(
        "sequence-over-tensor",
        a.tensor_model_parallel_size,
        PER_RANK,
        when=a.sequence_parallel,
        message=(
            "{each} tokens per context-parallel rank are not divisible by the tensor-parallel size "
            "{tensor_model_parallel_size}, which --sequence-parallel requires"
        ),
        why="no earlier check catches this, so the first step fails when activations are scattered",
        shows={"each": PER_RANK},
        at=(a.seq_length, a.tensor_model_parallel_size),
        after=("device-count", "heads-not-divisible"),
        unless_framework="mindspeed",
        layout=True,
    ),
    refuse(
        "experts-and-tensor-in-first-step",
        all_of(
            a.num_experts.is_set,
            a.tensor_model_parallel_size > 1,
            ~a.sequence_parallel,
            ~a.overlap_moe_expert_parallel_comm,
            ~a.skip_train,
            a.entry_trains,
            any_of(a.train_iters.is_set, a.train_samples.is_set),
        ),
        message=(
            "a mixture of experts with a tensor-parallel size of {tensor_model_parallel_size} needs --sequence-parallel"
        ),
        why=(
            "no validator catches this, so the expert layer rejects the combination only in the first training step, "
            "after the model is built"
        ),
        at=(a.tensor_model_parallel_size, a.num_experts),
        after=("megatron/experts-and-tensor-without-sequence-parallel",),
        unless_framework="mindspeed",
        fixes=(put(a.sequence_parallel, safety=Safety.SAFE),),
    ),
)
