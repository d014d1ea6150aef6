"""Checks that MindSpeed-LLM 2.0 and 2.1 make on mixtures of experts."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

OVERLAP, GATHER = a.moe_alltoall_overlap_comm, a.moe_allgather_overlap_comm
ZERO, FREQUENCY, DENSE = a.moe_zero_memory, a.moe_layer_freq, a.first_k_dense_replace
CAPACITY = a.moe_expert_capacity_factor.is_set
GREEDY = a.moe_router_load_balancing_type == "group_limited_greedy"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "legacy-experts",
        ~a.use_mcore_models & (a.num_experts > 1),
        at=(a.num_experts,),
        message="{num_experts} experts need --use-mcore-models",
        why="legacy models do not support experts, so the run fails at launch",
        fixes=(put(a.use_mcore_models),),
    ),
    needs(
        "alltoall-overlap-async",
        OVERLAP,
        a.moe_permutation_async_comm,
        why="only the asynchronous permutation can be hidden, so the run fails at launch",
    ),
    refuse(
        "alltoall-overlap-tensor",
        OVERLAP & ~a.moe_tp_extend_ep & (a.tensor_model_parallel_size > 1),
        at=(OVERLAP, a.tensor_model_parallel_size),
        message=(
            "--moe-alltoall-overlap-comm at a tensor-parallel size of {tensor_model_parallel_size} needs "
            "--moe-tp-extend-ep"
        ),
        why="experts split by tensor parallelism cannot be overlapped, so the run fails at launch",
        fixes=(put(a.moe_tp_extend_ep), drop(OVERLAP)),
    ),
    refuse(
        "zero-memory-recompute",
        ZERO.is_set & (ZERO != "disable") & a.recompute_method.is_set,
        message="--moe-zero-memory does not work with --recompute-method",
        why="both options drop the same activations, but only one of them may do so, so the run fails at launch",
        fixes=(drop(ZERO, also=(a.moe_zero_memory_num_layers,)),),
    ),
    refuse(
        "allgather-overlap-alone",
        GATHER & (a.tensor_model_parallel_size <= 1) & (a.expert_model_parallel_size <= 1),
        message="--moe-allgather-overlap-comm needs tensor or expert parallelism, but both sizes are 1",
        why="without tensor or expert parallelism, there is no communication to hide, so the run fails at launch",
        fixes=(drop(GATHER),),
    ),
    refuse(
        "shared-gate-fusion",
        a.shared_expert_gate & a.gradient_accumulation_fusion,
        at=(a.shared_expert_gate,),
        message="--shared-expert-gate needs --no-gradient-accumulation-fusion",
        why="the fused kernel cannot accumulate the gradient of the gate, so the run fails at launch",
        fixes=(put(a.gradient_accumulation_fusion, False),),
    ),
    refuse(
        "expert-layers-without-experts",
        a.num_experts.is_none & (DENSE.is_set | FREQUENCY.given),
        at=(DENSE, FREQUENCY),
        message="--first-k-dense-replace and --moe-layer-freq need --num-experts",
        why="these options choose the layers that have experts, so the run fails at launch without any experts",
        fixes=(drop(also=(DENSE, FREQUENCY), title="remove the options that select expert layers"),),
    ),
    refuse(
        "expert-layers-half",
        a.num_experts.is_set & ((DENSE.is_none & FREQUENCY.given) | (DENSE.is_set & ~FREQUENCY.given)),
        at=(DENSE, FREQUENCY),
        message="--first-k-dense-replace and --moe-layer-freq must be given together",
        why="the layers with experts are computed from both options, so the run fails at launch with only one",
    ),
    refuse(
        "capacity-fused-permute",
        CAPACITY & a.use_fused_moe_token_permute_and_unpermute,
        at=(a.use_fused_moe_token_permute_and_unpermute, a.moe_expert_capacity_factor),
        message="--use-fused-moe-token-permute-and-unpermute does not work with --moe-expert-capacity-factor",
        why="the fused kernel of 2.0 does not support dropping tokens, so the run fails at launch",
        fixes=(drop(a.use_fused_moe_token_permute_and_unpermute),),
    ),
    refuse(
        "padded-capacity-fused-permute",
        CAPACITY & a.moe_pad_expert_input_to_capacity & a.use_fused_moe_token_permute_and_unpermute,
        at=(a.use_fused_moe_token_permute_and_unpermute, a.moe_pad_expert_input_to_capacity),
        message="--use-fused-moe-token-permute-and-unpermute does not work with --moe-pad-expert-input-to-capacity",
        why="the fused kernel of 2.1 does not support padding the input of experts, so the run fails at launch",
        fixes=(drop(a.use_fused_moe_token_permute_and_unpermute),),
    ),
    refuse(
        "greedy-topk-group",
        GREEDY & a.topk_group.is_none,
        at=(a.moe_router_load_balancing_type,),
        message="group_limited_greedy needs --topk-group",
        why="the router needs the number of groups that a token may choose from, so the run fails at launch",
    ),
    refuse(
        "greedy-routed-scaling",
        GREEDY & a.topk_group.is_set & a.routed_scaling_factor.is_none,
        at=(a.moe_router_load_balancing_type,),
        message="group_limited_greedy needs --routed-scaling-factor",
        why="the gates are multiplied by the missing factor, so the run fails at launch",
    ),
    refuse(
        "greedy-topk-group-range",
        GREEDY & a.routed_scaling_factor.is_set & (a.topk_group >= a.expert_model_parallel_size),
        at=(a.topk_group, a.expert_model_parallel_size),
        message="--topk-group {topk_group} must be below the expert-parallel size {expert_model_parallel_size}",
        why=(
            "each expert-parallel rank is one group of experts, and a token must choose from fewer groups than there "
            "are, so the run fails at launch"
        ),
        layout=True,
    ),
    refuse(
        "variable-lengths-allgather",
        a.variable_seq_lengths & a.num_experts.is_set & (a.moe_token_dispatcher_type == "allgather"),
        at=(a.variable_seq_lengths, a.moe_token_dispatcher_type),
        message="--variable-seq-lengths does not work with the allgather dispatcher, the default",
        why=(
            "the allgather dispatcher can gather only equal numbers of tokens from all ranks, so the run fails at "
            "launch"
        ),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall"),),
    ),
    clash(
        "dualpipev-without-overlap",
        a.schedules_method == "dualpipev",
        ~a.moe_fb_overlap,
        at=(a.schedules_method,),
        message="--schedules-method dualpipev needs --moe-fb-overlap",
        why="before 2.2, the schedule works only with the overlap, so the run fails at launch",
    ),
)
