"""Checks that other options meet the requirements of individual network features."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
POSITIONS = a.position_embedding_type
MTP = a.mtp_num_layers
CONFIGURED = "Megatron rejects the model configuration at startup"

MEGATRON.add(
    refuse(
        "mtp-positions",
        all_of(MTP, ~a.mtp_position_embedding_type.is_in("rope", "none")),
        message="multi-token prediction needs --position-embedding-type rope or none, not {position_embedding_type}",
        why="the prediction layers do not support learned positions, so " + REFUSED,
        at=(POSITIONS, MTP),
        fixes=(put(POSITIONS, "rope"),),
    ),
    refuse(
        "mtp-positions-in-old-core",
        # the last one is from MindSpeed-LLM
        all_of(MTP, a.context_parallel_size == 1, ~POSITIONS.is_in("rope", "none", "deepseek4")),
        message="multi-token prediction needs --position-embedding-type rope or none, not {position_embedding_type}",
        why="the prediction layers do not support learned positions, so " + REFUSED,
        at=(POSITIONS, MTP),
        fixes=(put(POSITIONS, "rope"),),
    ),
    refuse(
        "mtp-with-context-parallel",
        all_of(MTP, a.context_parallel_size != 1),
        message="multi-token prediction does not work with a context-parallel size of {context_parallel_size}",
        unless_framework="mindspeed-llm",  # hides the prediction layers from the check
    ),
    refuse(
        "clip-alpha-out-of-range",
        all_of(a.qk_clip, any_of(a.qk_clip_alpha <= 0, a.qk_clip_alpha >= 1)),
        message="--qk-clip-alpha is {qk_clip_alpha}; it must be above 0 and below 1",
        at=(a.qk_clip_alpha, a.qk_clip),
        fixes=(drop(a.qk_clip_alpha),),
    ),
    refuse(
        "clip-threshold-not-positive",
        all_of(a.qk_clip, a.qk_clip_alpha > 0, a.qk_clip_alpha < 1, a.qk_clip_threshold <= 0),
        message="--qk-clip-threshold is {qk_clip_threshold}; it must be above 0",
        at=(a.qk_clip_threshold, a.qk_clip),
        fixes=(drop(a.qk_clip_threshold),),
    ),
    refuse(
        "relative-positions-implementation",
        all_of(POSITIONS == "relative", a.transformer_impl != "transformer_engine"),
        message="relative positions need --transformer-impl transformer_engine, not {transformer_impl}",
        fixes=(put(a.transformer_impl, "transformer_engine"),),
    ),
    requires(
        "mrope-section-missing",
        POSITIONS == "mrope",
        a.mrope_section.is_set,
        message=(
            "--position-embedding-type mrope needs --mrope-section, which divides each head among time, height "
            "and width"
        ),
        at=(POSITIONS,),
    ),
    refuse(
        "expert-parallel-without-experts",
        all_of(a.expert_model_parallel_size > 1, a.num_experts.is_none),
        message="an expert-parallel size of {expert_model_parallel_size} needs --num-experts, which is not set",
        fixes=(drop(a.expert_model_parallel_size),),
        layout=True,
    ),
    refuse(
        "te-loss-fusion",
        all_of(a.cross_entropy_loss_fusion, a.cross_entropy_fusion_impl == "te"),
        message=(
            "Transformer Engine's fused cross entropy is disabled upstream because it is unstable; use "
            "--cross-entropy-fusion-impl native"
        ),
        at=(a.cross_entropy_fusion_impl, a.cross_entropy_loss_fusion),
        fixes=(put(a.cross_entropy_fusion_impl, "native"), drop(a.cross_entropy_loss_fusion)),
    ),
    conflicts(
        "latent-attention-with-groups",
        a.multi_latent_attention,
        a.group_query_attention,
        message="--group-query-attention does not work with latent attention, which has no query groups",
        at=(a.group_query_attention, a.multi_latent_attention, a.hybrid_layer_pattern),
        fixes=(drop(a.group_query_attention, also=(a.num_query_groups,)),),
    ),
    requires(
        "latent-fusion-without-latent-attention",
        a.mla_down_proj_fusion,
        a.multi_latent_attention,
        message="--mla-down-proj-fusion needs --multi-latent-attention",
        fixes=(drop(a.mla_down_proj_fusion, safety=Safety.SAFE),),
    ),
    refuse(
        "latent-size-not-positive",
        all_of(a.moe_latent_size.is_set, a.moe_latent_size <= 0),
        message="--moe-latent-size is {moe_latent_size}; it must be above 0",
        fixes=(drop(a.moe_latent_size),),
    ),
    requires(
        "latent-size-without-experts",
        all_of(a.moe_latent_size.is_set, a.moe_latent_size > 0),
        a.num_experts.is_set,
        message="--moe-latent-size {moe_latent_size} needs a mixture of experts, but the model has no experts",
        at=(a.moe_latent_size,),
        fixes=(drop(a.moe_latent_size, safety=Safety.SAFE),),
    ),
    refuse(
        "squared-relu-with-swiglu",
        all_of(a.squared_relu, a.swiglu),
        message="--squared-relu and --swiglu are both given, but the MLP has only one activation",
        why=CONFIGURED,
        fixes=(drop(a.squared_relu), drop(a.swiglu)),
    ),
    refuse(
        "quick-geglu-with-swiglu",
        all_of(a.quick_geglu, a.swiglu, ~a.squared_relu),
        message="--quick-geglu and --swiglu are both given, but the MLP has only one activation",
        why=CONFIGURED,
        at=(a.quick_geglu, a.swiglu),
        fixes=(drop(a.quick_geglu), drop(a.swiglu)),
    ),
    refuse(
        "rope-type-without-latent-attention",
        all_of(a.rope_type.is_set, ~a.multi_latent_attention, a.rope_type != "rope"),
        message="--rope-type {rope_type} needs --multi-latent-attention; other kinds of attention support only rope",
        why=CONFIGURED,
        at=(a.rope_type,),
        fixes=(drop(a.rope_type),),
    ),
    refuse(
        "hybrid-fused-inference-communication",
        all_of(
            a.entry == "pretrain_hybrid.py",
            a.transformer_impl == "inference_optimized",
            a.inference_fuse_tp_communication,
        ),
        message="--inference-fuse-tp-communication does not work for hybrid models",
        why=CONFIGURED,
        at=(a.inference_fuse_tp_communication,),
        fixes=(drop(a.inference_fuse_tp_communication, safety=Safety.SAFE),),
    ),
    refuse(
        "local-attention-backend",
        all_of(a.attention_backend == "local", any_of(a.spec.is_none, ~a.spec.has("local"))),
        message="--attention-backend local needs --spec local",
        at=(a.attention_backend,),
        fixes=(drop(a.attention_backend),),
    ),
    refuse(
        "experts-with-spec",
        all_of(a.num_experts.is_set, a.spec.is_set),
        message="--spec does not work with {num_experts} experts, which have a separate layer specification",
        at=(a.spec, a.num_experts),
        fixes=(drop(a.spec),),
        unless_framework="mindspeed-llm",
    ),
    refuse(
        "interleaved-rotary-with-fusion",
        # other position embeddings switch it off later
        all_of(a.rotary_interleaved, any_of(a.apply_rope_fusion, ~a.apply_rope_fusion.given)),
        message="--rotary-interleaved needs --no-rope-fusion",
        at=(a.rotary_interleaved,),
        fixes=(put(a.apply_rope_fusion, False, safety=Safety.SAFE),),
    ),
)
