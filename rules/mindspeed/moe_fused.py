"""Checks of mixtures of experts: fused exchange, fused accumulation, and memory savings in the overlap."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, needs

ALLTOALL, FUSED = a.moe_alltoall_overlap_comm, a.moe_alltoall_mc2
DISPATCHER, GROUPED = a.moe_token_dispatcher_type, a.moe_grouped_gemm
SEQ, PLAIN = DISPATCHER == "alltoall_seq", DISPATCHER == "alltoall"
SPLIT = "the overlap supports only expert layers that are split in the required way, so the run fails at launch"
PER_STAGE = a.num_layers // a.pipeline_model_parallel_size
LEVEL, ZERO_LAYERS = a.moe_zero_memory, a.moe_zero_memory_num_layers

MINDSPEED = ConstraintSet("mindspeed", why=SPLIT)
MINDSPEED.add(
    refuse(
        "alltoall-mc2-dispatcher",
        FUSED & ~(SEQ | PLAIN),
        at=(DISPATCHER, FUSED),
        fixes=(put(DISPATCHER, "alltoall"), drop(FUSED)),
        message=(
            "--moe-alltoall-mc2 needs --moe-token-dispatcher-type alltoall or alltoall_seq, "
            "not {moe_token_dispatcher_type}"
        ),
    ),
    refuse(
        "alltoall-mc2-tensor",
        FUSED & SEQ & (a.tensor_model_parallel_size != 1),
        at=(FUSED, a.tensor_model_parallel_size),
        layout=True,
        message=(
            "--moe-alltoall-mc2 with the alltoall_seq dispatcher needs a tensor-parallel size of 1, not "
            "{tensor_model_parallel_size}"
        ),
        fixes=(put(DISPATCHER, "alltoall"), drop(FUSED)),
    ),
    refuse(
        "alltoall-mc2-expert-tensor",
        FUSED & PLAIN & (a.expert_tensor_parallel_size != 1),
        at=(a.expert_tensor_parallel_size, FUSED),
        layout=True,
        message=(
            "--moe-alltoall-mc2 needs an expert-tensor-parallel size of 1, not {expert_tensor_parallel_size} (the "
            "default is the tensor-parallel size)"
        ),
        fixes=(put(a.expert_tensor_parallel_size, 1), drop(FUSED)),
    ),
    refuse(
        "alltoall-mc2-capacity",
        FUSED & PLAIN & a.moe_expert_capacity_factor.is_set,
        at=(a.moe_expert_capacity_factor, FUSED),
        message="--moe-alltoall-mc2 does not work with --moe-expert-capacity-factor",
        why="the fused kernel cannot drop tokens, so the run fails at launch",
        fixes=(drop(FUSED), drop(a.moe_expert_capacity_factor)),
    ),
    needs(
        "gemm-accumulation-grouped-gemm",
        a.gemm_gradient_accumulation_fusion,
        GROUPED,
        at=(a.gemm_gradient_accumulation_fusion,),
        why="the fusion can only accumulate gradients of grouped matrix products, so the run fails at launch",
        fixes=(put(GROUPED), drop(a.gemm_gradient_accumulation_fusion)),
    ),
    refuse(
        "zero-memory-layers-range",
        ZERO_LAYERS.is_set & ((ZERO_LAYERS < 0) | (ZERO_LAYERS > PER_STAGE)),
        at=(ZERO_LAYERS,),
        shows={"most": PER_STAGE},
        message=(
            "--moe-zero-memory-num-layers {moe_zero_memory_num_layers} must lie between 0 and the {most} layers of "
            "a pipeline stage"
        ),
        why="the number must lie between 0 and the number of layers of a stage, so the run fails at launch",
        fixes=(put(ZERO_LAYERS, PER_STAGE),),
    ),
    refuse(
        "zero-memory-layers-alone",
        ZERO_LAYERS.is_set & (LEVEL == "disable"),
        at=(ZERO_LAYERS,),
        fixes=(drop(ZERO_LAYERS), put(LEVEL, "level0")),
        message="--moe-zero-memory-num-layers needs --moe-zero-memory level0 or level1",
        why="without a level, nothing is applied to these layers, so the run fails at launch",
    ),
    refuse(
        "zero-memory-overlap",
        (LEVEL != "disable") & ~(ALLTOALL | a.moe_fb_overlap),
        at=(LEVEL,),
        fixes=(drop(LEVEL, also=(ZERO_LAYERS,)),),
        message="--moe-zero-memory needs --moe-alltoall-overlap-comm or --moe-fb-overlap",
        why="memory can only be saved inside overlapped layers, so the run fails at launch",
    ),
)
