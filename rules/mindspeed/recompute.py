"""Checks of recomputation inside the pipeline schedule, and of activation functions and norms."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash

MINDSPEED = ConstraintSet("mindspeed", why="the schedule chooses the layers itself, so the run fails at launch")
BUBBLE, ADVANCE = a.recompute_in_bubble, a.recompute_in_advance.given
PP, VPP, LAYERS = (
    a.pipeline_model_parallel_size,
    a.num_layers_per_virtual_pipeline_stage,
    a.recompute_num_layers.written,
)
ALIGN = "the schedule does not support unaligned gradient reduction, so the run fails at launch"
METHOD = (a.recompute_granularity.written == "full") & a.recompute_method.is_set & (a.recompute_method != "block")
OWN = (a.recompute_granularity, a.recompute_method, a.recompute_num_layers)

MINDSPEED.add(
    refuse(
        "ripipe-send-recv",
        (BUBBLE | ADVANCE) & a.optimize_send_recv_comm,
        at=(a.optimize_send_recv_comm, BUBBLE, ADVANCE),
        message="--optimize-send-recv-comm does not work with recomputation in the pipeline schedule",
        fixes=(drop(a.optimize_send_recv_comm),),
        why="the optimized exchange supports only the plain schedule, so the run fails at launch",
    ),
    refuse(
        "recompute-in-bubble-layers",
        BUBBLE & (LAYERS != 0) & LAYERS.is_set & ~a.enable_recompute_layers_per_pp_rank & VPP.is_set & (LAYERS != VPP),
        shows={"recompute_num_layers": LAYERS},
        at=(a.recompute_num_layers, BUBBLE),
        message=(
            "--recompute-in-bubble sets the number of recomputed layers to {num_layers_per_virtual_pipeline_stage}, "
            "not {recompute_num_layers}"
        ),
        fixes=(drop(a.recompute_num_layers),),
    ),
    refuse(
        "recompute-in-bubble-layers-per-rank",
        BUBBLE & (LAYERS != 0) & LAYERS.is_set & a.enable_recompute_layers_per_pp_rank & (a.num_layers // PP != LAYERS),
        shows={"recompute_num_layers": LAYERS},
        at=(a.recompute_num_layers, BUBBLE),
        message=(
            "--recompute-in-bubble chooses the number of recomputed layers itself, but --recompute-num-layers "
            "{recompute_num_layers} is given"
        ),
        fixes=(drop(a.recompute_num_layers),),
    ),
    refuse(
        "recompute-in-bubble-schedule",
        BUBBLE & ((PP <= 1) | VPP.is_none),
        at=(BUBBLE, PP),
        fixes=(drop(BUBBLE),),
        message="--recompute-in-bubble needs a pipeline with --num-layers-per-virtual-pipeline-stage",
        why=(
            "the recomputation fills the bubbles of the interleaved schedule, so it needs that schedule; "
            "otherwise, the run fails at launch"
        ),
    ),
    clash(
        "recompute-in-bubble-swap-attention",
        BUBBLE,
        a.swap_attention,
        why="both options remove activations from memory and cannot be combined, so the run fails at launch",
    ),
    refuse(
        "recompute-in-bubble-overlap-p2p",
        BUBBLE & VPP.is_set & a.overlap_p2p_comm.given,
        at=(a.overlap_p2p_comm,),
        fixes=(drop(a.overlap_p2p_comm),),
        message="--recompute-in-bubble does not work with --no-overlap-p2p-communication",
        why="the schedule needs overlapped communication, so the run fails at launch",
    ),
    refuse(
        "recompute-in-bubble-align-grad",
        BUBBLE & a.align_grad_reduce.given,
        at=(a.align_grad_reduce,),
        fixes=(drop(a.align_grad_reduce),),
        message="--recompute-in-bubble does not work with --no-align-grad-reduce",
        why=ALIGN,
    ),
    refuse(
        "recompute-in-advance-uniform",
        ADVANCE & ~BUBBLE & (a.recompute_method == "uniform"),
        at=(a.recompute_method, ADVANCE),
        message="--recompute-in-advance does not work with --recompute-method uniform",
        why="recomputation in advance can only move single layers, not groups of layers, so the run fails at launch",
        fixes=(put(a.recompute_method, "block"), drop(ADVANCE)),
    ),
    refuse(
        "recompute-in-advance-layers",
        ADVANCE & ~BUBBLE & (LAYERS.is_none | (LAYERS == 0)),
        at=(ADVANCE,),
        fixes=(drop(ADVANCE),),
        message="--recompute-in-advance needs --recompute-num-layers",
        why="without that number, nothing is recomputed in advance, so the run fails at launch",
    ),
    refuse(
        "recompute-in-advance-schedule",
        ADVANCE & ((PP <= 1) | VPP.is_none),
        at=(ADVANCE, PP),
        fixes=(drop(ADVANCE),),
        message="--recompute-in-advance needs a pipeline with --num-layers-per-virtual-pipeline-stage",
        why=(
            "the recomputation fills the waiting times of the interleaved schedule, so it needs that schedule; "
            "otherwise, the run fails at launch"
        ),
    ),
    refuse(
        "recompute-in-advance-align-grad",
        ADVANCE & a.align_grad_reduce.given,
        at=(a.align_grad_reduce,),
        fixes=(drop(a.align_grad_reduce),),
        message="--recompute-in-advance does not work with --no-align-grad-reduce",
        why=ALIGN,
    ),
    refuse(
        "recompute-in-advance-ignored",
        ADVANCE & VPP.is_set & (VPP != 1),
        severity=Severity.WARNING,
        message=(
            "--recompute-in-advance is turned off, because it needs 1 layer per virtual stage, not "
            "{num_layers_per_virtual_pipeline_stage}"
        ),
        why="nothing is recomputed in advance. Only the last chunk recomputes less",
        fixes=(drop(ADVANCE), put(VPP, 1)),
    ),
    refuse(
        "recompute-in-bubble-and-advance",
        BUBBLE & ADVANCE,
        at=(ADVANCE, BUBBLE),
        severity=Severity.WARNING,
        message=(
            "--recompute-in-bubble and --recompute-in-advance do not work together; --recompute-in-bubble takes "
            "precedence"
        ),
        why="the documentation excludes the combination, but no validator checks for it",
        fixes=(drop(ADVANCE), drop(BUBBLE)),
    ),
    refuse(
        "recompute-in-bubble-overrides",
        BUBBLE
        & (
            ((a.recompute_granularity.written != "full") & a.recompute_granularity.given)
            | ((a.recompute_method.written != "block") & a.recompute_method.given)
        ),
        at=OWN,
        severity=Severity.WARNING,
        message=(
            "--recompute-in-bubble sets --recompute-granularity full and --recompute-method block, so the given "
            "values have no effect"
        ),
        why="the chosen recomputation is replaced",
        fixes=(drop(also=OWN, safety=Safety.SAFE, title="remove the overridden options"), drop(BUBBLE)),
    ),
    in_range(
        "recompute-activation-layers-negative",
        a.recompute_activation_function_num_layers,
        low=0,
        why="a number of layers cannot be negative, so the run fails at launch",
        message="--recompute-activation-function-num-layers {recompute_activation_function_num_layers} is negative",
        fixes=(drop(a.recompute_activation_function_num_layers),),
    ),
    in_range(
        "recompute-activation-layers",
        a.recompute_activation_function_num_layers,
        high=a.num_layers,
        why="the number cannot exceed the layers of the model, so the run fails at launch",
        message=(
            "--recompute-activation-function-num-layers {recompute_activation_function_num_layers} is more than "
            "the {num_layers} layers"
        ),
        fixes=(put(a.recompute_activation_function_num_layers, a.num_layers),),
    ),
    in_range(
        "recompute-norm-layers-negative",
        a.recompute_norm_num_layers,
        low=0,
        why="a number of layers cannot be negative, so the run fails at launch",
        message="--recompute-norm-num-layers {recompute_norm_num_layers} is negative",
        fixes=(drop(a.recompute_norm_num_layers),),
    ),
    in_range(
        "recompute-norm-layers",
        a.recompute_norm_num_layers,
        high=a.num_layers,
        why="the number cannot exceed the layers of the model, so the run fails at launch",
        message="--recompute-norm-num-layers {recompute_norm_num_layers} is more than the {num_layers} layers",
        fixes=(put(a.recompute_norm_num_layers, a.num_layers),),
    ),
    refuse(
        "recompute-activation-method",
        a.recompute_activation_function & METHOD,
        severity=Severity.WARNING,
        message=(
            "--recompute-activation-function with full recomputation needs "
            "--recompute-method block, not {recompute_method}"
        ),
        at=(a.recompute_method,),
        why="the documentation and older validators require this method, but today nothing checks it",
        fixes=(put(a.recompute_method, "block"),),
    ),
    refuse(
        "recompute-norm-method",
        a.recompute_norm & METHOD,
        severity=Severity.WARNING,
        at=(a.recompute_method,),
        message=("--recompute-norm with full recomputation needs --recompute-method block, not {recompute_method}"),
        why="the documentation requires this method, but nothing checks it",
        fixes=(put(a.recompute_method, "block"),),
    ),
)
