"""Checks of the network configuration that pynative mode makes before it builds anything."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of

a = Handles(names())
WHY = "the network's configuration rejects these settings"
PYNATIVE = ConstraintSet("pynative", why=WHY)
NETWORK = "mindformers/parallel_core/transformer_config.py"
REGISTER = "mindformers/tools/register/register.py:287"
experts, groups, chosen = a["net.num_moe_experts"], a["net.moe_router_num_groups"], a["net.moe_router_group_topk"]

PYNATIVE.add(
    refuse(
        "model-type",
        a["model.model_type"].is_set
        & ~a["model.model_type"].is_in("deepseek_v3", "deepseek_v4", "qwen3", "deepseek_mtp", "deepseek_mtp_v4"),
        message=(
            "pynative mode cannot train the model_type {model.model_type}; it supports deepseek_v3, deepseek_v4 and "
            "qwen3"
        ),
        why="no class is registered under this name, or the class has no pynative network for training",
    ),
    refuse(
        "mtp-layers",
        a["net.mtp_num_layers"] > 1,
        message="{net.mtp_num_layers} multi-token-prediction layers are set, but 2.1 supports at most one",
        fixes=(put(a["net.mtp_num_layers"], 1),),
    ),
    refuse(
        "mtp-negative",
        a["net.mtp_num_layers"] < 0,
        message="{net.mtp_num_layers} is not a valid number of multi-token-prediction layers; it must be 0 or 1",
        fixes=(put(a["net.mtp_num_layers"], 0),),
    ),
    refuse(
        "mask-without-flash",
        any_of(a["net.use_flash_attention"] == False, a["net.use_flash_attention"].is_none)
        & any_of(a["net.use_attn_mask_compression"] == True, a["net.use_eod_attn_mask_compression"] == True),
        message="mask compression needs use_flash_attention",
        fixes=(put(a["net.use_flash_attention"], True),),
    ),
    refuse(
        "experts-positive",
        experts.is_set & (experts <= 0),
        message="the number of experts is {net.num_moe_experts}; omit it for a dense model",
    ),
    refuse(
        "mixture-bias",
        experts.is_set & a["net.add_bias_linear"],
        message="add_bias_linear does not work with experts",
        at=(
            a["net.add_bias_linear"],
            experts,
        ),
        fixes=(put(a["net.add_bias_linear"], False),),
    ),
    refuse(
        "expert-bias-score",
        (a["net.moe_router_enable_expert_bias"] == True)
        & a["net.moe_router_score_function"].given
        & ~a["net.moe_router_score_function"].is_in("sigmoid", "sqrtsoftplus"),
        message=(
            "moe_router_enable_expert_bias needs moe_router_score_function sigmoid or sqrtsoftplus, not "
            "{net.moe_router_score_function}"
        ),
        at=(a["net.moe_router_score_function"],),
    ),
    refuse(
        "router-groups",
        all_of(experts.is_set, chosen > 0, groups > 0, experts % groups != 0),
        message="{net.num_moe_experts} experts are not divisible by {net.moe_router_num_groups} router groups",
        why="group-limited routing needs groups of equal size, so " + WHY,
        at=(
            experts,
            groups,
        ),
    ),
    refuse(
        "router-group-choice",
        all_of(chosen > 1, groups > 0, chosen > groups),
        message=(
            "moe_router_group_topk {net.moe_router_group_topk} must be at most moe_router_num_groups "
            "{net.moe_router_num_groups}"
        ),
    ),
    refuse(
        "router-group-topk",
        all_of(chosen > 1, groups > 0, a["net.moe_router_topk"] % chosen != 0),
        message="{net.moe_router_topk} experts per token are not divisible by {net.moe_router_group_topk} router groups",
        after=("pynative/router-group-choice",),
        at=(
            a["net.moe_router_topk"],
            chosen,
        ),
    ),
    refuse(
        "dense-layers",
        a["net.first_k_dense_replace"] < -1,
        message=(
            "first_k_dense_replace is {net.first_k_dense_replace}; it must be the number of dense layers, or -1 for "
            "none"
        ),
    ),
    refuse(
        "dense-layers-many",
        a["net.first_k_dense_replace"] > a["net.num_layers"],
        message=(
            "first_k_dense_replace {net.first_k_dense_replace} is more than the {net.num_layers} layers of the model"
        ),
    ),
    refuse(
        "hash-layers",
        all_of(a["net.moe_n_hash_layers"] > 0, a["net.moe_n_hash_layers"] > a["net.num_layers"]),
        message="{net.moe_n_hash_layers} hash layers exceed the model's {net.num_layers} layers",
    ),
    refuse(
        "hash-without-experts",
        all_of(a["net.moe_n_hash_layers"] > 0, experts.is_none),
        message="moe_n_hash_layers is {net.moe_n_hash_layers}, but hash layers need experts, and the model has none",
        why="hash routing needs experts to send tokens to, so " + WHY,
        at=(experts, a["net.moe_n_hash_layers"]),
    ),
    refuse(
        "chunked-loss",
        all_of(a["net.chunk_loss_num"] > 1, a["net.calculate_per_token_loss"] == True),
        message="chunk_loss_num {net.chunk_loss_num} does not work with calculate_per_token_loss",
        fixes=(put(a["net.calculate_per_token_loss"], False),),
    ),
)

PYNATIVE.add(
    refuse(
        "dense-deepseek",
        (a["model.model_type"] == "deepseek_v3") & any_of(experts.is_none, experts == 0),
        message="deepseek_v3 in pynative mode needs experts",
        why="the network of deepseek_v3 does not support a dense model",
    ),
)
