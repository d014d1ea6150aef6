"""Checks of --moe-fb-overlap, which overlaps the forward pass of one micro-batch with the backward pass of another."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import DUALPIPEV, a, clash, needs

MINDSPEED = ConstraintSet("mindspeed")
ON = a.moe_fb_overlap
LEAVE = drop(ON, also=(a.moe_unperm2_mem_optim_swap,), title="remove --moe-fb-overlap")
PP = a.pipeline_model_parallel_size
LAYOUT = a.pipeline_model_parallel_layout
ONE_STAGE = (LAYOUT.is_none & a.num_layers_per_virtual_pipeline_stage.is_none) | (
    LAYOUT.is_set & ((a.layout_num_stages % PP != 0) | (a.layout_num_stages <= PP))
)
PER_STAGE = a.micro_batch_size * PP * a.data_parallel_size
HOOKS = (
    "the forward-backward overlap defines its own order of forward and backward passes, which the other option would "
    "replace, so the run fails at launch"
)

MINDSPEED.add(
    clash("fb-overlap-alltoall-overlap", ON, a.moe_alltoall_overlap_comm, why=HOOKS),
    clash(
        "fb-overlap-grad-reduce",
        ON,
        a.overlap_grad_reduce,
        fixes=(drop(a.overlap_grad_reduce, also=(a.overlap_param_gather,)), LEAVE),
        why=(
            "with the forward-backward overlap, gradients are not finished in the order that the buckets of the "
            "reduction expect, so the run fails at launch"
        ),
    ),
    clash(
        "fb-overlap-zero-memory-layers",
        ON,
        a.moe_zero_memory_num_layers,
        why=HOOKS,
        message="--moe-fb-overlap does not work with --moe-zero-memory-num-layers",
    ),
    clash("fb-overlap-automated-pipeline", ON, a.automated_pipeline, unless_framework="mindspeed-llm", why=HOOKS),
    clash("fb-overlap-recompute-in-bubble", ON, a.recompute_in_bubble, why=HOOKS),
    clash("fb-overlap-recompute-in-advance", ON, a.recompute_in_advance, why=HOOKS),
    clash(
        "fb-overlap-legacy-models",
        ON,
        a.use_legacy_models,
        why="legacy models do not have the overlapped expert layer, so the run fails at launch",
    ),
    clash("fb-overlap-tp-extend-ep", ON, a.moe_tp_extend_ep, why=HOOKS),
    clash(
        "fb-overlap-swap-attention",
        ON,
        a.swap_attention,
        why=HOOKS,
        fixes=(drop(a.swap_attention, also=(a.swap_modules,)), LEAVE),
    ),
    needs(
        "fb-overlap-grouped-gemm",
        ON,
        a.moe_grouped_gemm,
        at=(ON,),
        why="only grouped experts can be split into forward and backward parts, so the run fails at launch",
    ),
    refuse(
        "fb-overlap-dispatcher",
        ON & a.moe_token_dispatcher_type.is_in("allgather", "alltoall_seq"),
        at=(a.moe_token_dispatcher_type, ON),
        message="--moe-fb-overlap needs --moe-token-dispatcher-type alltoall, not {moe_token_dispatcher_type}",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall"), LEAVE),
        why="only the all-to-all exchange can be split in two, so the run fails at launch",
    ),
    refuse(
        "fb-overlap-expert-tensor",
        ON & (a.expert_tensor_parallel_size != 1),
        at=(a.expert_tensor_parallel_size, ON),
        message=(
            "--moe-fb-overlap needs an expert-tensor-parallel size of 1, not {expert_tensor_parallel_size} (the "
            "default is the tensor-parallel size)"
        ),
        fixes=(put(a.expert_tensor_parallel_size, 1), LEAVE),
        why="each expert must be entirely on one rank, so the run fails at launch",
        layout=True,
    ),
    refuse(
        "fb-overlap-expert-parallel",
        ON & (a.expert_tensor_parallel_size == 1) & (a.expert_model_parallel_size == 1),
        fixes=(LEAVE,),
        layout=True,
        at=(ON, a.expert_model_parallel_size),
        message="--moe-fb-overlap needs expert parallelism, but the expert-parallel size is 1",
        why="without expert parallelism, there is no exchange to hide, so the run fails at launch",
    ),
    needs(
        "unpermute-swap-without-fb-overlap",
        a.moe_unperm2_mem_optim_swap,
        ON,
        at=(a.moe_unperm2_mem_optim_swap,),
        why="the swap is part of the overlap and cannot run without it, so the run fails at launch",
        fixes=(drop(a.moe_unperm2_mem_optim_swap), put(ON)),
    ),
    refuse(
        "fb-overlap-schedule",
        ON & (a.schedules_method.is_none | ~DUALPIPEV) & (PP != 1) & ONE_STAGE,
        at=(ON, PP),
        message=(
            "--moe-fb-overlap with {pipeline_model_parallel_size} pipeline stages needs "
            "--num-layers-per-virtual-pipeline-stage or dualpipev"
        ),
        why=(
            "the overlap needs two micro-batches in flight at once, which the plain schedule never has, so the run "
            "fails at launch"
        ),
        fixes=(LEAVE,),
        layout=True,
    ),
    refuse(
        "fb-overlap-layout-noop",
        ON & LAYOUT.is_set & a.noop_layers.is_set & (a.schedules_method.is_none | ~DUALPIPEV),
        at=(a.noop_layers, LAYOUT),
        message="--noop-layers does not work with --pipeline-model-parallel-layout and --moe-fb-overlap",
        fixes=(drop(a.noop_layers),),
        why="the layout already assigns all layers to stages, so the run fails at launch",
    ),
    refuse(
        "fb-overlap-micro-batches",
        ON & a.virtual_pipeline_model_parallel_size.is_set & (a.global_batch_size // PER_STAGE <= 1),
        at=(a.global_batch_size, a.micro_batch_size, PP),
        shows={"least": PER_STAGE * 2},
        fixes=(put(a.global_batch_size, PER_STAGE * 2), LEAVE),
        layout=True,
        message=(
            "--moe-fb-overlap with virtual stages needs a global batch size of at least {least}, twice the product "
            "of the micro-batch, pipeline-parallel and data-parallel sizes, not {global_batch_size}"
        ),
        why="two micro-batches must be in flight on each stage, so the run fails at launch",
    ),
)
