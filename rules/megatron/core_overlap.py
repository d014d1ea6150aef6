"""Checks of overlapped expert-parallel communication and delayed weight gradients."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, one_of, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, recomputes_moe
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
OVERLAP = a.overlap_moe_expert_parallel_comm

MEGATRON.add(
    refuse(
        "expert-overlap-without-virtual-stages",
        all_of(OVERLAP, a.pipeline_model_parallel_size > 1, a.virtual_pipeline_model_parallel_size.is_none),
        message=(
            "overlapping expert communication on {pipeline_model_parallel_size} pipeline stages needs virtual stages"
        ),
        why=(
            "the communication of one chunk is hidden behind the computation of another, which needs several chunks, "
            "so Megatron rejects the model configuration"
        ),
        at=(OVERLAP, a.pipeline_model_parallel_size),
        layout=True,
    ),
    requires(
        "expert-overlap-without-expert-parallel",
        OVERLAP,
        a.expert_model_parallel_size > 1,
        message=(
            "overlapping expert communication needs an expert-parallel size above 1, not {expert_model_parallel_size}"
        ),
        fixes=(drop(OVERLAP, also=(a.delay_wgrad_compute,), safety=Safety.SAFE),),
    ),
    one_of(
        "expert-overlap-dispatcher",
        a.moe_token_dispatcher_type,
        ("alltoall", "flex"),
        when=OVERLAP,
        message=(
            "overlapping expert communication needs the alltoall or flex dispatcher, not {moe_token_dispatcher_type}"
        ),
        at=(a.moe_token_dispatcher_type, OVERLAP),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
    ),
    conflicts(
        "expert-overlap-with-full-recompute",
        OVERLAP,
        all_of(a.recompute_granularity == "full", ~a.moe_layer_recompute),
        message="overlapping expert communication cannot be combined with full recomputation",
        why=(
            "the layer runs in pieces, which full recomputation would merge again, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.recompute_granularity, OVERLAP),
        fixes=(
            drop(OVERLAP, also=(a.delay_wgrad_compute,)),
            drop(a.recompute_granularity, also=(a.recompute_method, a.recompute_num_layers)),
        ),
    ),
    conflicts(
        "expert-overlap-with-recompute-method",
        OVERLAP,
        a.recompute_method.is_set,
        message="overlapping expert communication cannot be combined with --recompute-method {recompute_method}",
        at=(a.recompute_method, OVERLAP),
        after=("megatron/expert-overlap-with-full-recompute",),
        fixes=(drop(a.recompute_method),),
    ),
    conflicts(
        "expert-overlap-with-recompute-layers",
        OVERLAP,
        a.recompute_num_layers.is_set,
        message=(
            "overlapping expert communication cannot be combined with --recompute-num-layers {recompute_num_layers}"
        ),
        at=(a.recompute_num_layers, OVERLAP),
        after=("megatron/expert-overlap-with-full-recompute", "megatron/recompute-selective-with-layers"),
        fixes=(drop(a.recompute_num_layers),),
    ),
    conflicts(
        "expert-overlap-with-recomputed-experts",
        OVERLAP,
        recomputes_moe,
        message="overlapping expert communication cannot be combined with recomputing the whole expert layer",
        at=(a.recompute_modules, a.moe_layer_recompute, OVERLAP),
    ),
    requires(
        "expert-overlap-in-fp32",
        OVERLAP,
        any_of(a.bf16, a.fp16),
        message="overlapping expert communication needs --bf16 or --fp16, but the run is in fp32",
        at=(OVERLAP,),
        fixes=(put(a.bf16),),
    ),
    conflicts(
        "expert-overlap-with-shared-expert-overlap",
        OVERLAP,
        a.moe_shared_expert_overlap,
        message="--overlap-moe-expert-parallel-comm does not work with --moe-shared-expert-overlap",
        fixes=(drop(a.moe_shared_expert_overlap, safety=Safety.SAFE),),
    ),
    refuse(
        "expert-overlap-with-many-mtp",
        all_of(OVERLAP, a.mtp_num_layers > 1),
        message=(
            "overlapping expert communication works with at most one prediction layer, but the model has {mtp_num_layers}"
        ),
        at=(a.mtp_num_layers, OVERLAP),
    ),
    refuse(
        "expert-overlap-ncclep-offload",
        all_of(
            OVERLAP,
            a.moe_token_dispatcher_type == "flex",
            a.moe_flex_dispatcher_backend == "ncclep",
            a.fine_grained_activation_offloading,
            a.offload_modules.has("expert_fc1"),
        ),
        message=(
            "expert_fc1 cannot be offloaded while expert communication over NCCL EP is overlapped, because its input "
            "is freed earlier"
        ),
        at=(a.offload_modules, OVERLAP),
    ),
    refuse(
        "expert-overlap-captured-mlp",
        all_of(
            OVERLAP,
            a.cuda_graph_impl == "transformer_engine",
            any_of(a.cuda_graph_modules.has("moe"), a.cuda_graph_modules.has("mlp")),
        ),
        message="expert layers and MLPs cannot be captured as CUDA graphs while expert communication is overlapped",
        at=(a.cuda_graph_modules, OVERLAP),
    ),
    requires(
        "delayed-wgrad-without-expert-overlap",
        a.delay_wgrad_compute,
        OVERLAP,
        message="--delay-wgrad-compute needs --overlap-moe-expert-parallel-comm",
        fixes=(drop(a.delay_wgrad_compute, safety=Safety.SAFE), put(OVERLAP)),
    ),
    conflicts(
        "dispatch-overlap-with-expert-overlap",
        a.overlap_dispatch_backward_with_experts_wgrad,
        OVERLAP,
        message="--overlap-dispatch-backward-with-experts-wgrad does not work with --overlap-moe-expert-parallel-comm",
    ),
    requires(
        "early-release-without-expert-overlap",
        a.ep_overlap_early_attn_memory_release,
        OVERLAP,
        message="--ep-overlap-early-attn-memory-release needs --overlap-moe-expert-parallel-comm",
        fixes=(drop(a.ep_overlap_early_attn_memory_release, safety=Safety.SAFE),),
    ),
    refuse(
        "variable-length-with-dispatcher",
        all_of(
            a.variable_seq_lengths,
            a.moe_token_dispatcher_type.is_in("allgather", "alltoall_seq"),
            a.num_experts.is_set,
            ~a.unaligned_linear,
        ),
        message="the {moe_token_dispatcher_type} dispatcher cannot route sequences of varying length",
        why=(
            "the schedule can only exchange buffers of a fixed size, so Megatron rejects the model configuration. "
            "Without experts, MindSpeed hides the setting from this check "
            "(mindspeed/features_manager/pipeline_parallel/variable_seq_length.py:40); with unaligned linear layers, "
            "MindSpeed replaces all of these checks"
        ),
        at=(a.moe_token_dispatcher_type, a.variable_seq_lengths),
        unless_framework="mindspeed-llm",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
    ),
    refuse(
        "experts-and-tensor-without-sequence-parallel",
        all_of(a.expert_model_parallel_size > 1, a.tensor_model_parallel_size > 1, ~a.sequence_parallel),
        message=(
            "an expert-parallel size of {expert_model_parallel_size} with a tensor-parallel size of "
            "{tensor_model_parallel_size} needs --sequence-parallel"
        ),
        why="tensor-parallel ranks would route the same tokens twice, so Megatron rejects the model configuration",
        at=(a.expert_model_parallel_size, a.tensor_model_parallel_size),
        fixes=(put(a.sequence_parallel, safety=Safety.SAFE),),
    ),
)
