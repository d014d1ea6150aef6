"""Checks of the micro-batch count in the interleaved pipeline schedule, which Megatron makes in the first step."""

from preflight.lint.constraint import ConstraintSet, drop, refuse
from preflight.lint.expressions import Expression
from preflight.rules.megatron.option_names import a, all_of, any_of

WHY = "the first step fails on every rank, after the model is built and the data is read"
MEGATRON = ConstraintSet("megatron", why=WHY)
SCHEDULES = "megatron/core/pipeline_parallel/schedules.py"
BATCHES, STAGES, VIRTUAL = a.num_microbatches, a.pipeline_model_parallel_size, a.virtual_pipeline_model_parallel_size
GROUP = a.microbatch_group_size_per_vp_stage
OTHER_SCHEDULE: Expression = any_of(
    *(
        a.recompute_in_bubble,
        a.recompute_in_advance,
        a.use_multiparameter_pipeline_model_parallel,
        a.moe_fb_overlap,
        a.tp_2d,
        a.enable_mhc,
    ),
    *(a.layerwise_disaggregated_training, a.enable_high_availability, a.schedules_method.is_set),
)
"""MindSpeed features that have a separate schedule."""
INTERLEAVED = all_of(STAGES > 1, VIRTUAL.is_set, ~a.skip_train, ~a.perform_rl_step, ~OTHER_SCHEDULE)
LEAVE = drop(
    a.num_layers_per_virtual_pipeline_stage,
    also=(a.num_virtual_stages_per_pipeline_rank, GROUP),
    title="remove the virtual stages",
)
PLACES = (
    a.global_batch_size,
    VIRTUAL,
    a.num_layers_per_virtual_pipeline_stage,
    a.num_virtual_stages_per_pipeline_rank,
    STAGES,
)

MEGATRON.add(
    refuse(
        "interleaved-micro-batches-below-stages",
        all_of(INTERLEAVED, GROUP.is_none, BATCHES < STAGES),
        message=(
            "{num_microbatches} micro-batches per step are fewer than the {pipeline_model_parallel_size} pipeline "
            "stages; virtual stages need at least as many"
        ),
        at=PLACES,
        fixes=(LEAVE,),
        layout=True,
    ),
    refuse(
        "interleaved-micro-batches-left-over",
        all_of(INTERLEAVED, GROUP.is_none, BATCHES > STAGES, BATCHES % STAGES > 0),
        message=(
            "{num_microbatches} micro-batches per step are not a multiple of the {pipeline_model_parallel_size} "
            "pipeline stages, which virtual stages need"
        ),
        at=PLACES,
        fixes=(LEAVE,),
        layout=True,
    ),
    refuse(
        "interleaved-group-out-of-range",
        all_of(INTERLEAVED, GROUP.is_set, any_of(GROUP > BATCHES, GROUP < STAGES)),
        message=(
            "the micro-batch group size {microbatch_group_size_per_vp_stage} must be at least "
            "{pipeline_model_parallel_size}, the number of pipeline stages, and at most {num_microbatches}, the "
            "number of micro-batches per step"
        ),
        at=(GROUP, *PLACES),
        fixes=(drop(GROUP), LEAVE),
        layout=True,
    ),
    refuse(
        "interleaved-group-left-over",
        all_of(
            INTERLEAVED, GROUP.is_set, GROUP <= BATCHES, GROUP >= STAGES, BATCHES % GROUP > 0, BATCHES % GROUP < STAGES
        ),
        message=(
            "{num_microbatches} micro-batches in groups of {microbatch_group_size_per_vp_stage} leave a last group "
            "smaller than the {pipeline_model_parallel_size} pipeline stages"
        ),
        at=(GROUP, *PLACES),
        fixes=(drop(GROUP), LEAVE),
        layout=True,
    ),
)
