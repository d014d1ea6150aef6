"""Checks that MindSpeed-LLM 2.0 and 2.1 make on recomputation, fused kernels, low precision and other features."""

from __future__ import annotations

from preflight.lint.constraint import Constraint, ConstraintSet, drop, put, refuse
from preflight.lint.expressions import Expression, Handle
from preflight.rules.mindspeed.shorthand import a, beside, needs

FUNCTION, NORM, ADVANCE = a.recompute_activation_function, a.recompute_norm, a.recompute_in_advance.given
VPP, SLICES = a.num_layers_per_virtual_pipeline_stage, a.output_layer_slice_num
BLOCK = a.recompute_granularity.is_set & (a.recompute_method == "block")
VOCABULARY = (a.padded_vocab_size.is_set & (a.padded_vocab_size % SLICES != 0)) | (
    a.vocab_size.is_set & (a.vocab_size % SLICES != 0)
)


def _beside(id: str, what: Handle, where: Handle, value: str) -> Constraint:
    return refuse(
        id,
        what & (where == value),
        at=(what, where),
        message=beside(what, where, value),
        why="before 2.2, both options choose what is recomputed and cannot be combined, so the run fails at launch",
        fixes=(drop(what),),
    )


def _half(what: Expression) -> Expression:
    return what & ~a.bf16


MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "layers-per-rank-alone",
        a.enable_recompute_layers_per_pp_rank & ((VPP.is_none | (VPP == 0)) | ~(BLOCK | a.swap_attention | FUNCTION)),
        at=(a.enable_recompute_layers_per_pp_rank,),
        message=(
            "--enable-recompute-layers-per-pp-rank needs --num-layers-per-virtual-pipeline-stage and block "
            "recomputation, --swap-attention or --recompute-activation-function"
        ),
        why=(
            "the option counts the recomputed layers of each pipeline rank, so it needs virtual stages and "
            "something to recompute; otherwise, the run fails at launch"
        ),
        fixes=(drop(a.enable_recompute_layers_per_pp_rank),),
    ),
    _beside("recompute-activation-uniform", FUNCTION, a.recompute_method, "uniform"),
    _beside("recompute-activation-selective", FUNCTION, a.recompute_granularity, "selective"),
    _beside("recompute-norm-uniform", NORM, a.recompute_method, "uniform"),
    _beside("recompute-norm-selective", NORM, a.recompute_granularity, "selective"),
    refuse(
        "recompute-norm-mcore",
        NORM & ~a.use_mcore_models,
        at=(NORM,),
        message="--recompute-norm needs --use-mcore-models",
        why="legacy models cannot recompute norms, so the run fails at launch",
        fixes=(put(a.use_mcore_models), drop(NORM)),
    ),
    refuse(
        "advance-selective",
        ADVANCE & (a.recompute_granularity == "selective"),
        message="--recompute-in-advance does not work with selective recomputation",
        why="recomputation in advance supports only whole layers, so the run fails at launch",
        fixes=(drop(ADVANCE),),
    ),
    refuse(
        "advance-virtual-stage",
        ADVANCE & (a.pipeline_model_parallel_size > 1) & VPP.is_set & (VPP != 1),
        at=(ADVANCE, VPP),
        message=(
            "--recompute-in-advance needs --num-layers-per-virtual-pipeline-stage 1, "
            "not {num_layers_per_virtual_pipeline_stage}"
        ),
        why="before 2.2, any other size makes the run fail at launch",
        fixes=(drop(ADVANCE),),
    ),
    refuse(
        "variable-lengths-padding",
        a.variable_seq_lengths
        & (a.context_parallel_size > 1)
        & (a.pad_to_multiple_of % (a.tensor_model_parallel_size * a.context_parallel_size) != 0),
        at=(a.pad_to_multiple_of, a.tensor_model_parallel_size, a.context_parallel_size),
        message=(
            "--pad-to-multiple-of {pad_to_multiple_of} is not a multiple of tensor-parallel size "
            "{tensor_model_parallel_size} × context-parallel size {context_parallel_size}"
        ),
        why="samples cannot be split evenly over the ranks, so the run fails at launch",
        layout=True,
    ),
    refuse(
        "variable-lengths-context",
        a.variable_seq_lengths & (a.context_parallel_size > 1),
        message="--variable-seq-lengths does not work with a context-parallel size of {context_parallel_size}",
        why="before 2.1, samples are not padded to a length that can be split, so the run fails at launch",
        fixes=(drop(a.variable_seq_lengths), put(a.context_parallel_size, 1)),
        layout=True,
    ),
    refuse(
        "output-slices-positive",
        SLICES < 1,
        message="--output-layer-slice-num must be positive, not {output_layer_slice_num}",
        why="the number of slices must be at least 1, so the run fails at launch",
        fixes=(drop(SLICES),),
    ),
    refuse(
        "output-slices-tensor",
        (SLICES > 1) & (a.tensor_model_parallel_size > 1),
        message=(
            "--output-layer-slice-num {output_layer_slice_num} needs a tensor-parallel size of 1, not "
            "{tensor_model_parallel_size}"
        ),
        why="tensor parallelism already slices the output layer, so the run fails at launch",
        fixes=(drop(SLICES),),
    ),
    refuse(
        "output-slices-vocabulary",
        (SLICES > 1) & (a.tensor_model_parallel_size == 1) & VOCABULARY,
        at=(SLICES, a.padded_vocab_size, a.vocab_size),
        message="the vocabulary is not a multiple of --output-layer-slice-num {output_layer_slice_num}",
        why="all slices must have the same size, so the run fails at launch",
        fixes=(drop(SLICES),),
    ),
    refuse(
        "fused-mlp-swiglu",
        a.use_fused_mlp & ~a.swiglu,
        at=(a.use_fused_mlp,),
        message="--use-fused-mlp needs --swiglu",
        why="the kernel can compute only SwiGLU, so the run fails at launch",
        fixes=(drop(a.use_fused_mlp),),
    ),
    refuse(
        "fused-mlp-sequence-parallel",
        a.use_fused_mlp & a.swiglu & ~a.sequence_parallel & ~a.lora_fusion,
        at=(a.use_fused_mlp,),
        message="--use-fused-mlp needs --sequence-parallel or --lora-fusion",
        why=(
            "the kernel gathers the sequence itself, so sequence parallelism must have split it first; "
            "otherwise, the run fails at launch"
        ),
        fixes=(drop(a.use_fused_mlp),),
    ),
    refuse(
        "half-states-bf16",
        _half(a.o2_gradient | a.o2_optimizer),
        at=(a.o2_gradient, a.o2_optimizer),
        message="--o2-gradient and --o2-optimizer need --bf16",
        why="both options support only bf16 as half precision, so the run fails at launch",
        fixes=(put(a.bf16),),
    ),
    refuse(
        "half-gradients-fusion",
        a.o2_gradient & a.bf16 & a.gradient_accumulation_fusion,
        at=(a.o2_gradient,),
        message="--o2-gradient needs --no-gradient-accumulation-fusion",
        why="the fused kernel can only accumulate in fp32, so the run fails at launch",
        fixes=(put(a.gradient_accumulation_fusion, False),),
    ),
    refuse(
        "fused-rmsnorm-kind",
        a.use_fused_rmsnorm & (a.normalization != "RMSNorm"),
        message="--use-fused-rmsnorm needs --normalization RMSNorm, not {normalization}",
        why="the kernel can compute only RMSNorm, so the run fails at launch",
        fixes=(put(a.normalization, "RMSNorm"), drop(a.use_fused_rmsnorm)),
    ),
    needs(
        "fused-swiglu-kind",
        a.use_fused_swiglu,
        a.swiglu,
        why="the kernel can compute only SwiGLU, so the run fails at launch",
    ),
    refuse(
        "swap-lora-norm",
        ~a.use_fused_rmsnorm & a.swap_attention & (a.lora_target_modules.length > 0),
        at=(a.swap_attention, a.lora_target_modules),
        message="--swap-attention with LoRA needs --use-fused-rmsnorm",
        why=(
            "before 2.2, only the fused RMSNorm works with both --swap-attention and adapters, so the run fails at "
            "launch"
        ),
        fixes=(put(a.use_fused_rmsnorm), drop(a.swap_attention)),
    ),
    needs(
        "local-copy-availability",
        a.enable_optimizer_state_local_copy,
        a.enable_high_availability,
        why="only high availability reads the copies, so the run fails at launch without it",
    ),
)
