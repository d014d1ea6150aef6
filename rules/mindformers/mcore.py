"""Checks that the mcore transformer config makes (with use_legacy: False)."""

from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import CONFIG, a, context, mcore, sequence_parallel, tensor, training

MINDFORMERS = ConstraintSet("mindformers", why="the transformer config rejects these settings")
_ATTENTION = "mindformers/parallel_core/training_graph/transformer/attention.py"
# fmt: off
c = {
    name: a[f"mcore.{name}"]
    for name in (
        *("mtp_num_layers", "use_flash_attention", "use_eod_attn_mask_compression", "use_attn_mask_compression",
            "use_ring_attention", "num_moe_experts"),
        *("moe_expert_capacity_factor", "moe_router_load_balancing_type", "add_bias_linear",
            "moe_router_enable_expert_bias", "moe_router_score_function"),
        *("moe_router_topk", "moe_router_pre_softmax", "moe_router_group_topk", "moe_router_num_groups",
            "bias_swiglu_fusion", "hidden_act"),
        *("position_embedding_type", "recompute_slice_activation", "chunk_loss_num", "calculate_per_token_loss",
            "num_query_groups", "vocab_size"),
        *("moe_grouped_gemm", "first_k_dense_replace", "moe_layer_freq", "num_layers", "rope_scaling",
            "multi_latent_attention"),
    )
}
# fmt: on
moe = all_of(mcore, training, c["num_moe_experts"].is_set)


def core(old: int, new: int) -> dict[str, str]:
    """The line numbers of a check in 1.7 and in 2.1."""
    return {"1.7.0": f"{CONFIG}:{old}", "2.1.0": f"{CONFIG}:{new}"}


MINDFORMERS.add(
    refuse(
        "sequence-parallel-without-tensor",
        all_of(mcore, training, sequence_parallel, tensor <= 1),
        message="use_seq_parallel needs model_parallel above 1",
        why="mcore models reject the setting, which legacy models ignored",
        at=(sequence_parallel, tensor),
        fixes=(put(sequence_parallel, False),),
    ),
    refuse(
        "mtp-layers",
        c["mtp_num_layers"] > 1,
        message="{mcore.mtp_num_layers} multi-token-prediction layers are set; at most 1 is supported",
    ),
    refuse(
        "mask-compression-flash",
        all_of(
            mcore, ~c["use_flash_attention"], any_of(c["use_eod_attn_mask_compression"], c["use_attn_mask_compression"])
        ),
        message="a compressed attention mask needs use_flash_attention",
        at=(c["use_flash_attention"], c["use_eod_attn_mask_compression"], c["use_attn_mask_compression"]),
        fixes=(put(a["model.model_config.use_flash_attention"], True),),
    ),
    refuse(
        "ring-attention-flash",
        all_of(mcore, ~c["use_flash_attention"], c["use_ring_attention"]),
        message="use_ring_attention needs use_flash_attention",
        at=(c["use_flash_attention"], c["use_ring_attention"]),
        fixes=(put(a["model.model_config.use_flash_attention"], True),),
    ),
    refuse(
        "capacity-balancing",
        all_of(
            mcore,
            c["moe_expert_capacity_factor"].is_set,
            ~c["moe_router_load_balancing_type"].is_in("sub_seq_aux_loss", "seq_aux_loss", "gbs_aux_loss"),
        ),
        message="moe_expert_capacity_factor does not work with load balancing {mcore.moe_router_load_balancing_type}",
        at=(c["moe_expert_capacity_factor"], c["moe_router_load_balancing_type"]),
    ),
    refuse(
        "bias-with-experts",
        all_of(moe, c["add_bias_linear"]),
        message="add_bias_linear does not work with a mixture of experts",
        why=(
            "the transformer config rejects the combination. The default of add_bias_linear is True, so False must "
            "be set explicitly"
        ),
        at=(c["add_bias_linear"], c["num_moe_experts"]),
        fixes=(put(a["model.model_config.add_bias_linear"], False),),
    ),
    refuse(
        "expert-bias-score",
        all_of(
            mcore,
            c["moe_router_enable_expert_bias"],
            ~c["moe_router_score_function"].is_in("sigmoid", "sqrtsoftplus", True),
        ),
        message="an expert bias needs moe_router_score_function sigmoid, not {mcore.moe_router_score_function}",
        at=(c["moe_router_enable_expert_bias"], c["moe_router_score_function"]),
    ),
    refuse(
        "single-expert-softmax",
        all_of(
            *(mcore, training, c["moe_router_topk"] == 1, c["moe_router_score_function"] == "softmax"),
            *(~c["moe_router_pre_softmax"], c["moe_router_load_balancing_type"] != "sinkhorn"),
        ),
        message="routing each token to one expert with softmax needs moe_router_pre_softmax",
        why="a softmax over one value has no gradient, so the transformer config rejects the combination",
        at=(c["moe_router_topk"], c["moe_router_pre_softmax"]),
        fixes=(put(a["model.model_config.moe_router_pre_softmax"], True),),
    ),
    refuse(
        "group-routing-groups",
        all_of(mcore, training, c["moe_router_group_topk"], ~c["moe_router_num_groups"]),
        message="group-limited routing needs moe_router_num_groups",
        at=(c["moe_router_group_topk"],),
    ),
    divides(
        "group-routing-experts",
        c["moe_router_num_groups"],
        c["num_moe_experts"],
        when=all_of(moe, c["moe_router_group_topk"], c["moe_router_num_groups"]),
        message="{mcore.num_moe_experts} experts are not divisible by {mcore.moe_router_num_groups} groups",
        at=(c["moe_router_num_groups"], c["num_moe_experts"]),
    ),
    refuse(
        "group-routing-top",
        all_of(
            moe,
            c["moe_router_group_topk"],
            c["moe_router_num_groups"],
            c["moe_router_group_topk"] > c["moe_router_num_groups"],
        ),
        message="{mcore.moe_router_group_topk} groups per token are more than the {mcore.moe_router_num_groups} groups",
        at=(c["moe_router_group_topk"], c["moe_router_num_groups"]),
    ),
    divides(
        "group-routing-chosen",
        c["moe_router_group_topk"],
        c["moe_router_topk"],
        when=all_of(moe, c["moe_router_group_topk"]),
        message="{mcore.moe_router_topk} experts per token are not divisible by {mcore.moe_router_group_topk} groups",
        at=(c["moe_router_topk"], c["moe_router_group_topk"]),
    ),
    refuse(
        "fused-swiglu",
        all_of(mcore, c["bias_swiglu_fusion"], c["hidden_act"] != "swiglu"),
        message="bias_swiglu_fusion needs hidden_act swiglu, not {mcore.hidden_act}",
        at=(c["bias_swiglu_fusion"], c["hidden_act"]),
    ),
    refuse(
        "position-embedding",
        ~c["position_embedding_type"].is_in("rope", "yarn", "none", "relative", "learned_absolute", "partial_rope"),
        message=(
            "position_embedding_type is {mcore.position_embedding_type}; it must be rope, yarn, none, relative, "
            "learned_absolute or partial_rope"
        ),
    ),
    refuse(
        "recompute-slice-activation",
        all_of(mcore, training, c["recompute_slice_activation"]),
        message="recompute_slice_activation is not supported by mcore models",
        at=(a["recompute_config.recompute_slice_activation"],),
        fixes=(put(a["recompute_config.recompute_slice_activation"], False),),
    ),
    divides(
        "vocabulary-over-tensor",
        tensor,
        c["vocab_size"],
        when=all_of(mcore, training, tensor > 1, a["shape.heads"] % tensor == 0),
        message="vocab_size {mcore.vocab_size} is not divisible by model_parallel {parallel_config.model_parallel}",
        why="mcore shards the embedding, while legacy models fall back to full copies",
        at=(c["vocab_size"], tensor),
        layout=True,
    ),
    refuse(
        "served-key-value-heads",
        all_of(
            mcore,
            a["run_mode"] == "predict",
            ~c["multi_latent_attention"],
            any_of(
                a["shape.heads"] % a["shape.query_groups"] != 0,
                all_of(a["shape.query_groups"] % tensor != 0, tensor % a["shape.query_groups"] != 0),
            ),
        ),
        message=(
            "the number of key/value heads, {shape.query_groups}, does not divide the {shape.heads} heads, or is not "
            "divisible by model_parallel {parallel_config.model_parallel}"
        ),
        why="when serving, attention must split heads over the ranks or copy whole heads",
        at=(c["num_query_groups"], tensor),
        layout=True,
    ),
    divides(
        "mcore-hidden-over-heads",
        a["shape.heads"],
        a["shape.hidden"],
        when=all_of(mcore, training, ~c["multi_latent_attention"]),
        message="hidden_size {shape.hidden} is not divisible by {shape.heads} heads",
        why="the attention cannot be built, regardless of the width of a head",
        at=(a["shape.hidden"], a["shape.heads"]),
        after=("heads-not-divisible",),
    ),
    refuse(
        "query-groups-over-tensor",
        all_of(
            mcore,
            training,
            ~c["multi_latent_attention"],
            a["shape.query_groups"] % tensor != 0,
            a["shape.heads"] % tensor == 0,
        ),
        message=(
            "the number of key/value heads, {shape.query_groups}, is not divisible by model_parallel "
            "{parallel_config.model_parallel}"
        ),
        why="heads are not replicated, so the attention cannot be built",
        at=(tensor, c["num_query_groups"], context),
        layout=True,
    ),
    refuse(
        "experts-not-grouped",
        all_of(moe, ~c["moe_grouped_gemm"]),
        message="a mixture of experts needs moe_grouped_gemm",
        why=(
            "the layer is not implemented without grouped matrix products. The default of moe_grouped_gemm is False, "
            "so True must be set explicitly"
        ),
        at=(c["moe_grouped_gemm"], c["num_moe_experts"]),
        fixes=(put(a["model.model_config.moe_grouped_gemm"], True),),
    ),
)
