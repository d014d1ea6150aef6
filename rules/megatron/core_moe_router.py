"""Checks of the expert router: score functions, groups, and padding for low precision."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
PADDED = a.moe_router_padding_for_quantization  # its older name also turns it on

MEGATRON.add(
    refuse(
        "expert-bias-score-function",
        all_of(a.moe_router_enable_expert_bias, ~a.moe_router_score_function.is_in("sigmoid", "sqrtsoftplus")),
        message=(
            "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid or sqrtsoftplus, not "
            "{moe_router_score_function}"
        ),
        why=(
            "the bias can only be added to scores that are not normalized to a sum of 1, so Megatron rejects the "
            "model configuration"
        ),
        at=(a.moe_router_score_function, a.moe_router_enable_expert_bias),
        fixes=(put(a.moe_router_score_function, "sigmoid"), drop(a.moe_router_enable_expert_bias)),
    ),
    refuse(
        "expert-bias-needs-sigmoid",
        all_of(a.moe_router_enable_expert_bias, a.moe_router_score_function != "sigmoid"),
        message=(
            "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid, not {moe_router_score_function}"
        ),
        why=(
            "the bias can only be added to scores that are not normalized to a sum of 1, so Megatron rejects the "
            "model configuration"
        ),
        at=(a.moe_router_score_function, a.moe_router_enable_expert_bias),
        unless_framework="mindspeed-llm",
        fixes=(put(a.moe_router_score_function, "sigmoid"), drop(a.moe_router_enable_expert_bias)),
    ),
    refuse(
        "router-padding-without-quantization",
        all_of(PADDED, a.fp8.is_none, a.fp4.is_none),
        message="the router pads token counts for low precision, but the run has neither --fp8-format nor --fp4-format",
        at=(a.moe_router_padding_for_quantization, a.moe_router_padding_for_fp8),
        fixes=(
            drop(a.moe_router_padding_for_quantization, safety=Safety.SAFE),
            drop(a.moe_router_padding_for_fp8, safety=Safety.SAFE),
        ),
    ),
    refuse(
        "router-padding-dispatcher",
        all_of(PADDED, a.moe_token_dispatcher_type.is_in("allgather", "alltoall_seq")),
        message="the {moe_token_dispatcher_type} dispatcher cannot take a routing map padded for low precision",
        at=(a.moe_token_dispatcher_type, a.moe_router_padding_for_quantization, a.moe_router_padding_for_fp8),
        after=("megatron/router-padding-without-quantization",),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
    ),
    refuse(
        "top-one-without-pre-softmax",
        all_of(
            a.moe_router_topk == 1,
            a.moe_router_score_function == "softmax",
            ~a.moe_router_pre_softmax,
            a.moe_router_load_balancing_type != "sinkhorn",
        ),
        message=(
            "--moe-router-topk 1 needs --moe-router-pre-softmax, because a softmax over one chosen expert is always 1"
        ),
        why="the router would get no gradient, so Megatron rejects the model configuration",
        at=(a.moe_router_topk,),
        unless_framework="mindspeed-llm",
        fixes=(put(a.moe_router_pre_softmax, safety=Safety.SAFE),),
    ),
    refuse(
        "sinkhorn-with-auxiliary-loss",
        all_of(a.num_experts.is_set, a.moe_router_load_balancing_type == "sinkhorn", a.moe_aux_loss_coeff != 0),
        message="sinkhorn load balancing has no auxiliary loss, but --moe-aux-loss-coeff is {moe_aux_loss_coeff}",
        why="the first forward pass rejects the combination",
        at=(a.moe_aux_loss_coeff, a.moe_router_load_balancing_type),
        fixes=(put(a.moe_router_load_balancing_type, "aux_loss"), put(a.moe_aux_loss_coeff, 0.0)),
    ),
    refuse(
        "router-groups-missing",
        all_of(
            a.moe_router_group_topk.is_set,
            a.moe_router_group_topk != 0,
            any_of(a.moe_router_num_groups.is_none, a.moe_router_num_groups == 0),
        ),
        message=("--moe-router-group-topk {moe_router_group_topk} needs --moe-router-num-groups, the number of groups"),
        at=(a.moe_router_group_topk,),
    ),
    refuse(
        "experts-over-router-groups",
        all_of(
            a.moe_router_group_topk.is_set,
            a.moe_router_group_topk != 0,
            a.moe_router_num_groups.is_set,
            a.moe_router_num_groups != 0,
            any_of(a.num_experts.is_none, a.num_experts % a.moe_router_num_groups != 0),
        ),
        message="the {num_experts} experts of the model are not divisible by {moe_router_num_groups} router groups",
        why=(
            "groups would differ in size, so Megatron rejects the model configuration. If the model has no experts "
            "at all, the run crashes"
        ),
        at=(a.moe_router_num_groups, a.num_experts),
        after=("experts-not-divisible", "megatron/expert-parallel-without-experts"),
    ),
    refuse(
        "router-groups-too-few",
        all_of(
            a.moe_router_group_topk.is_set,
            a.moe_router_num_groups.is_set,
            a.moe_router_num_groups != 0,
            a.moe_router_group_topk > a.moe_router_num_groups,
        ),
        message="--moe-router-group-topk {moe_router_group_topk} must be at most the number of groups, "
        "{moe_router_num_groups}",
    ),
)
