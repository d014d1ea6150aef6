"""Checks of layer placement, routing and rotary scaling in MindSpeed-LLM."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import CORE, DUALPIPEV, a

UNEVEN = "the list already defines all stages, so the run fails at launch"
MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why=UNEVEN)
PP, VPP, DENSE = a.pipeline_model_parallel_size, a.num_layers_per_virtual_pipeline_stage, a.first_k_dense_replace
STAGE = a.num_layers // PP
BY_LIST = a.num_layer_list.is_set & (a.num_layer_list != "")
UNSPLIT = a.decoder_first_pipeline_num_layers.is_none & a.decoder_last_pipeline_num_layers.is_none
CAPACITY, GREEDY = a.moe_expert_capacity_factor, a.moe_router_load_balancing_type == "group_limited_greedy"
GATE = a.shared_expert_gate_output_dimension

MINDSPEED_LLM.add(
    refuse(
        "dense-layers",
        DENSE.is_set & (DENSE != 0) & (a.num_layers <= DENSE),
        fixes=(drop(DENSE),),
        message="--first-k-dense-replace {first_k_dense_replace} leaves none of the {num_layers} layers for experts",
        why="the run fails at launch",
    ),
    refuse(
        "dense-stage",
        DENSE.is_set & (DENSE != 0) & (a.num_layers > DENSE) & (PP > 1) & (DENSE >= STAGE),
        at=(DENSE, PP, a.num_layers),
        layout=True,
        message="--first-k-dense-replace {first_k_dense_replace} fills a whole pipeline stage of {stage} layers",
        shows={"stage": STAGE},
        why=(
            "every stage needs a layer with experts, so the run fails at launch. The check assumes that each stage "
            "has layers / pipeline stages layers, even if the stages are uneven"
        ),
    ),
    refuse(
        "layer-list-pipeline",
        BY_LIST & (PP <= 1),
        fixes=(drop(a.num_layer_list),),
        layout=True,
        message="--num-layer-list needs a pipeline, but there is only 1 stage",
    ),
    refuse(
        "layer-list-virtual-stages",
        BY_LIST & VPP.is_set & (VPP != 0) & (PP != 2),
        at=(a.num_layer_list, VPP),
        fixes=(drop(VPP), drop(a.num_layer_list)),
        message="--num-layer-list does not work with --num-layers-per-virtual-pipeline-stage",
    ),
    refuse(
        "layer-list-two-stages",
        BY_LIST & VPP.is_set & (VPP != 0) & (PP == 2),
        at=(a.num_layer_list, VPP),
        fixes=(drop(VPP), drop(a.num_layer_list)),
        message="--num-layer-list on 2 pipeline stages does not work with --num-layers-per-virtual-pipeline-stage",
    ),
    refuse(
        "layer-list-dualpipev",
        BY_LIST & DUALPIPEV,
        fixes=(drop(a.num_layer_list), drop(a.schedules_method)),
        message="--num-layer-list does not work with --schedules-method dualpipev",
    ),
    refuse(
        "layer-list-noop",
        BY_LIST & a.noop_layers.is_set & (a.noop_layers != ""),
        fixes=(drop(a.num_layer_list), drop(a.noop_layers)),
        message="--num-layer-list does not work with --noop-layers, and the launch crashes",
        why=(
            "MindSpeed-LLM tries to drop the list with a notice, but the notice raises a TypeError, so the run fails "
            "at launch"
        ),
    ),
    refuse(
        "layer-list-pipeline-layers",
        BY_LIST & a.pipeline_num_transformer_layers.is_set,
        upstream=f"{CORE}pipeline_parallel/unaligned_pineline_feature.py:43",
        why=(
            "both options define how layers are split over stages, but only one of them may do so, so the run fails at launch"
        ),
        fixes=(drop(a.pipeline_num_transformer_layers), drop(a.num_layer_list)),
        message="--num-layer-list does not work with --pipeline-num-transformer-layers",
    ),
    refuse(
        "layers-over-two-stages",
        (PP == 2)
        & VPP.is_set
        & ~BY_LIST
        & a.pipeline_model_parallel_layout.is_none
        & UNSPLIT
        & (a.pipeline_num_layers % PP != 0),
        upstream={"mindspeed-llm": "megatron/training/arguments.py:490"},
        at=(a.num_layers, PP),
        layout=True,
        message="{pipeline_num_layers} layers are not divisible by 2 pipeline stages",
        why=(
            "at a pipeline-parallel size of 2, virtual stages are hidden from Megatron, and its check of plain "
            "pipelines then fails, so the run fails at launch"
        ),
    ),
    refuse(
        "uneven-virtual-stages",
        (PP != 2)
        & VPP.is_set
        & a.num_virtual_stages_per_pipeline_rank.is_none
        & a.pipeline_model_parallel_layout.is_none
        & ~UNSPLIT,
        upstream={"mindspeed-llm": "megatron/training/arguments.py:444"},
        at=(VPP, a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers),
        fixes=(drop(VPP),),
        message=(
            "stages of different sizes cannot be split into virtual stages of "
            "{num_layers_per_virtual_pipeline_stage} layers; use --num-virtual-stages-per-pipeline-rank instead"
        ),
        why=(
            "Megatron rejects this combination, so the run fails at launch. At a pipeline-parallel size of 2, "
            "virtual stages are hidden from this check"
        ),
    ),
    refuse(
        "virtual-stage-divides",
        (PP == 2) & VPP.is_set & (STAGE % VPP != 0),
        after=("mindspeed-llm/layer-list-two-stages", "mindspeed-llm/layers-over-two-stages"),
        at=(VPP, a.num_layers, PP),
        shows={"stage": STAGE},
        layout=True,
        message=(
            "{stage} layers per pipeline stage are not a multiple of {num_layers_per_virtual_pipeline_stage} per "
            "virtual stage"
        ),
        why="layers would be lost, so the run fails at launch",
    ),
    refuse(
        "virtual-stage-is-whole-stage",
        (PP == 2) & VPP.is_set & (a.num_layers == VPP * 2),
        after=("mindspeed-llm/layer-list-two-stages",),
        at=(VPP, a.num_layers, PP),
        fixes=(drop(VPP),),
        message=(
            "{num_layers_per_virtual_pipeline_stage} layers per virtual stage × 2 pipeline stages = all {num_layers} "
            "layers, so each rank has only one virtual stage"
        ),
        why="with one virtual stage per rank, there is no interleaving, so the run fails at launch",
    ),
    refuse(
        "capacity-dispatcher",
        CAPACITY.is_set & (a.moe_token_dispatcher_type == "allgather"),
        message="--moe-expert-capacity-factor does not work with the allgather dispatcher, the default",
        why="the allgather dispatcher cannot drop tokens, so the run fails at launch",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall"), drop(CAPACITY)),
    ),
    refuse(
        "capacity-negative",
        CAPACITY.is_set & (a.moe_token_dispatcher_type != "allgather") & (CAPACITY < 0),
        at=(CAPACITY,),
        message=(
            "a negative --moe-expert-capacity-factor ({moe_expert_capacity_factor}) makes the run crash; without the "
            "option, no token is dropped"
        ),
        why=(
            "MindSpeed-LLM tries to unset the factor with a notice, but the notice raises a TypeError, so the run "
            "fails at launch"
        ),
        fixes=(drop(CAPACITY),),
    ),
    refuse(
        "capacity-balancing",
        CAPACITY.is_set & ~a.moe_router_load_balancing_type.is_in("aux_loss", "none"),
        message=(
            "--moe-expert-capacity-factor needs aux_loss or none as load balancing, "
            "not {moe_router_load_balancing_type}"
        ),
        why="the other routers cannot drop tokens, so the run fails at launch",
        fixes=(drop(CAPACITY), put(a.moe_router_load_balancing_type, "aux_loss")),
    ),
    refuse(
        "shared-gate-size",
        CAPACITY.is_set & (GATE != 1) & (a.hidden_size != GATE),
        at=(GATE,),
        fixes=(drop(GATE),),
        message=(
            "--shared-expert-gate-output-dimension {shared_expert_gate_output_dimension} must be 1 or the hidden "
            "size {hidden_size}"
        ),
        why="the gate must be one number per token or one per channel, so the run fails at launch",
    ),
    refuse(
        "greedy-groups",
        GREEDY & a.moe_router_group_topk.is_none,
        at=(a.moe_router_load_balancing_type,),
        message="group_limited_greedy needs --moe-router-group-topk",
        why="the router needs the number of groups to choose, so the run fails at launch",
    ),
    refuse(
        "greedy-scaling",
        GREEDY & a.moe_router_group_topk.is_set & a.moe_router_topk_scaling_factor.is_none,
        at=(a.moe_router_load_balancing_type,),
        message="group_limited_greedy needs --moe-router-topk-scaling-factor",
        why="the gates are scaled by the missing factor, so the run fails at launch",
        fixes=(put(a.moe_router_topk_scaling_factor, 1.0),),
    ),
    refuse(
        "greedy-groups-range",
        GREEDY
        & a.moe_router_topk_scaling_factor.is_set
        & a.moe_router_group_topk.is_set
        & (a.moe_router_group_topk >= a.expert_model_parallel_size),
        at=(a.moe_router_group_topk, a.expert_model_parallel_size),
        layout=True,
        why=(
            "each expert-parallel rank is one group of experts, and a token must choose from fewer groups than there "
            "are, so the run fails at launch"
        ),
        message=(
            "--moe-router-group-topk {moe_router_group_topk} must be below the expert-parallel size "
            "{expert_model_parallel_size}"
        ),
    ),
    refuse(
        "group-topk-zero",
        a.moe_router_group_topk == 0,
        message="--moe-router-group-topk must not be 0",
        why="without a group, no expert can be chosen, so the run fails at launch",
        fixes=(drop(a.moe_router_group_topk),),
    ),
)
