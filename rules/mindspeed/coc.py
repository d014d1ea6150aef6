"""Options that do not work with communication over computation (CoC) or matmul fused with communication (MC2)."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import ConstraintSet, drop, one_of, put, refuse
from preflight.lint.expressions import any_of
from preflight.rules.mindspeed.shorthand import CORE, LLM, a, clash

MINDSPEED = ConstraintSet(
    "mindspeed",
    why=("the documentation excludes the combination, and older branches reject it, but today nothing checks for it"),
)
BASIC = "megatron_basic/transformer_engine_basic.py"
SUB = (a.coc_parallel_num, a.coc_mode, a.coc_fused_kernel)
LEAVE = drop(a.use_ascend_coc, also=SUB, title="remove CoC and its options")

MINDSPEED.add(
    refuse(
        "coc-transformer-engine",
        a.use_ascend_coc & (a.transformer_impl == "transformer_engine"),
        message="--use-ascend-coc does not work with --transformer-impl transformer_engine, which is the default",
        why="CoC can only replace the linear layers of the local implementation, so the run fails at launch",
        upstream={"mindspeed": f"{CORE}{BASIC}:89", "mindspeed-llm": f"{LLM}{BASIC}:56"},
        at=(a.transformer_impl, a.use_ascend_coc),
        fixes=(put(a.transformer_impl, "local"), LEAVE),
    ),
    clash(
        "coc-mc2",
        a.use_ascend_coc,
        a.use_ascend_mc2,
        fixes=(drop(a.use_ascend_mc2), LEAVE),
        why=(
            "the two options hide the communication of the same linear layers and cannot be combined, so the run "
            "fails at launch"
        ),
    ),
    clash(
        "coc-unaligned-linear",
        a.use_ascend_coc,
        a.unaligned_linear,
        unless_framework="mindspeed-llm",
        why="both options replace the linear layers, but only one of them may do so, so the run fails at launch",
    ),
    refuse(
        "coc-experts",
        a.use_ascend_coc & a.num_experts.is_set,
        severity=Severity.WARNING,
        message="--use-ascend-coc does not support mixture-of-experts models",
        fixes=(LEAVE,),
    ),
    refuse(
        "coc-fused-kernel-tensor-size",
        a.use_ascend_coc & a.coc_fused_kernel & (a.tensor_model_parallel_size != 8),
        severity=Severity.WARNING,
        at=(a.coc_fused_kernel, a.tensor_model_parallel_size),
        message="the fused CoC kernel supports only a tensor-parallel size of 8, not {tensor_model_parallel_size}",
        why="the requirement is documented upstream, but no validator checks it",
        fixes=(drop(a.coc_fused_kernel, title="use the script mode of CoC"),),
    ),
    one_of(
        "coc-parallel-num",
        a.coc_parallel_num,
        (1, 2, 4, 8),
        when=a.use_ascend_coc & ~a.coc_fused_kernel,
        at=(a.coc_parallel_num,),
        message="--coc-parallel-num must be 1, 2, 4 or 8, not {coc_parallel_num}",
        why="the split count is checked only at the first matrix product, so the run crashes after loading",
        fixes=(put(a.coc_parallel_num, 2), put(a.coc_parallel_num, 4)),
    ),
    one_of(
        "coc-mode",
        a.coc_mode,
        (-1, 0, 1, 2),
        when=a.use_ascend_coc,
        at=(a.coc_mode,),
        message="--coc-mode must be 0, 1 or 2, not {coc_mode}",
        why="the mode is checked only when the linear layers are set up, so the run crashes after loading",
        fixes=(drop(a.coc_mode),),
    ),
    refuse(
        "coc-rows",
        a.use_ascend_coc
        & ~a.coc_fused_kernel
        & (a.coc_parallel_num > 1)
        & (a.seq_length * a.micro_batch_size % (a.coc_parallel_num * a.context_parallel_size) != 0),
        severity=Severity.WARNING,
        at=(a.coc_parallel_num, a.seq_length, a.micro_batch_size),
        shows={"rows": a.seq_length * a.micro_batch_size // a.context_parallel_size},
        message="{rows} rows cannot be split into {coc_parallel_num} parts (--coc-parallel-num)",
        why="in script mode, the rows of the left matrix must be a multiple of the split count",
    ),
    refuse(
        "coc-parallel-num-without-effect",
        a.use_ascend_coc & a.coc_fused_kernel & a.coc_parallel_num.given,
        severity=Severity.WARNING,
        at=(a.coc_parallel_num,),
        fixes=(drop(a.coc_parallel_num, safety=Safety.SAFE),),
        message="--coc-parallel-num has no effect, because --coc-fused-kernel takes precedence",
        why="the fused kernel chooses the number of parts itself",
    ),
    refuse(
        "coc-options-without-effect",
        ~a.use_ascend_coc & any_of(a.coc_parallel_num.given, a.coc_mode.given),
        severity=Severity.WARNING,
        at=(a.coc_parallel_num, a.coc_mode),
        fixes=(
            drop(
                also=(a.coc_parallel_num, a.coc_mode),
                safety=Safety.SAFE,
                title=("remove the options that have no effect"),
            ),
            put(a.use_ascend_coc),
        ),
        message="the options of CoC have no effect without --use-ascend-coc",
        why="without --use-ascend-coc, communication is not hidden",
    ),
    refuse(
        "fused-kernel-needs-atb",
        a.coc_fused_kernel & (a.use_ascend_coc | a.tp_2d),
        severity=Severity.NOTE,
        at=(a.coc_fused_kernel,),
        message="--coc-fused-kernel needs the NNAL package (ATB) on every node, which no validator checks",
        why="without the package, the run crashes at the first linear layer",
    ),
    clash(
        "mc2-unaligned-linear",
        a.use_ascend_mc2,
        a.unaligned_linear,
        unless_framework="mindspeed-llm",
        why="both options replace the linear layers, but only one of them may do so, so the run fails at launch",
    ),
    refuse(
        "unaligned-linear-experts",
        a.unaligned_linear & a.num_experts.is_set & (a.num_experts > 1),
        unless_framework="mindspeed-llm",
        fixes=(drop(a.unaligned_linear),),
        message="--unaligned-linear does not work with a mixture of experts",
        why="experts must be split evenly over the ranks, so the run fails at launch",
    ),
    refuse(
        "mc2-tensor-parallel",
        a.use_ascend_mc2 & (a.tensor_model_parallel_size == 1),
        fixes=(drop(a.use_ascend_mc2),),
        message="--use-ascend-mc2 needs tensor parallelism, but the tensor-parallel size is 1",
        why="MindSpeed announces that it turns the feature off, but then raises an error, so the run fails at launch",
        after=("mindspeed/tp-2d-mc2",),
    ),
    refuse(
        "mc2-sequence-parallel",
        a.use_ascend_mc2 & (a.tensor_model_parallel_size > 1) & ~a.sequence_parallel,
        at=(a.use_ascend_mc2,),
        fixes=(put(a.sequence_parallel), drop(a.use_ascend_mc2)),
        message="--use-ascend-mc2 needs --sequence-parallel",
        why="MindSpeed announces that it turns the feature off, but then raises an error, so the run fails at launch",
        after=("mindspeed/tp-2d-mc2",),
    ),
    refuse(
        "mc2-fp8-recipe",
        a.use_ascend_mc2 & a.fp8 & (a.fp8_recipe != "mxfp8"),
        at=(a.fp8_recipe, a.use_ascend_mc2),
        fixes=(put(a.fp8_recipe, "mxfp8"), drop(a.use_ascend_mc2)),
        message="--use-ascend-mc2 in FP8 works only with the mxfp8 recipe, not {fp8_recipe}",
        why="the fused kernel can read only the scales of the mxfp8 recipe, so the run fails at launch",
        upstream={"mindspeed": f"{CORE}{BASIC}:91", "mindspeed-llm": f"{LLM}{BASIC}:58"},
    ),
    refuse(
        "mc2-experts",
        a.use_ascend_mc2 & a.num_experts.is_set & ~a.moe_grouped_gemm,
        severity=Severity.WARNING,
        at=(a.use_ascend_mc2, a.num_experts),
        fixes=(drop(a.use_ascend_mc2),),
        message="--use-ascend-mc2 does not support mixture-of-experts models",
    ),
)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "coc-lora",
        a.use_ascend_coc & (a.lora_target_modules.length > 0),
        fixes=(LEAVE,),
        message="--use-ascend-coc does not work with LoRA (--lora-target-modules)",
        why="LoRA adapters would bypass the replaced linear layers, so the run fails at launch",
    ),
    refuse(
        "mc2-grouped-gemm",
        a.num_experts.is_set & a.use_ascend_mc2 & a.moe_grouped_gemm,
        at=(a.use_ascend_mc2, a.moe_grouped_gemm),
        fixes=(drop(a.use_ascend_mc2), drop(a.moe_grouped_gemm)),
        message="--use-ascend-mc2 does not work with --moe-grouped-gemm in mixture-of-experts models",
        why="there is no fused kernel for grouped matrix products, so the run fails at launch",
    ),
)
