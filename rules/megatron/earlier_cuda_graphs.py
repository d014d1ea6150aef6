"""Checks of CUDA graphs in Megatron core 0.11 to 0.17, where --cuda-graph-scope selects the scope."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, env
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
SCOPE = a.cuda_graph_scope
IMPL = a.cuda_graph_impl
ASKED = all_of(IMPL.written.is_set, IMPL.written != "none")
# --cuda-graph-impl does not exist before 0.15
LOCAL = any_of(IMPL.written == "local", all_of(IMPL.is_none, a.enable_cuda_graph))
ATTENTION = all_of(IMPL == "transformer_engine", SCOPE == "attn")
ITERATION = any_of(SCOPE == "full_iteration", SCOPE.has("full_iteration"))
ALLOCATOR = env("PYTORCH_CUDA_ALLOC_CONF")

MEGATRON.add(
    refuse(
        "iteration-graph-by-transformer-engine",
        all_of(IMPL == "transformer_engine", ITERATION),
        message="--cuda-graph-scope full_iteration needs --cuda-graph-impl local, not {cuda_graph_impl}",
        why="Transformer Engine can only capture layers, not iterations, so Megatron rejects the model configuration",
        at=(SCOPE, IMPL),
        fixes=(put(IMPL, "local"), drop(SCOPE)),
    ),
    refuse(
        "graph-scope-full-beside-others",
        all_of(SCOPE.has("full"), SCOPE.length > 1, SCOPE != "full_iteration", SCOPE != "full"),
        message="--cuda-graph-scope full captures the whole layer and cannot be combined with others",
    ),
    refuse(
        "attention-graph-with-its-recompute",
        all_of(
            ATTENTION,
            a.recompute_granularity == "selective",
            any_of(a.recompute_modules.has("core_attn"), a.recompute_modules.has("mla_up_proj")),
        ),
        message=(
            "attention captured as a CUDA graph cannot be recomputed in parts; --recompute-modules must not include core_attn or mla_up_proj"
        ),
        why=(
            "the graph already contains the modules that would be recomputed, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.recompute_modules, SCOPE, a.recompute_granularity),
    ),
    refuse(
        "graph-with-selective-recompute",
        all_of(IMPL.is_set, IMPL != "none", a.recompute_granularity == "selective", ~ATTENTION),
        message=(
            "activations can be recomputed only with transformer_engine CUDA graphs of attention, not with "
            "--cuda-graph-impl {cuda_graph_impl} and --cuda-graph-scope {cuda_graph_scope}"
        ),
        why="Megatron rejects the model configuration at startup",
        at=(a.recompute_granularity, IMPL, SCOPE),
    ),
    refuse(
        "iteration-graph-with-nan-check",
        all_of(
            LOCAL,
            ITERATION,
            a.check_for_nan_in_loss_and_grad,
            any_of(a.inference_dynamic_batching.is_none, ~a.inference_dynamic_batching),
        ),
        message="a CUDA graph of the whole iteration needs --no-check-for-nan-in-loss-and-grad",
        why="the check copies the loss to the host in each step, which a graph cannot do, so " + REFUSED,
        at=(SCOPE, IMPL, a.enable_cuda_graph),
        fixes=(put(a.check_for_nan_in_loss_and_grad, False, safety=Safety.UNSAFE),),
    ),
    refuse(
        "iteration-graph-for-fp8-inference",
        all_of(IMPL.written == "local", a.inference_dynamic_batching, ITERATION, a.fp8.is_set),
        message="a CUDA graph of the whole iteration cannot be captured for inference in fp8",
        at=(SCOPE, a.fp8),
    ),
    refuse(
        "inference-graph-for-fp8",
        all_of(
            IMPL.written == "local",
            SCOPE.has("full_iteration_inference"),
            a.fp8.is_set,
            any_of(a.transformer_impl != "inference_optimized", a.fp8_recipe != "mxfp8"),
        ),
        message=(
            "--cuda-graph-scope full_iteration_inference supports fp8 only with --transformer-impl "
            "inference_optimized and --fp8-recipe mxfp8"
        ),
        at=(SCOPE, a.fp8, a.fp8_recipe),
    ),
    refuse(
        "graph-without-padded-experts",
        all_of(
            IMPL.written == "local",
            a.expert_model_parallel_size > 1,
            ~a.moe_pad_experts_for_cuda_graph_inference,
            a.transformer_impl != "inference_optimized",
        ),
        message=(
            "local CUDA graphs with an expert-parallel size of {expert_model_parallel_size} need "
            "--moe-pad-experts-for-cuda-graph-inference"
        ),
        why="these releases require the option for training as well, so " + REFUSED,
        at=(IMPL, a.expert_model_parallel_size),
        fixes=(put(a.moe_pad_experts_for_cuda_graph_inference), drop(IMPL)),
    ),
    refuse(
        "external-graph-without-tracker",
        all_of(a.external_cuda_graph, ~a.te_rng_tracker),
        message="--external-cuda-graph needs --te-rng-tracker",
        why="a graph can only replay random numbers with the tracker of Transformer Engine, so " + REFUSED,
        at=(a.external_cuda_graph,),
        fixes=(put(a.te_rng_tracker), drop(a.external_cuda_graph)),
    ),
    refuse(
        "any-graph-with-expandable-segments",
        all_of(any_of(a.external_cuda_graph, ASKED), ALLOCATOR.is_set, ALLOCATOR.has("expandable_segments:True")),
        message="CUDA graphs do not work with expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF",
        why="replays may read memory that has moved, so " + REFUSED,
        at=(a.external_cuda_graph, IMPL),
    ),
    conflicts(
        "external-graph-with-full-recompute",
        a.external_cuda_graph,
        a.recompute_granularity == "full",
        message="--external-cuda-graph does not work with full recomputation",
        at=(a.recompute_granularity, a.external_cuda_graph),
        fixes=(drop(a.external_cuda_graph, safety=Safety.SAFE),),
    ),
    refuse(
        "old-cuda-graph-with-split-inference",
        all_of(a.enable_cuda_graph, a.inference_batch_times_seqlen_threshold > -1),
        message=(
            "--inference-batch-times-seqlen-threshold {inference_batch_times_seqlen_threshold} does not work with "
            "CUDA graphs"
        ),
        at=(a.inference_batch_times_seqlen_threshold, a.enable_cuda_graph),
    ),
    refuse(
        "expert-overlap-with-captured-experts",
        all_of(
            a.overlap_moe_expert_parallel_comm,
            IMPL.is_set,
            IMPL != "none",
            any_of(IMPL != "transformer_engine", SCOPE.has("mlp"), SCOPE.has("moe")),
        ),
        message=(
            "--overlap-moe-expert-parallel-comm works only with transformer_engine CUDA graphs whose scope contains "
            "neither mlp nor moe"
        ),
        why=(
            "the overlapped layer runs in pieces, which its graph does not contain, so Megatron rejects the model "
            "configuration"
        ),
    ),
)
