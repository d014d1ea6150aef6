"""What releases of MindSpeed before 26 refuse or ignore, and later ones take."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.shapes import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import CORE, DUALPIPEV, a

RESET = (a.context_parallel_size > 1) & a.reset_attention_mask & (a.attention_mask_type == "causal") & (a.context_parallel_algo != "megatron_cp_algo")
OVERLAP, ZERO = a.moe_fb_overlap, a.moe_zero_memory
PLAIN = a.num_layers_per_virtual_pipeline_stage.is_none & (a.schedules_method.is_none | ~DUALPIPEV)
MC2 = a.use_ascend_mc2

MINDSPEED = ConstraintSet("mindspeed")
MINDSPEED.add(
    refuse(
        "reset-mask-ring",
        RESET,
        versions="<2.3",
        upstream={"2.2.0": f"{CORE}context_parallel/context_parallel_feature.py:59"},
        at=(a.context_parallel_algo, a.reset_attention_mask),
        message="--reset-attention-mask with context parallelism needs megatron_cp_algo, not {context_parallel_algo}",
        why="before 2.3 only ring attention knows where documents end; dies at launch",
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"), drop(a.reset_attention_mask)),
    ),
    refuse(
        "reset-mask-ring-core",
        RESET,
        versions=">=2.3,<26",
        unless_framework="mindspeed-llm",
        upstream={"2.3.0": f"{CORE}transformer/flash_attention/reset_attention_mask_feature.py:15"},
        at=(a.context_parallel_algo, a.reset_attention_mask),
        message="--reset-attention-mask with context parallelism needs megatron_cp_algo, not {context_parallel_algo}",
        why="before 26.0 only ring attention knows where documents end; dies at launch",
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"), drop(a.reset_attention_mask)),
    ),
    refuse(
        "fb-overlap-one-stage",
        OVERLAP & PLAIN & (a.pipeline_model_parallel_size == 1),
        versions="<2.3",
        upstream={"2.2.0": f"{CORE}moe/fb_overlap.py:43"},
        at=(OVERLAP, a.pipeline_model_parallel_size),
        message="--moe-fb-overlap needs virtual pipeline stages or dualpipev, there is no pipeline",
        why="before 2.3 the overlap has no schedule without a pipeline; dies at launch",
        fixes=(drop(OVERLAP, also=(a.moe_unperm2_mem_optim_swap,)),),
    ),
    refuse(
        "fb-overlap-zero-memory-level",
        OVERLAP & (ZERO == "level1"),
        versions="<26",
        upstream={"2.3.0": f"{CORE}moe/fb_overlap.py:34"},
        at=(ZERO, OVERLAP),
        message="--moe-fb-overlap works with --moe-zero-memory level0 only, not {moe_zero_memory}",
        why="before 26.0 the overlap cannot recompute what level1 drops; dies at launch",
        fixes=(put(ZERO, "level0"), drop(ZERO)),
    ),
    refuse(
        "zero-memory-schedule",
        (ZERO != "disable") & ~(a.moe_alltoall_overlap_comm | OVERLAP) & (a.schedules_method.is_none | ~DUALPIPEV),
        versions="<2.3",
        upstream={"2.2.0": f"{CORE}moe/moe_zero_memory.py:34"},
        at=(ZERO,),
        message="--moe-zero-memory needs --moe-alltoall-overlap-comm or --schedules-method dualpipev",
        why="memory is saved inside the overlapped layers only; dies at launch",
        fixes=(drop(ZERO, also=(a.moe_zero_memory_num_layers,)),),
    ),
    refuse(
        "mc2-off",
        MC2 & ((a.tensor_model_parallel_size == 1) | ~a.sequence_parallel),
        versions="<26",
        severity=Severity.WARNING,
        upstream={"2.3.0": f"{CORE}tensor_parallel/mc2.py:24"},
        at=(MC2, a.tensor_model_parallel_size),
        message="--use-ascend-mc2 does nothing without tensor parallelism and --sequence-parallel",
        why="the plain linear layers stay in place; since 26.0 it is refused",
        fixes=(drop(MC2, safety=Safety.SAFE),),
    ),
)
