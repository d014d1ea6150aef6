"""Settings that MindSpeed releases before 26 reject or ignore, but that later releases support."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import DUALPIPEV, a, clash, needs

RESET = (
    (a.context_parallel_size > 1)
    & a.reset_attention_mask
    & (a.attention_mask_type == "causal")
    & (a.context_parallel_algo != "megatron_cp_algo")
)
OVERLAP, ZERO = a.moe_fb_overlap, a.moe_zero_memory
PLAIN = a.num_layers_per_virtual_pipeline_stage.is_none & (a.schedules_method.is_none | ~DUALPIPEV)
MC2 = a.use_ascend_mc2

MINDSPEED = ConstraintSet("mindspeed")
MINDSPEED.add(
    refuse(
        "reset-mask-ring",
        RESET,
        at=(a.context_parallel_algo, a.reset_attention_mask),
        message="--reset-attention-mask with context parallelism needs megatron_cp_algo, not {context_parallel_algo}",
        why="before 2.3, only ring attention supports documents that end inside a sequence, so the run fails at launch",
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"), drop(a.reset_attention_mask)),
    ),
    refuse(
        "reset-mask-ring-core",
        RESET,
        unless_framework="mindspeed-llm",
        at=(a.context_parallel_algo, a.reset_attention_mask),
        message="--reset-attention-mask with context parallelism needs megatron_cp_algo, not {context_parallel_algo}",
        why=(
            "before 26.0, only ring attention supports documents that end inside a sequence, so the run fails at launch"
        ),
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"), drop(a.reset_attention_mask)),
    ),
    refuse(
        "fb-overlap-one-stage",
        OVERLAP & PLAIN & (a.pipeline_model_parallel_size == 1),
        at=(OVERLAP, a.pipeline_model_parallel_size),
        message="--moe-fb-overlap needs virtual pipeline stages or dualpipev, but there is no pipeline",
        why="before 2.3, the overlap needs a pipeline schedule, so the run fails at launch",
        fixes=(drop(OVERLAP, also=(a.moe_unperm2_mem_optim_swap,)),),
    ),
    refuse(
        "fb-overlap-zero-memory-level",
        OVERLAP & (ZERO == "level1"),
        at=(ZERO, OVERLAP),
        message="--moe-fb-overlap works only with --moe-zero-memory level0, not {moe_zero_memory}",
        why="before 26.0, the overlap cannot recompute the activations that level1 drops, so the run fails at launch",
        fixes=(put(ZERO, "level0"), drop(ZERO)),
    ),
    refuse(
        "zero-memory-schedule",
        (ZERO != "disable") & ~(a.moe_alltoall_overlap_comm | OVERLAP) & (a.schedules_method.is_none | ~DUALPIPEV),
        at=(ZERO,),
        message="--moe-zero-memory needs --moe-alltoall-overlap-comm or --schedules-method dualpipev",
        why="memory can only be saved inside overlapped layers, so the run fails at launch",
        fixes=(drop(ZERO, also=(a.moe_zero_memory_num_layers,)),),
    ),
    refuse(
        "mc2-off",
        MC2 & ((a.tensor_model_parallel_size == 1) | ~a.sequence_parallel),
        severity=Severity.WARNING,
        at=(MC2, a.tensor_model_parallel_size),
        message="--use-ascend-mc2 has no effect without tensor parallelism and --sequence-parallel",
        why="the plain linear layers stay in use. Since 26.0, the combination is rejected",
        fixes=(drop(MC2, safety=Safety.SAFE),),
    ),
    clash(
        "fb-overlap-capacity",
        OVERLAP,
        a.moe_expert_capacity_factor,
        why="before 2.2, the overlap does not support dropping tokens, so the run fails at launch",
    ),
    refuse(
        "fb-overlap-shared-experts",
        OVERLAP & (a.n_shared_experts.is_none | (a.n_shared_experts == 0)),
        at=(OVERLAP,),
        message="--moe-fb-overlap needs --n-shared-experts",
        why=(
            "before 2.1, the overlap hides communication behind the shared experts and cannot work without them, so "
            "the run fails at launch"
        ),
        fixes=(drop(OVERLAP),),
    ),
    needs(
        "fb-overlap-async",
        OVERLAP,
        a.moe_permutation_async_comm,
        why="before 2.1, only the asynchronous permutation can be overlapped, so the run fails at launch",
    ),
    refuse(
        "fb-overlap-tensor",
        OVERLAP & (a.tensor_model_parallel_size > 1) & ~a.moe_tp_extend_ep,
        at=(OVERLAP, a.tensor_model_parallel_size),
        message="--moe-fb-overlap at a tensor-parallel size of {tensor_model_parallel_size} needs --moe-tp-extend-ep",
        why="before 2.1, the overlap does not support experts split by tensor parallelism, so the run fails at launch",
        fixes=(put(a.moe_tp_extend_ep), drop(OVERLAP)),
    ),
    refuse(
        "fp8-reuse-compatible",
        a.fp8_reuse_quantized_weight & (a.te_gmm_mode == "compatible") & ~OVERLAP,
        at=(a.fp8_reuse_quantized_weight, a.te_gmm_mode),
        message="--fp8-reuse-quantized-weight does not work with --te-gmm-mode compatible without --moe-fb-overlap",
        why="release 26.0 cannot keep quantized weights in the compatible mode, so the run fails at launch",
        fixes=(drop(a.fp8_reuse_quantized_weight),),
    ),
    refuse(
        "qos-schedule",
        a.aiqos & (a.aiqos_mode == "manual") & ~a.aiqos_schedule.is_set,
        at=(a.aiqos_mode, a.aiqos),
        message="--aiqos-mode manual needs --aiqos-schedule",
        why="manual mode needs the schedule, which sets the priority of each communication, so the run fails at launch",
        fixes=(drop(a.aiqos_mode),),
    ),
    refuse(
        "quantised-gradients-fb-overlap",
        a.quant_grads & OVERLAP & a.gradient_accumulation_fusion,
        unless_framework="mindspeed-llm",
        at=(a.quant_grads, OVERLAP),
        message="--quant-grads with --moe-fb-overlap needs --no-gradient-accumulation-fusion",
        why="the overlapped kernel accumulates gradients that it cannot quantize, so the run fails at launch",
        fixes=(put(a.gradient_accumulation_fusion, False), drop(a.quant_grads)),
    ),
)
