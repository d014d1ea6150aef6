"""Checks of deferred embedding gradients, overlapped pipeline communication, and process groups."""

from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, env
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the process groups at startup")
DEFER = a.defer_embedding_wgrad_compute
INSTANCES = a.num_distributed_optimizer_instances
WORLD = a.data_parallel_size * a.context_parallel_size

MEGATRON.add(
    refuse(
        "deferred-embedding-without-pipeline",
        all_of(DEFER, a.pipeline_model_parallel_size == 1),
        message=("--defer-embedding-wgrad-compute needs at least 2 pipeline stages, not 1"),
        why="Megatron rejects the model configuration at startup",
        at=(DEFER,),
        fixes=(drop(DEFER, safety=Safety.SAFE),),
    ),
    requires(
        "deferred-embedding-without-fusion",
        DEFER,
        a.gradient_accumulation_fusion,
        message="deferring the embedding's weight gradient needs gradient accumulation fusion, which is switched off",
        why="Megatron rejects the model configuration at startup",
        fixes=(drop(a.gradient_accumulation_fusion), drop(DEFER, safety=Safety.SAFE)),
    ),
    refuse(
        "deferral-limit-negative",
        all_of(DEFER, a.wgrad_deferral_limit < 0),
        message="--wgrad-deferral-limit is {wgrad_deferral_limit}; it must be at least 0 (0 means no limit)",
        why="Megatron rejects the model configuration at startup",
        at=(a.wgrad_deferral_limit,),
        fixes=(drop(a.wgrad_deferral_limit, safety=Safety.SAFE),),
    ),
    requires(
        "warmup-flush-overlap-without-overlap",
        a.overlap_p2p_comm_warmup_flush,
        a.overlap_p2p_comm,
        message=(
            "overlap in warm-up and flush needs overlapped pipeline communication, which exists only with virtual "
            "stages and is off"
        ),
        why="Megatron rejects the model configuration at startup",
        at=(a.overlap_p2p_comm_warmup_flush,),
        fixes=(drop(a.overlap_p2p_comm_warmup_flush, safety=Safety.SAFE),),
    ),
    refuse(
        "sharp-replica-group",
        all_of(a.use_sharp, a.sharp_enabled_group == "dp_replica", INSTANCES <= 1),
        message=(
            "SHARP on dp_replica needs several optimizer instances, but there is only "
            "{num_distributed_optimizer_instances}"
        ),
        at=(a.sharp_enabled_group,),
        fixes=(put(a.sharp_enabled_group, "dp"),),
    ),
    refuse(
        "sharp-group-without-sharp",
        all_of(~a.use_sharp, a.sharp_enabled_group.is_set),
        message="--sharp-enabled-group {sharp_enabled_group} has no effect without --use-sharp",
        at=(a.sharp_enabled_group,),
        fixes=(drop(a.sharp_enabled_group, safety=Safety.SAFE),),
    ),
    refuse(
        "sharp-broken",
        all_of(a.use_sharp, ~(a.sharp_enabled_group == "dp_replica")),
        message="--use-sharp fails in this version, because it uses a process group before that group exists",
        why=(
            "because of a defect in Megatron core 0.20.0, every run with the flag stops when process groups are created"
        ),
        at=(a.use_sharp,),
        fixes=(drop(a.use_sharp, also=(a.sharp_enabled_group,), safety=Safety.SAFE),),
    ),
    refuse(
        "sharded-weights-with-optimizer-instances",
        all_of(any_of(a.gtp_weight_remat_size > 1, a.expert_gtp_weight_remat_size > 1), INSTANCES > 1),
        message=(
            "weights sharded beyond tensor parallelism allow only one optimizer instance, but there are "
            "{num_distributed_optimizer_instances}"
        ),
        at=(INSTANCES, a.tensor_parallel_num_weight_shards, a.expert_tensor_parallel_num_weight_shards),
        fixes=(drop(INSTANCES),),
    ),
    refuse(
        "expert-data-parallel-differs",
        all_of(
            a.use_tp_pp_dp_mapping,
            a.pipeline_model_parallel_size > 1,
            a.world_size % a.expert_model_size == 0,
            a.expert_data_parallel_size != a.data_parallel_size,
        ),
        message=(
            "with --use-tp-pp-dp-mapping, experts and other layers need the same data-parallel size, not "
            "{expert_data_parallel_size} and {data_parallel_size}"
        ),
        why="the pipeline groups of experts and of other layers would differ, so Megatron rejects the process groups",
        at=(a.use_tp_pp_dp_mapping, a.expert_model_parallel_size),
        fixes=(drop(a.use_tp_pp_dp_mapping),),
        layout=True,
    ),
    refuse(
        "optimizer-instances-over-ranks",
        any_of(INSTANCES == 0, all_of(INSTANCES > 1, WORLD % INSTANCES != 0)),
        message=(
            "{ranks} data- and context-parallel ranks are not divisible by {num_distributed_optimizer_instances} "
            "optimizer instances"
        ),
        shows={"ranks": WORLD},
        at=(INSTANCES,),
        layout=True,
    ),
    divides(
        "optimizer-instances-over-expert-ranks",
        INSTANCES,
        a.expert_data_parallel_size,
        when=all_of(INSTANCES > 1, WORLD % INSTANCES == 0, a.world_size % a.expert_model_size == 0),
        message=(
            "the data-parallel size of the experts, {expert_data_parallel_size}, is not divisible by "
            "{num_distributed_optimizer_instances}, the number of optimizer instances"
        ),
        at=(INSTANCES, a.expert_model_parallel_size),
        layout=True,
    ),
    refuse(
        "hybrid-context-odd-ranks",
        all_of(a.hybrid_context_parallel, WORLD % 2 != 0),
        message=("hybrid context parallelism needs an even number of data- and context-parallel ranks, not {ranks}"),
        shows={"ranks": WORLD},
        at=(a.hybrid_context_parallel, a.context_parallel_size),
        layout=True,
    ),
    refuse(
        "ucc-with-one-connection",
        all_of(a.pipeline_model_parallel_comm_backend == "ucc", env("CUDA_DEVICE_MAX_CONNECTIONS") == "1"),
        message="UCC pipeline communication needs CUDA_DEVICE_MAX_CONNECTIONS to be unset or above 1, not 1",
        why="all communication would be serialized, so Megatron rejects the process groups",
        at=(a.pipeline_model_parallel_comm_backend,),
        fixes=(put(env("CUDA_DEVICE_MAX_CONNECTIONS"), 8), drop(a.pipeline_model_parallel_comm_backend)),
    ),
    refuse(
        "expert-size-zero",
        a.expert_model_parallel_size == 0,
        message="the expert-parallel size is 0; it must be at least 1",
        why="the run divides by zero when process groups are created",
    ),
    refuse(
        "expert-tensor-size-zero",
        a.expert_tensor_parallel_size == 0,
        message="the expert-tensor-parallel size is 0; it must be at least 1",
        why="the run divides by zero before any group is created",
    ),
)
