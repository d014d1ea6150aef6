"""Checks of two-level context parallelism, and of hybrid context parallelism with groups of different sizes."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of

MEGATRON = ConstraintSet("megatron", why=REFUSED)
HYBRID = a.hybrid_context_parallel

MEGATRON.add(
    requires(
        "two-level-context-without-sizes",
        a.cp_comm_type.has("a2a+p2p"),
        a.hierarchical_context_parallel_sizes.is_set,
        message="--cp-comm-type a2a+p2p needs --hierarchical-context-parallel-sizes, the size of each level",
        at=(a.cp_comm_type,),
    ),
    refuse(
        "hybrid-context-with-pipeline",
        all_of(HYBRID, a.pipeline_model_parallel_size > 1),
        message="hybrid context parallelism needs a pipeline-parallel size of 1, not {pipeline_model_parallel_size}",
        fixes=(drop(HYBRID),),
    ),
    conflicts(
        "hybrid-context-with-graph",
        HYBRID,
        a.enable_cuda_graph,
        message="hybrid context parallelism does not work with --enable-cuda-graph",
    ),
    conflicts(
        "hybrid-context-with-fsdp",
        HYBRID,
        a.use_megatron_fsdp,
        message="hybrid context parallelism does not work with Megatron-FSDP",
        fixes=(drop(HYBRID),),
    ),
    refuse(
        "hybrid-context-loader",
        all_of(HYBRID, a.dataloader_type != "single"),
        message="hybrid context parallelism needs --dataloader-type single, not {dataloader_type}",
        at=(a.dataloader_type, HYBRID),
        fixes=(put(a.dataloader_type, "single"),),
    ),
    requires(
        "hybrid-context-without-token-loss",
        HYBRID,
        a.calculate_per_token_loss,
        message="hybrid context parallelism needs --calculate-per-token-loss",
    ),
)
