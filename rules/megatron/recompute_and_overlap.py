"""Checks that Megatron's argument validator makes on recomputation, overlap, CUDA graphs and offloading."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
SPREAD = a.distribute_saved_activations
GRAPHS = a.cuda_graph_impl
DELAYED = all_of(a.delay_wgrad_compute, a.transformer_impl == "transformer_engine", a.overlap_grad_reduce)
MODULES = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
"""The modules that --cuda-graph-modules may still name; other accepted names turn into separate settings."""
ATTENTION = a.cuda_graph_modules.has("attn")
ROUTER = all_of(
    a.cuda_graph_modules.has("moe_router"), a.moe_shared_expert_intermediate_size.is_set, ~a.moe_shared_expert_overlap
)
SPLIT = a.inference_batch_times_seqlen_threshold > -1

MEGATRON.add(
    refuse(
        "spread-activations-without-tensor-parallel",
        all_of(SPREAD, a.tensor_model_parallel_size <= 1),
        message="--distribute-saved-activations needs a tensor-parallel size above 1, not {tensor_model_parallel_size}",
        at=(SPREAD,),
        fixes=(drop(SPREAD, safety=Safety.SAFE),),
    ),
    refuse(
        "spread-activations-without-full-recompute",
        all_of(SPREAD, a.tensor_model_parallel_size > 1, a.recompute_granularity != "full"),
        message="--distribute-saved-activations needs --recompute-granularity full",
        at=(SPREAD, a.recompute_granularity),
        fixes=(drop(SPREAD, safety=Safety.SAFE),),
    ),
    refuse(
        "spread-activations-without-method",
        all_of(SPREAD, a.tensor_model_parallel_size > 1, a.recompute_granularity == "full", a.recompute_method.is_none),
        message="--distribute-saved-activations needs a --recompute-method",
        at=(SPREAD,),
        fixes=(drop(SPREAD, safety=Safety.SAFE), put(a.recompute_method, "uniform")),
        after=("megatron/recompute-full-without-method",),
    ),
    refuse(
        "recompute-selective-with-method",
        all_of(a.recompute_granularity == "selective", a.recompute_method.is_set),
        message=(
            "--recompute-method {recompute_method} is for --recompute-granularity full, but selective "
            "recomputation has no method"
        ),
        at=(a.recompute_method, a.recompute_granularity, a.recompute_activations),
        fixes=(drop(a.recompute_method, also=(a.recompute_num_layers,)),),
    ),
    requires(
        "overlapped-tensor-parallel-without-sequence-parallel",
        # releases before 0.10 check it before they switch off --sequence-parallel for a tensor-parallel size of 1
        all_of(a.tp_comm_overlap, any_of(~a.sequence_parallel.given, a.target_is_stated)),
        a.sequence_parallel,
        message=(
            "--tp-comm-overlap needs --sequence-parallel, which is off or was switched off because the "
            "tensor-parallel size is 1"
        ),
        at=(a.tp_comm_overlap,),
        fixes=(drop(a.tp_comm_overlap, safety=Safety.SAFE),),
    ),
    requires(
        "delayed-wgrad-implementation",
        a.delay_wgrad_compute,
        a.transformer_impl == "transformer_engine",
        message="--delay-wgrad-compute needs --transformer-impl transformer_engine, not {transformer_impl}",
        fixes=(drop(a.delay_wgrad_compute, safety=Safety.SAFE),),
    ),
    refuse(
        "graphed-wgrad-without-fusion",
        all_of(DELAYED, any_of(ATTENTION, ROUTER), ~a.gradient_accumulation_fusion),
        message="weight gradients that are delayed until after a CUDA graph need gradient accumulation fusion, which is off",
        why="graphs need fixed addresses, so " + REFUSED,
        at=(a.delay_wgrad_compute, a.cuda_graph_modules),
        fixes=(drop(a.delay_wgrad_compute, safety=Safety.SAFE),),
    ),
    refuse(
        "graphed-wgrad-with-bias",
        all_of(DELAYED, ATTENTION, a.gradient_accumulation_fusion, a.add_qkv_bias),
        message="weight gradients that are delayed until after a CUDA graph of attention need attention without biases",
        at=(a.delay_wgrad_compute, a.cuda_graph_modules, a.add_qkv_bias),
        fixes=(drop(a.delay_wgrad_compute, safety=Safety.SAFE),),
    ),
    requires(
        "activation-offload-implementation",
        a.fine_grained_activation_offloading,
        a.transformer_impl == "transformer_engine",
        message=(
            "--fine-grained-activation-offloading needs --transformer-impl transformer_engine, not {transformer_impl}"
        ),
        fixes=(drop(a.fine_grained_activation_offloading, safety=Safety.SAFE),),
    ),
    conflicts(
        "full-graph-with-modules",
        GRAPHS == "full_iteration",
        any_of(*(a.cuda_graph_modules.has(module) for module in MODULES)),
        message="--cuda-graph-modules does not work with a CUDA graph of the whole iteration",
        at=(a.cuda_graph_modules, GRAPHS),
        fixes=(drop(a.cuda_graph_modules),),
    ),
    refuse(
        "inference-graphs-not-positive",
        all_of(
            GRAPHS == "local",
            a.inference_dynamic_batching_num_cuda_graphs <= 0,
            a.inference_dynamic_batching_num_cuda_graphs != -1,
        ),
        message=(
            "--inference-dynamic-batching-num-cuda-graphs is {inference_dynamic_batching_num_cuda_graphs}; it must "
            "be above 0, or -1 for automatic"
        ),
        at=(a.inference_dynamic_batching_num_cuda_graphs,),
        fixes=(drop(a.inference_dynamic_batching_num_cuda_graphs),),
    ),
    refuse(
        "split-inference-without-pipeline",
        all_of(SPLIT, a.pipeline_model_parallel_size <= 1),
        message="--inference-batch-times-seqlen-threshold needs at least 2 pipeline stages, not 1",
        at=(a.inference_batch_times_seqlen_threshold,),
        fixes=(drop(a.inference_batch_times_seqlen_threshold, safety=Safety.SAFE),),
    ),
    refuse(
        "split-inference-with-graph",
        all_of(SPLIT, a.pipeline_model_parallel_size > 1, GRAPHS != "none"),
        message=(
            "--inference-batch-times-seqlen-threshold does not work with CUDA graphs (--cuda-graph-impl "
            "{cuda_graph_impl})"
        ),
        at=(a.inference_batch_times_seqlen_threshold, GRAPHS),
        fixes=(drop(a.inference_batch_times_seqlen_threshold), drop(GRAPHS)),
    ),
    refuse(
        "fake-groups-with-flex",
        all_of(a.fake_process_group, a.moe_token_dispatcher_type == "flex"),
        message="--fake-process-group does not work with the flex dispatcher",
        at=(a.moe_token_dispatcher_type, a.fake_process_group),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall"),),
    ),
    refuse(
        "inference-graph-scope",
        any_of(
            all_of(GRAPHS == "local", a.inference_cuda_graph_scope.written == "none"),
            all_of(
                GRAPHS.is_in("none", "transformer_engine", "full_iteration"),
                a.inference_cuda_graph_scope.written.is_in("layer", "block"),
            ),
        ),
        message=(
            "--inference-cuda-graph-scope {inference_cuda_graph_scope} does not work with "
            "--cuda-graph-impl {cuda_graph_impl}"
        ),
        at=(a.inference_cuda_graph_scope, GRAPHS),
        fixes=(drop(a.inference_cuda_graph_scope),),
    ),
)
