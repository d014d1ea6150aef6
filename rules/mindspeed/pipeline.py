"""Pipeline schedules: dualpipev, virtual stages, custom layouts, several tensors between stages."""

from __future__ import annotations

from preflight.rules.mindspeed.shorthand import CORE, DUALPIPEV, LLM, a, clash, needs

from preflight import Severity
from preflight.constraints.expressions import total
from preflight.constraints.shapes import ConstraintSet, divides, drop, put, refuse

MINDSPEED = ConstraintSet("mindspeed")
DUAL = f"{CORE}pipeline_parallel/dualpipev_feature.py"
LAYOUT = f"{CORE}pipeline_parallel/pipeline_model_parallel_layout_feature.py"
LEAVE = drop(a.schedules_method, also=(a.dualpipev_dw_detach,), title="drop the dualpipev schedule")
PP = a.pipeline_model_parallel_size
VPP = a.num_layers_per_virtual_pipeline_stage
MICRO = a.global_batch_size // a.micro_batch_size // a.data_parallel_size
CUSTOM = a.pipeline_model_parallel_layout.is_set
SCHEDULE = "the schedule runs forward and backward of two halves at once and does not know this feature; dies at launch"

MINDSPEED.add(
    clash("dualpipev-custom-fsdp", DUALPIPEV, a.use_custom_fsdp, upstream=f"{DUAL}:23", why=SCHEDULE, fixes=(drop(a.use_custom_fsdp), LEAVE)),
    clash(
        "dualpipev-overlap-grad-reduce",
        DUALPIPEV,
        a.overlap_grad_reduce,
        upstream=f"{DUAL}:26",
        why=SCHEDULE,
        fixes=(drop(a.overlap_grad_reduce, also=(a.overlap_param_gather,)), LEAVE),
    ),
    needs(
        "dualpipev-untied-embeddings",
        DUALPIPEV,
        a.untie_embeddings_and_output_weights,
        upstream=f"{DUAL}:29",
        at=(a.schedules_method,),
        why="embedding and output layer share the first stage, so tied weights would be updated twice; dies at launch",
    ),
    clash(
        "dualpipev-swap-attention",
        DUALPIPEV,
        a.swap_attention,
        upstream=f"{DUAL}:32",
        why=SCHEDULE,
        fixes=(drop(a.swap_attention, also=(a.swap_modules,)), LEAVE),
    ),
    refuse(
        "dualpipev-context-parallel",
        DUALPIPEV & (a.context_parallel_size > 1),
        upstream=f"{DUAL}:35",
        why=SCHEDULE,
        fixes=(LEAVE,),
        layout=True,
        at=(a.schedules_method, a.context_parallel_size),
        message="--schedules-method dualpipev does not work with context parallel {context_parallel_size}",
    ),
    refuse(
        "dualpipev-virtual-stages",
        DUALPIPEV & VPP.is_set,
        upstream=f"{DUAL}:38",
        why=SCHEDULE,
        fixes=(drop(VPP), LEAVE),
        at=(VPP, a.schedules_method),
        message="--schedules-method dualpipev does not work with --num-layers-per-virtual-pipeline-stage",
    ),
    refuse(
        "dualpipev-pipeline-size",
        DUALPIPEV & (PP == 1),
        upstream=f"{DUAL}:41",
        why="there is no pipeline to schedule; dies at launch",
        fixes=(LEAVE,),
        layout=True,
        at=(a.schedules_method, PP),
        message="--schedules-method dualpipev needs a pipeline, the size is 1",
    ),
    refuse(
        "dualpipev-layers",
        DUALPIPEV & (PP > 1) & (a.num_layers < PP * 2),
        upstream=f"{DUAL}:44",
        why="each rank holds two chunks of at least one layer; dies at launch",
        at=(a.num_layers, PP),
        message="{num_layers} layers are fewer than 2 x pipeline {pipeline_model_parallel_size}, which dualpipev needs",
        layout=True,
    ),
    refuse(
        "dualpipev-micro-batches",
        DUALPIPEV & (PP > 1) & (MICRO < PP * 2 - 1),
        upstream=f"{DUAL}:48",
        shows={"count": MICRO, "least": PP * 2},
        message="{count} micro-batches are fewer than dualpipev needs on {pipeline_model_parallel_size} pipeline ranks: {least}",
        why="the two directions cannot be filled; dies at launch",
        at=(a.global_batch_size, a.micro_batch_size, PP),
        layout=True,
        fixes=(put(a.global_batch_size, PP * 2 * a.micro_batch_size * a.data_parallel_size),),
    ),
    refuse(
        "dualpipev-micro-batches-edge",
        DUALPIPEV & (PP > 1) & (MICRO == PP * 2 - 1),
        upstream="docs/zh/features/dualpipev.md:59",
        severity=Severity.WARNING,
        shows={"count": MICRO, "least": PP * 2},
        message="{count} micro-batches are one fewer than the documents of dualpipev ask for: {least}",
        why="the validator is off by one against the documents",
        at=(a.global_batch_size, a.micro_batch_size, PP),
        fixes=(put(a.global_batch_size, PP * 2 * a.micro_batch_size * a.data_parallel_size),),
    ),
    refuse(
        "dualpipev-layers-multiple",
        DUALPIPEV & (a.num_layers >= PP * 2) & (a.num_layers % (PP * 2) != 0),
        upstream="docs/zh/features/dualpipev.md:59",
        severity=Severity.WARNING,
        message="{num_layers} layers are not a multiple of 2 x pipeline {pipeline_model_parallel_size}, which the documents of dualpipev ask for",
        why="the validator checks only that there are enough; the chunks become uneven or layers are lost",
        at=(a.num_layers, PP),
    ),
    refuse(
        "virtual-stage-is-whole-stage",
        VPP.is_set & (a.num_layers == VPP * PP),
        upstream=f"{CORE}megatron_basic/megatron_basic.py:28",
        also=(f"{LLM}megatron_basic/training_basic.py:104",),
        at=(VPP, a.num_layers, PP),
        fixes=(drop(VPP),),
        message="{num_layers_per_virtual_pipeline_stage} layers x pipeline {pipeline_model_parallel_size} is all {num_layers} layers: one virtual stage",
        why="one virtual stage per rank is no interleaving; dies at launch",
    ),
    refuse(
        "defer-embedding-wgrad",
        a.defer_embedding_wgrad_compute,
        upstream=f"{CORE}megatron_basic/megatron_basic.py:34",
        fixes=(drop(a.defer_embedding_wgrad_compute),),
        message="--defer-embedding-wgrad-compute is not supported by MindSpeed",
        why="dies at launch",
    ),
    clash(
        "multi-parameter-fb-overlap",
        a.use_multiparameter_pipeline_model_parallel,
        a.moe_fb_overlap,
        unless_framework="mindspeed-llm",
        upstream=f"{CORE}pipeline_parallel/multi_parameter.py:36",
        why="the overlap exchanges one tensor between stages; dies at launch",
    ),
    clash(
        "multi-parameter-dualpipev",
        a.use_multiparameter_pipeline_model_parallel,
        DUALPIPEV,
        unless_framework="mindspeed-llm",
        fixes=(LEAVE,),
        upstream=f"{CORE}pipeline_parallel/multi_parameter.py:40",
        why="the schedule exchanges one tensor between stages; dies at launch",
    ),
)

MINDSPEED_LAYOUT = ConstraintSet("mindspeed")
BY_HAND = "the layout says by itself which layers a stage holds; dies at launch"
MINDSPEED_LAYOUT.add(
    refuse(
        "layout-dualpipev",
        CUSTOM & DUALPIPEV,
        upstream=f"{LAYOUT}:104",
        fixes=(LEAVE, drop(a.pipeline_model_parallel_layout)),
        why=BY_HAND,
        message="--pipeline-model-parallel-layout does not work together with --schedules-method dualpipev",
    ),
    refuse(
        "layout-pipeline-layers",
        CUSTOM & a.pipeline_num_transformer_layers.is_set,
        upstream=f"{LAYOUT}:106",
        fixes=(drop(a.pipeline_num_transformer_layers),),
        why=BY_HAND,
        message="--pipeline-model-parallel-layout does not work together with --pipeline-num-transformer-layers",
    ),
    refuse(
        "layout-noop-layers",
        CUSTOM & a.noop_layers.is_set,
        upstream=f"{LAYOUT}:110",
        fixes=(drop(a.noop_layers),),
        why=BY_HAND,
        also=(f"{CORE}moe/fb_overlap.py:45", f"{CORE}moe/fb_overlap.py:130"),
        message="--pipeline-model-parallel-layout does not work together with --noop-layers",
    ),
    refuse(
        "layout-recompute-schedule",
        CUSTOM & (a.recompute_in_bubble | a.recompute_in_advance),
        upstream=f"{LAYOUT}:112",
        why=BY_HAND,
        fixes=(drop(also=(a.recompute_in_bubble, a.recompute_in_advance), title="drop recomputation in the schedule"),),
        message="--pipeline-model-parallel-layout does not work with --recompute-in-bubble or --recompute-in-advance",
    ),
    refuse(
        "layout-virtual-stages",
        CUSTOM & (total(VPP.is_set, a.num_virtual_stages_per_pipeline_rank.given) > 0),
        upstream=f"{LAYOUT}:127",
        why=BY_HAND,
        fixes=(drop(also=(VPP, a.num_virtual_stages_per_pipeline_rank), title="let the layout say the virtual stages"),),
        at=(VPP, a.num_virtual_stages_per_pipeline_rank, a.pipeline_model_parallel_layout),
        message="--pipeline-model-parallel-layout and a number of virtual stages both say how the layers are split",
    ),
    divides(
        "layout-stages",
        PP,
        a.layout_num_stages,
        when=CUSTOM,
        upstream=f"{LAYOUT}:148",
        at=(a.pipeline_model_parallel_layout, PP),
        layout=True,
        message="the {layout_num_stages} stages of --pipeline-model-parallel-layout are not a multiple of pipeline {pipeline_model_parallel_size}",
        why="every rank holds the same number of stages; dies at launch",
    ),
    refuse(
        "layout-send-recv",
        CUSTOM & (a.layout_num_stages % PP == 0) & (a.layout_num_stages > PP) & a.optimize_send_recv_comm,
        upstream=f"{LAYOUT}:158",
        at=(a.optimize_send_recv_comm,),
        fixes=(drop(a.optimize_send_recv_comm),),
        why="the optimised exchange is made for the plain schedule; dies at launch",
        message="--optimize-send-recv-comm does not work with the virtual stages of --pipeline-model-parallel-layout",
    ),
    refuse(
        "layout-one-rank",
        CUSTOM & (a.layout_num_stages > 1) & (PP == 1),
        upstream=f"{LAYOUT}:171",
        at=(a.pipeline_model_parallel_layout, PP),
        layout=True,
        message="--pipeline-model-parallel-layout has {layout_num_stages} stages, but pipeline is 1",
        why="there is no second rank to interleave with; dies at launch",
    ),
    refuse(
        "layout-overlap-p2p",
        CUSTOM & (a.layout_num_stages > PP) & (PP == 2) & a.overlap_p2p_comm.given,
        upstream=f"{LAYOUT}:175",
        at=(a.overlap_p2p_comm,),
        layout=True,
        message="virtual stages on pipeline 2 need overlapped communication",
        why="two ranks would send and receive twice at once; dies at launch",
        fixes=(drop(a.overlap_p2p_comm),),
    ),
)
