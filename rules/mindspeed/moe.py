"""Checks of mixtures of experts: experts across tensor-parallel ranks, shared experts, permutation and balancing."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

MINDSPEED = ConstraintSet("mindspeed")
EXTEND, HOT = a.moe_tp_extend_ep, a.balanced_moe_experts
SHARED, COUNT = a.moe_shared_expert_intermediate_size, a.n_shared_experts
PERMUTE = a.moe_permute_fusion  # its older name also turns it on
PERMUTES = (a.moe_permute_fusion, a.use_fused_moe_token_permute_and_unpermute)
CAPACITY, LOCAL = a.moe_expert_capacity_factor, a.num_experts // a.expert_model_parallel_size
OTHER_SIZE = COUNT * a.moe_ffn_hidden_size != SHARED
CORE_ONLY = "mindspeed-llm"

MINDSPEED.add(
    divides(
        "tp-extend-ep-experts",
        a.tensor_model_parallel_size * a.expert_model_parallel_size,
        a.num_experts,
        when=EXTEND,
        layout=True,
        at=(EXTEND, a.num_experts),
        message=(
            "{num_experts} experts are not divisible by tensor-parallel size {tensor_model_parallel_size} × "
            "expert-parallel size {expert_model_parallel_size} (--moe-tp-extend-ep)"
        ),
        why=(
            "the flag also distributes experts over tensor-parallel ranks, and all ranks must hold the same "
            "number of experts, so the run fails at launch"
        ),
        fixes=(drop(EXTEND),),
    ),
    refuse(
        "tp-extend-ep-async",
        EXTEND & ~a.moe_permutation_async_comm,
        at=(EXTEND,),
        fixes=(put(a.moe_permutation_async_comm), drop(EXTEND)),
        message="--moe-tp-extend-ep needs --moe-permutation-async-comm",
        why="only the asynchronous dispatcher supports the extended groups, so the run fails at launch",
    ),
    refuse(
        "tp-extend-ep-grouped-gemm",
        EXTEND & ~a.moe_grouped_gemm,
        at=(EXTEND,),
        fixes=(put(a.moe_grouped_gemm), drop(EXTEND)),
        message="--moe-tp-extend-ep needs --moe-grouped-gemm",
        why="only grouped experts support the extended groups, so the run fails at launch",
    ),
    refuse(
        "tp-extend-ep-capacity",
        EXTEND & CAPACITY.is_set,
        at=(CAPACITY, EXTEND),
        fixes=(drop(EXTEND), drop(CAPACITY)),
        message="--moe-tp-extend-ep does not work with --moe-expert-capacity-factor",
        why="the dispatcher that --moe-tp-extend-ep uses cannot drop tokens, so the run fails at launch",
    ),
    refuse(
        "shared-experts-twice",
        COUNT.is_set & (COUNT != 0) & SHARED.given & (SHARED != 0) & OTHER_SIZE,
        at=(COUNT, SHARED),
        unless_framework=CORE_ONLY,
        fixes=(drop(COUNT), drop(SHARED)),
        why="both options set the size of the shared experts, so they must agree; otherwise, the run fails at launch",
        message=(
            "--n-shared-experts {n_shared_experts} and --moe-shared-expert-intermediate-size "
            "{moe_shared_expert_intermediate_size} contradict each other"
        ),
    ),
    refuse(
        "permute-fusion-dispatcher",
        PERMUTE & (a.moe_token_dispatcher_type == "allgather"),
        at=(*PERMUTES, a.moe_token_dispatcher_type),
        message=(
            "the fused permutation needs --moe-token-dispatcher-type alltoall or alltoall_seq; "
            "the dispatcher is allgather, the default"
        ),
        why="the allgather dispatcher permutes tokens in a different way, so the run fails at launch",
        fixes=(
            drop(also=PERMUTES, title="turn off the fused permutation"),
            put(a.moe_token_dispatcher_type, "alltoall"),
        ),
    ),
    refuse(
        "permute-fusion-capacity",
        PERMUTE & (CAPACITY != 0) & CAPACITY.is_set & ~a.moe_pad_expert_input_to_capacity,
        at=(CAPACITY, *PERMUTES),
        message="the fused permutation with --moe-expert-capacity-factor needs --moe-pad-expert-input-to-capacity",
        why="the kernel needs the same number of tokens for every expert, so the run fails at launch",
        fixes=(put(a.moe_pad_expert_input_to_capacity), drop(also=PERMUTES, title="turn off the fused permutation")),
    ),
    refuse(
        "fix-router-expert-parallel",
        a.fix_router & (a.expert_model_parallel_size <= 1),
        unless_framework=CORE_ONLY,
        layout=True,
        message="--fix-router needs expert parallelism, but the expert-parallel size is 1",
        why="without expert parallelism, there is no load to balance over ranks, so the run fails at launch",
        fixes=(drop(a.fix_router),),
    ),
    refuse(
        "balanced-experts-positive",
        HOT & (a.balanced_moe_hot_expert_num <= 0),
        at=(a.balanced_moe_hot_expert_num,),
        unless_framework=CORE_ONLY,
        message="--balanced-moe-hot-expert-num must be positive, not {balanced_moe_hot_expert_num}",
        why="the number of experts must be at least 1, so the run fails at launch",
        fixes=(drop(a.balanced_moe_hot_expert_num),),
    ),
    refuse(
        "balanced-experts-local",
        HOT & (a.balanced_moe_hot_expert_num > LOCAL),
        shows={"local": LOCAL},
        unless_framework=CORE_ONLY,
        layout=True,
        at=(a.balanced_moe_hot_expert_num, HOT, a.num_experts, a.expert_model_parallel_size),
        fixes=(put(a.balanced_moe_hot_expert_num, LOCAL),),
        message=(
            "--balanced-moe-hot-expert-num {balanced_moe_hot_expert_num} is more than the {local} experts of each rank"
        ),
        why="hot experts can only be chosen from the experts of each rank, so the run fails at launch",
    ),
    refuse(
        "balanced-experts-groups",
        HOT & (a.trans_hot_expert_group_num <= 0),
        at=(a.trans_hot_expert_group_num,),
        unless_framework=CORE_ONLY,
        message="--trans-hot-expert-group-num must be positive, not {trans_hot_expert_group_num}",
        why="the number of groups must be at least 1, so the run fails at launch",
        fixes=(drop(a.trans_hot_expert_group_num),),
    ),
    refuse(
        "balanced-experts-groups-lowered",
        HOT
        & a.trans_hot_expert_group_num.given
        & (a.trans_hot_expert_group_num.written > a.balanced_moe_hot_expert_num),
        severity=Severity.WARNING,
        at=(a.trans_hot_expert_group_num,),
        unless_framework=CORE_ONLY,
        fixes=(put(a.trans_hot_expert_group_num, a.balanced_moe_hot_expert_num),),
        message="--trans-hot-expert-group-num is lowered to the number of hot experts, {balanced_moe_hot_expert_num}",
        why="there cannot be more groups than hot experts",
    ),
    needs(
        "balanced-experts-fb-overlap",
        HOT,
        a.moe_fb_overlap,
        at=(HOT,),
        unless_framework=CORE_ONLY,
        why="experts can only be sent while the overlapped layers compute, so the run fails at launch",
    ),
    needs(
        "balanced-experts-grouped-gemm",
        HOT,
        a.moe_grouped_gemm,
        at=(HOT,),
        unless_framework=CORE_ONLY,
        why="hot experts are supported only in grouped matrix products, so the run fails at launch",
    ),
    refuse(
        "balanced-experts-dispatcher",
        HOT & (a.moe_token_dispatcher_type != "alltoall"),
        at=(a.moe_token_dispatcher_type, HOT),
        unless_framework=CORE_ONLY,
        message="--balanced-moe-experts needs --moe-token-dispatcher-type alltoall, not {moe_token_dispatcher_type}",
        why="only the alltoall dispatcher supports hot experts, so the run fails at launch",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall"), drop(HOT)),
    ),
    clash(
        "balanced-experts-capacity",
        HOT,
        CAPACITY,
        unless_framework=CORE_ONLY,
        why="balancing works only if no tokens are dropped, so the run fails at launch",
    ),
    refuse(
        "expert-placement-optimizer",
        a.enable_expert_placement & ~a.use_distributed_optimizer,
        severity=Severity.WARNING,
        unless_framework=CORE_ONLY,
        at=(a.enable_expert_placement,),
        fixes=(put(a.use_distributed_optimizer), drop(a.enable_expert_placement)),
        message="--enable-expert-placement needs --use-distributed-optimizer",
        why="MindSpeed prints a message and continues. Experts can only be moved together with their sharded states",
    ),
    refuse(
        "expert-placement-size",
        a.enable_expert_placement & (a.expert_model_parallel_size <= 1),
        severity=Severity.WARNING,
        unless_framework=CORE_ONLY,
        fixes=(drop(a.enable_expert_placement),),
        message="--enable-expert-placement needs an expert-parallel size above 1",
        why="without expert parallelism, experts cannot move to other ranks. The check is inverted and never triggers",
    ),
    refuse(
        "expert-placement-alone",
        a.enable_fine_grained_expert_placement & ~a.enable_expert_placement,
        severity=Severity.WARNING,
        unless_framework=CORE_ONLY,
        at=(a.enable_fine_grained_expert_placement,),
        fixes=(put(a.enable_expert_placement), drop(a.enable_fine_grained_expert_placement)),
        message="--enable-fine-grained-expert-placement has no effect without --enable-expert-placement",
        why="MindSpeed prints a message and continues",
    ),
)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "shared-experts-ignored",
        COUNT.is_set & (COUNT > 0) & SHARED.given & (SHARED != 0) & OTHER_SIZE,
        severity=Severity.WARNING,
        at=(COUNT, SHARED),
        fixes=(drop(COUNT), drop(SHARED)),
        why="the size of the shared experts contradicts their count",
        message=(
            "--n-shared-experts {n_shared_experts} is ignored, because --moe-shared-expert-intermediate-size "
            "{moe_shared_expert_intermediate_size} takes precedence"
        ),
    ),
)
