"""Checks of pipeline schedules: DualPipeV, virtual stages, custom layouts, and several tensors between stages."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import DUALPIPEV, a, clash, needs

SCHEDULE = (
    "the schedule runs the forward and backward passes of two halves at once and does not support this feature, so "
    "the run fails at launch"
)
MINDSPEED = ConstraintSet("mindspeed", why=SCHEDULE)
LEAVE = drop(a.schedules_method, also=(a.dualpipev_dw_detach,), title="remove the dualpipev schedule")
PP = a.pipeline_model_parallel_size
VPP = a.num_layers_per_virtual_pipeline_stage
MICRO = a.global_batch_size // a.micro_batch_size // a.data_parallel_size

MINDSPEED.add(
    clash(
        "dualpipev-custom-fsdp",
        DUALPIPEV,
        a.use_custom_fsdp,
        why=SCHEDULE,
        fixes=(drop(a.use_custom_fsdp), LEAVE),
    ),
    clash(
        "dualpipev-overlap-grad-reduce",
        DUALPIPEV,
        a.overlap_grad_reduce,
        why=SCHEDULE,
        fixes=(drop(a.overlap_grad_reduce, also=(a.overlap_param_gather,)), LEAVE),
    ),
    needs(
        "dualpipev-untied-embeddings",
        DUALPIPEV,
        a.untie_embeddings_and_output_weights,
        at=(a.schedules_method,),
        why=(
            "the embedding and the output layer share the first stage, so tied weights would be updated twice. The "
            "run fails at launch"
        ),
    ),
    clash(
        "dualpipev-swap-attention",
        DUALPIPEV,
        a.swap_attention,
        why=SCHEDULE,
        fixes=(drop(a.swap_attention, also=(a.swap_modules,)), LEAVE),
    ),
    refuse(
        "dualpipev-context-parallel",
        DUALPIPEV & (a.context_parallel_size > 1),
        fixes=(LEAVE,),
        layout=True,
        message="--schedules-method dualpipev does not work with a context-parallel size of {context_parallel_size}",
    ),
    refuse(
        "dualpipev-virtual-stages",
        DUALPIPEV & VPP.is_set,
        fixes=(drop(VPP), LEAVE),
        at=(VPP, a.schedules_method),
        message="--schedules-method dualpipev does not work with --num-layers-per-virtual-pipeline-stage",
    ),
    refuse(
        "dualpipev-pipeline-size",
        DUALPIPEV & (PP == 1),
        why="without a pipeline, there is nothing to schedule, so the run fails at launch",
        fixes=(LEAVE,),
        layout=True,
        message="--schedules-method dualpipev needs a pipeline, but there is only 1 stage",
    ),
    refuse(
        "dualpipev-layers",
        DUALPIPEV & (PP > 1) & (a.num_layers < PP * 2),
        why="each rank must hold two chunks with at least one layer each, so the run fails at launch",
        at=(a.num_layers, PP),
        message=(
            "dualpipev needs at least 2 × {pipeline_model_parallel_size} layers, two per pipeline stage, but the "
            "model has {num_layers}"
        ),
        layout=True,
    ),
    refuse(
        "dualpipev-micro-batches",
        DUALPIPEV & (PP > 1) & (MICRO < PP * 2 - 1),
        shows={"count": MICRO, "least": PP * 2},
        message=(
            "{count} micro-batches are fewer than the {least} that dualpipev needs on {pipeline_model_parallel_size} "
            "pipeline ranks"
        ),
        why="there are too few micro-batches to fill both directions, so the run fails at launch",
        at=(a.global_batch_size, a.micro_batch_size, PP),
        layout=True,
        fixes=(put(a.global_batch_size, PP * 2 * a.micro_batch_size * a.data_parallel_size),),
    ),
    refuse(
        "dualpipev-micro-batches-edge",
        DUALPIPEV & (PP > 1) & (MICRO == PP * 2 - 1),
        severity=Severity.WARNING,
        shows={"count": MICRO, "least": PP * 2},
        message="{count} micro-batches are one fewer than the {least} that the documentation of dualpipev requires",
        why="the validator accepts one micro-batch fewer than the documentation requires",
        at=(a.global_batch_size, a.micro_batch_size, PP),
        fixes=(put(a.global_batch_size, PP * 2 * a.micro_batch_size * a.data_parallel_size),),
    ),
    refuse(
        "dualpipev-layers-multiple",
        DUALPIPEV & (a.num_layers // (PP * 2) >= 1) & (a.num_layers % (PP * 2) != 0),
        severity=Severity.WARNING,
        message=(
            "{num_layers} layers are not a multiple of 2 × {pipeline_model_parallel_size} pipeline stages, as the "
            "documentation of dualpipev requires"
        ),
        why="the validator checks only that there are enough layers, so the chunks become uneven, or layers are lost",
        at=(a.num_layers, PP),
    ),
    refuse(
        "virtual-stage-is-whole-stage",
        VPP.is_set & (a.num_layers == VPP * PP),
        after=(
            "megatron/interleaving-without-pipeline",
            "mindspeed-llm/layer-list-two-stages",
            "mindspeed-llm/virtual-stage-is-whole-stage",
        ),
        fixes=(drop(VPP),),
        message=(
            "{num_layers_per_virtual_pipeline_stage} layers per virtual stage × {pipeline_model_parallel_size} "
            "pipeline stages = all {num_layers} layers, so each rank has only one virtual stage"
        ),
        why="with one virtual stage per rank, there is no interleaving, so the run fails at launch",
    ),
    refuse(
        "defer-embedding-wgrad",
        a.defer_embedding_wgrad_compute,
        fixes=(drop(a.defer_embedding_wgrad_compute),),
        message="--defer-embedding-wgrad-compute is not supported by MindSpeed",
        why="the run fails at launch",
    ),
    clash(
        "multi-parameter-fb-overlap",
        a.use_multiparameter_pipeline_model_parallel,
        a.moe_fb_overlap,
        unless_framework="mindspeed-llm",
        why="the overlap can only exchange one tensor between stages, so the run fails at launch",
    ),
    clash(
        "multi-parameter-dualpipev",
        a.use_multiparameter_pipeline_model_parallel,
        DUALPIPEV,
        unless_framework="mindspeed-llm",
        fixes=(LEAVE,),
        why="the schedule can only exchange one tensor between stages, so the run fails at launch",
    ),
)
