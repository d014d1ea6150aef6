"""Checks of custom pipeline layouts (--pipeline-model-parallel-layout)."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, divides, drop, refuse
from preflight.lint.expressions import any_of, total
from preflight.rules.mindspeed.shorthand import DUALPIPEV, a

LEAVE = drop(a.schedules_method, also=(a.dualpipev_dw_detach,), title="remove the dualpipev schedule")
PP = a.pipeline_model_parallel_size
VPP = a.num_layers_per_virtual_pipeline_stage
CUSTOM = a.pipeline_model_parallel_layout.is_set

BY_HAND = "the layout already assigns all layers to stages, so the run fails at launch"
MINDSPEED = ConstraintSet("mindspeed", why=BY_HAND)
SPLITS = (
    a.decoder_first_pipeline_num_layers,
    a.decoder_last_pipeline_num_layers,
    a.account_for_embedding_in_pipeline_split,
    a.account_for_loss_in_pipeline_split,
)
MINDSPEED.add(
    refuse(
        "layout-dualpipev",
        CUSTOM & DUALPIPEV,
        fixes=(LEAVE, drop(a.pipeline_model_parallel_layout)),
        message="--pipeline-model-parallel-layout does not work with --schedules-method dualpipev",
    ),
    refuse(
        "layout-pipeline-layers",
        CUSTOM & a.pipeline_num_transformer_layers.is_set,
        fixes=(drop(a.pipeline_num_transformer_layers),),
        message="--pipeline-model-parallel-layout does not work with --pipeline-num-transformer-layers",
    ),
    refuse(
        "layout-noop-layers",
        CUSTOM & a.noop_layers.is_set,
        fixes=(drop(a.noop_layers),),
        after=("mindspeed/fb-overlap-layout-noop",),
        message="--pipeline-model-parallel-layout does not work with --noop-layers",
    ),
    refuse(
        "layout-recompute-schedule",
        CUSTOM & (a.recompute_in_bubble | a.recompute_in_advance),
        fixes=(
            drop(also=(a.recompute_in_bubble, a.recompute_in_advance), title="turn off recomputation in the schedule"),
        ),
        message="--pipeline-model-parallel-layout does not work with --recompute-in-bubble or --recompute-in-advance",
    ),
    refuse(
        "layout-virtual-stages",
        CUSTOM & (total(VPP.is_set, a.num_virtual_stages_per_pipeline_rank.given) > 0),
        fixes=(
            drop(also=(VPP, a.num_virtual_stages_per_pipeline_rank), title="let the layout set the virtual stages"),
        ),
        at=(VPP, a.num_virtual_stages_per_pipeline_rank, a.pipeline_model_parallel_layout),
        message="--pipeline-model-parallel-layout and the number of virtual stages both set the split of the layers",
    ),
    divides(
        "layout-stages",
        PP,
        a.layout_num_stages,
        when=CUSTOM,
        at=(a.pipeline_model_parallel_layout, PP),
        layout=True,
        message=(
            "the {layout_num_stages} stages of --pipeline-model-parallel-layout are not a multiple of the "
            "pipeline-parallel size {pipeline_model_parallel_size}"
        ),
        why="every rank must hold the same number of stages, so the run fails at launch",
    ),
    refuse(
        "layout-send-recv",
        CUSTOM & (a.layout_num_stages % PP == 0) & (a.layout_num_stages > PP) & a.optimize_send_recv_comm,
        at=(a.optimize_send_recv_comm,),
        fixes=(drop(a.optimize_send_recv_comm),),
        why="the optimized exchange supports only the plain schedule, so the run fails at launch",
        message="--optimize-send-recv-comm does not work with the virtual stages of --pipeline-model-parallel-layout",
    ),
    refuse(
        "layout-one-rank",
        CUSTOM & (a.layout_num_stages > 1) & (PP == 1),
        upstream={"mindspeed": "megatron/training/arguments.py:434"},  # it sees the layout's stages as virtual ones
        at=(a.pipeline_model_parallel_layout, PP),
        layout=True,
        message="--pipeline-model-parallel-layout has {layout_num_stages} stages, but the pipeline-parallel size is 1",
        why="with only one rank, there is nothing to interleave, so the run fails at launch",
    ),
    refuse(
        "layout-overlap-p2p",
        CUSTOM & (a.layout_num_stages > PP) & (PP == 2) & a.overlap_p2p_comm.given,
        at=(a.overlap_p2p_comm,),
        layout=True,
        message="with 2 pipeline stages, virtual stages need overlapped communication",
        why="two ranks would send and receive twice at the same time, so the run fails at launch",
        fixes=(drop(a.overlap_p2p_comm),),
    ),
    refuse(
        "layout-other-splits",
        CUSTOM & any_of(*(handle.given for handle in SPLITS)),
        at=SPLITS,
        fixes=(drop(also=SPLITS, title="let the layout set the split"),),
        message=(
            "--pipeline-model-parallel-layout contradicts the settings of the first, last, embedding or loss stage, "
            "because both set how the layers are split"
        ),
    ),
)
