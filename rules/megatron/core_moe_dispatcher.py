"""Checks of token dispatchers, their backends, and expert capacity."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, grouped_tensor
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
DISPATCHER = a.moe_token_dispatcher_type
BACKEND = a.moe_flex_dispatcher_backend
FUSER = a.use_transformer_engine_op_fuser
QUANTIZED_TRAFFIC = any_of(a.moe_dispatch_fwd_dtype != "bf16", a.moe_combine_bwd_dtype != "bf16")

MEGATRON.add(
    refuse(
        "deepep-without-flex",
        all_of(a.moe_enable_deepep, DISPATCHER != "flex"),
        message="DeepEP needs the flex dispatcher, not {moe_token_dispatcher_type}",
        at=(DISPATCHER, a.moe_enable_deepep),
        fixes=(put(DISPATCHER, "flex"), drop(a.moe_enable_deepep)),
    ),
    conflicts(
        "two-flex-backends",
        a.moe_enable_deepep,
        all_of(DISPATCHER == "flex", BACKEND == "hybridep"),
        message="--moe-enable-deepep and --moe-flex-dispatcher-backend hybridep choose different backends",
        at=(a.moe_enable_deepep, BACKEND),
        fixes=(drop(a.moe_enable_deepep), drop(BACKEND)),
    ),
    conflicts(
        "deepep-with-capacity-padding",
        all_of(DISPATCHER == "flex", any_of(a.moe_enable_deepep, BACKEND == "deepep")),
        a.moe_pad_expert_input_to_capacity,
        message="the DeepEP backend cannot pad expert inputs to capacity",
        after=("megatron/flex-with-capacity-padding",),
        at=(a.moe_pad_expert_input_to_capacity, DISPATCHER),
        fixes=(drop(a.moe_pad_expert_input_to_capacity),),
    ),
    conflicts(
        "flex-with-capacity-padding",
        DISPATCHER == "flex",
        a.moe_pad_expert_input_to_capacity,
        message="the flex dispatcher cannot pad expert inputs to capacity",
        at=(a.moe_pad_expert_input_to_capacity, DISPATCHER),
        fixes=(drop(a.moe_pad_expert_input_to_capacity),),
    ),
    refuse(
        "ncclep-without-flex",
        all_of(BACKEND == "ncclep", DISPATCHER != "flex"),
        message="NCCL EP needs the flex dispatcher, not {moe_token_dispatcher_type}",
        at=(DISPATCHER, BACKEND),
        fixes=(put(DISPATCHER, "flex"), drop(BACKEND)),
    ),
    refuse(
        "ncclep-grouped-tensor-without-fuser",
        all_of(BACKEND == "ncclep", DISPATCHER == "flex", grouped_tensor, ~FUSER),
        message="grouped tensors over NCCL EP need --use-transformer-engine-op-fuser",
        at=(a.moe_use_grouped_tensor, BACKEND),
        fixes=(put(FUSER),),
    ),
    refuse(
        "quantized-dispatch-without-ncclep",
        all_of(QUANTIZED_TRAFFIC, any_of(DISPATCHER != "flex", BACKEND != "ncclep")),
        message=(
            "tokens can only be dispatched in {moe_dispatch_fwd_dtype} and combined in {moe_combine_bwd_dtype} by "
            "the flex dispatcher over ncclep"
        ),
    ),
    refuse(
        "quantized-dispatch-without-fused-experts",
        all_of(QUANTIZED_TRAFFIC, DISPATCHER == "flex", BACKEND == "ncclep", ~all_of(FUSER, a.moe_grouped_gemm)),
        message="dispatching in mxfp8 needs both --use-transformer-engine-op-fuser and --moe-grouped-gemm",
        why=(
            "only the fused grouped matmul can read tokens that arrive quantized, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.moe_dispatch_fwd_dtype, a.moe_combine_bwd_dtype),
    ),
    refuse(
        "two-sm-counts",
        all_of(
            a.moe_flex_dispatcher_num_sms.is_none,
            a.moe_deepep_num_sms.is_set,
            a.moe_hybridep_num_sms.is_set,
            a.moe_deepep_num_sms != a.moe_hybridep_num_sms,
        ),
        message=(
            "--moe-deepep-num-sms {moe_deepep_num_sms} and --moe-hybridep-num-sms {moe_hybridep_num_sms} set the "
            "same number; give only one of them"
        ),
        why="Megatron rejects the model configuration at startup. --moe-flex-dispatcher-num-sms replaces both options",
        at=(a.moe_hybridep_num_sms, a.moe_deepep_num_sms),
        fixes=(drop(a.moe_hybridep_num_sms), drop(a.moe_deepep_num_sms)),
    ),
    refuse(
        "shared-expert-overlap-dispatcher",
        all_of(
            a.moe_shared_expert_intermediate_size.is_set,
            a.moe_shared_expert_overlap,
            ~DISPATCHER.is_in("alltoall", "flex"),
        ),
        message=("shared-expert overlap needs the alltoall or flex dispatcher, not {moe_token_dispatcher_type}"),
        at=(DISPATCHER, a.moe_shared_expert_overlap),
        fixes=(put(DISPATCHER, "alltoall", safety=Safety.SAFE), drop(a.moe_shared_expert_overlap, safety=Safety.SAFE)),
    ),
    refuse(
        "shared-expert-overlap-needs-alltoall",
        all_of(a.moe_shared_expert_intermediate_size.is_set, a.moe_shared_expert_overlap, DISPATCHER != "alltoall"),
        message="shared-expert overlap needs the alltoall dispatcher, not {moe_token_dispatcher_type}",
        at=(DISPATCHER, a.moe_shared_expert_overlap),
        fixes=(put(DISPATCHER, "alltoall", safety=Safety.SAFE), drop(a.moe_shared_expert_overlap, safety=Safety.SAFE)),
    ),
    requires(
        "capacity-padding-without-capacity",
        a.moe_pad_expert_input_to_capacity,
        all_of(a.moe_expert_capacity_factor.is_set, a.moe_expert_capacity_factor >= 0),
        message="padding expert inputs to their capacity needs --moe-expert-capacity-factor",
        fixes=(drop(a.moe_pad_expert_input_to_capacity),),
    ),
    refuse(
        "rank-capacity-backend",
        all_of(a.moe_expert_rank_capacity_factor.is_set, ~BACKEND.is_in("hybridep", "ncclep")),
        message="a capacity per rank needs the hybridep or ncclep backend, not {moe_flex_dispatcher_backend}",
    ),
    refuse(
        "rank-capacity-hybridep-without-fuser",
        all_of(a.moe_expert_rank_capacity_factor.is_set, BACKEND == "hybridep", ~FUSER, ~grouped_tensor),
        message="a capacity per rank over hybridep needs --use-transformer-engine-op-fuser or --moe-use-grouped-tensor",
        after=("megatron/two-flex-backends",),
        at=(a.moe_expert_rank_capacity_factor,),
    ),
    refuse(
        "sequence-alltoall-with-expert-tensor-parallel",
        all_of(DISPATCHER == "alltoall_seq", a.tensor_model_parallel_size != a.expert_tensor_parallel_size),
        message=(
            "alltoall_seq needs the same tensor-parallel size for experts ({expert_tensor_parallel_size}) and for the "
            "rest ({tensor_model_parallel_size})"
        ),
        at=(a.expert_tensor_parallel_size, DISPATCHER),
        fixes=(put(DISPATCHER, "alltoall"),),
        layout=True,
    ),
    conflicts(
        "sequence-alltoall-with-permute-fusion",
        DISPATCHER == "alltoall_seq",
        a.moe_permute_fusion,
        message="alltoall_seq cannot use fused permutation",
        at=(a.moe_permute_fusion, DISPATCHER),
        unless_framework="mindspeed",
        fixes=(drop(a.moe_permute_fusion, safety=Safety.SAFE),),
    ),
)
