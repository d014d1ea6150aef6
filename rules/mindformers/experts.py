"""Checks that graph-mode MindFormers makes on mixtures of experts."""

from preflight.lint.constraint import ConstraintSet, divides, in_range, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.lint.value_kinds import ListOf, one_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    data,
    expert,
    legacy,
    mcore,
    semi,
    sequence_parallel,
    tensor,
    training,
)

MINDFORMERS = ConstraintSet("mindformers", why="the MoE config rejects these settings")
_MOE = "mindformers/modules/transformer/moe.py"
_CORE = "mindformers/parallel_core/training_graph/transformer/moe"
experts = a["moe_config.expert_num"]
types, factors = a["moe_config.aux_loss_types"], a["moe_config.aux_loss_factors"]
dispatcher = a["mcore.moe_token_dispatcher_type"]
watched = any_of(a["mcore.print_expert_load"], a["mcore.enable_expert_relocation"])

MINDFORMERS.add(
    refuse(
        "more-chosen-than-experts",
        all_of(legacy, a["moe_config.num_experts_chosen"] > experts),
        message="num_experts_chosen {moe_config.num_experts_chosen} is more than expert_num {moe_config.expert_num}",
        why="a token cannot be sent to more experts than the layer has",
        at=(a["moe_config.num_experts_chosen"], experts),
    ),
    refuse(
        "hot-experts",
        all_of(legacy, a["moe_config.hot_expert_num"] > experts),
        message="hot_expert_num {moe_config.hot_expert_num} is more than expert_num {moe_config.expert_num}",
        at=(a["moe_config.hot_expert_num"], experts),
    ),
    refuse(
        "aux-loss-factor",
        all_of(legacy, a["moe_config.aux_loss_factor"] >= 1),
        message="aux_loss_factor is {moe_config.aux_loss_factor}; it must be below 1",
        after=("wrong-type",),
    ),
    in_range(
        "cold-token-percent",
        a["moe_config.cold_token_percent"],
        low=1e-12,
        high=1.0,
        when=legacy,
        message="cold_token_percent is {moe_config.cold_token_percent}; it must be above 0 and at most 1",
    ),
    refuse(
        "aux-loss-without-factors",
        all_of(legacy, types.is_set, factors.is_none),
        message="aux_loss_types is given without aux_loss_factors",
        why="every loss type needs its own factor, so the MoE config rejects one setting without the other",
        at=(types,),
    ),
    refuse(
        "aux-loss-types",
        all_of(legacy, types.is_set, factors.is_set, ~types.is_a(ListOf(one_of("expert", "device", "comm")))),
        message="aux_loss_types is {moe_config.aux_loss_types}; it must be a list of expert, device and comm",
        at=(types,),
    ),
    refuse(
        "expert-load-dispatcher",
        all_of(mcore, training, a["mcore.num_moe_experts"].is_set, watched, dispatcher != "alltoall"),
        message=(
            "expert load is counted only with moe_token_dispatcher_type alltoall, not with "
            "{mcore.moe_token_dispatcher_type}"
        ),
        why="the expert layer cannot be built",
        at=(dispatcher, a["mcore.print_expert_load"]),
        fixes=(put(dispatcher, "alltoall"),),
    ),
    refuse(
        "experts-tensor-without-sequence",
        all_of(legacy, semi, tensor > 1, ~sequence_parallel, experts > 1),
        message="a mixture of experts with model_parallel {parallel_config.model_parallel} needs use_seq_parallel",
        why="since 1.7, the run fails before the network is built",
        at=(sequence_parallel, tensor),
        fixes=(put(sequence_parallel, True),),
    ),
    refuse(
        "experts-tensor-without-sequence-mcore",
        all_of(mcore, training, tensor > 1, ~sequence_parallel, a["mcore.num_moe_experts"].is_set),
        message="a mixture of experts with model_parallel {parallel_config.model_parallel} needs use_seq_parallel",
        why="the layer cannot be built",
        at=(sequence_parallel, tensor),
        fixes=(put(sequence_parallel, True),),
    ),
    divides(
        "expert-parallel-over-data",
        expert,
        data * tensor,
        when=all_of(
            mcore, training, a["mcore.num_moe_experts"].is_set, expert > 1, a["mcore.num_moe_experts"] % expert == 0
        ),
        message=(
            "expert_parallel {parallel_config.expert_parallel} is not a divisor of data_parallel "
            "{parallel_config.data_parallel} × model_parallel {parallel_config.model_parallel}"
        ),
        why="expert groups are formed within the data- and tensor-parallel ranks of a stage",
        at=(expert, data, tensor),
        layout=True,
    ),
    divides(
        "grouped-experts-over-data",
        expert,
        data * tensor,
        when=all_of(legacy, training, semi, a["moe_config.use_gmm"], experts > 1, expert > 1),
        message=(
            "expert_parallel {parallel_config.expert_parallel} is not a divisor of data_parallel "
            "{parallel_config.data_parallel} × model_parallel {parallel_config.model_parallel}"
        ),
        why="expert groups are formed within the data- and tensor-parallel ranks of a stage",
        at=(expert, data, tensor),
        after=("experts-not-divisible",),
        layout=True,
    ),
    refuse(
        "expert-parallel-without-experts",
        all_of(mcore, expert > 1, a["mcore.num_moe_experts"].is_none),
        message="expert_parallel is {parallel_config.expert_parallel}, but the model has no experts",
        why="the transformer config rejects these settings",
        at=(expert,),
        fixes=(put(expert, 1),),
    ),
    refuse(
        "dispatcher-mcore",
        all_of(
            mcore,
            training,
            a["mcore.num_moe_experts"].is_set,
            a["mcore.moe_token_dispatcher_type"].is_set,
            ~a["mcore.moe_token_dispatcher_type"].is_in(
                "alltoall", "alltoall_deredundency", "alltoall_zero_redundancy"
            ),
        ),
        message=(
            "moe_token_dispatcher_type is {mcore.moe_token_dispatcher_type}; it must be alltoall or "
            "alltoall_deredundency"
        ),
        why="the expert layer cannot be built",
        at=(a["mcore.moe_token_dispatcher_type"],),
    ),
    refuse(
        "dispatcher-nodes",
        all_of(
            mcore,
            training,
            a["mcore.moe_token_dispatcher_type"] == "alltoall_deredundency",
            any_of(a["mcore.num_moe_experts"].is_set, expert == 1),
            expert < a["mcore.npu_nums_per_device"],
        ),
        message=(
            "alltoall_deredundency needs expert_parallel of at least npu_nums_per_device "
            "{mcore.npu_nums_per_device}, not {parallel_config.expert_parallel}"
        ),
        why="this dispatcher saves traffic between nodes, but expert groups inside one node have no such traffic",
        at=(a["mcore.moe_token_dispatcher_type"], expert),
        fixes=(put(a["mcore.moe_token_dispatcher_type"], "alltoall"),),
    ),
)
