"""Options that do not work or have no effect with 2-D tensor parallelism."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import ConstraintSet, divides, drop, one_of, put, refuse
from preflight.lint.expressions import any_of
from preflight.rules.mindspeed.shorthand import DUALPIPEV, a, clash, needs

MINDSPEED = ConstraintSet("mindspeed")
LINEAR = "mindspeed/core/tensor_parallel/tp_2d"
OVERLAPS = (a.enable_overlap_ag_with_matmul, a.enable_overlap_matmul_with_rs, a.enable_backward_overlap_ag_with_matmul)
SIZES = (a.tp_x, a.tp_y)
LEAVE = drop(a.tp_2d, also=(*SIZES, *OVERLAPS), title="go back to one-dimensional tensor parallelism")
FORWARD_OVERLAP = a.enable_overlap_ag_with_matmul | a.enable_overlap_matmul_with_rs

MINDSPEED.add(
    clash(
        "tp-2d-sequence-parallel",
        a.tp_2d,
        a.sequence_parallel,
        fixes=(drop(a.sequence_parallel), LEAVE),
        after=("mindspeed/tp-2d-mc2",),
        why=(
            "2-D linear layers split the sequence themselves and raise an error if sequence parallelism has "
            "already split it, so the run fails at launch"
        ),
    ),
    clash(
        "tp-2d-fused-rmsnorm",
        a.tp_2d,
        a.use_fused_rmsnorm,
        fixes=(drop(a.use_fused_rmsnorm, safety=Safety.SAFE), LEAVE),
        why="a 2-D norm must reduce over the y ranks, which the fused kernel does not do, so the run fails at launch",
    ),
    clash(
        "tp-2d-coc",
        a.tp_2d,
        a.use_ascend_coc,
        fixes=(drop(a.use_ascend_coc, also=(a.coc_parallel_num, a.coc_mode)), LEAVE),
        why=(
            "both options replace the linear layers, but only one of them may do so, so the run fails at launch. "
            "Inside 2-D tensor parallelism, --coc-fused-kernel alone turns on the fused kernel"
        ),
    ),
    clash(
        "tp-2d-mc2",
        a.tp_2d,
        a.use_ascend_mc2,
        fixes=(drop(a.use_ascend_mc2, also=(a.sequence_parallel,)), LEAVE),
        message=(
            "--tp-2d and --use-ascend-mc2 never work together, because one forbids sequence parallelism and the "
            "other requires it"
        ),
        why="one of the two checks fails at launch, whether --sequence-parallel is set or not",
    ),
    clash(
        "tp-2d-unaligned-linear",
        a.tp_2d,
        a.unaligned_linear,
        unless_framework="mindspeed-llm",
        why="both options replace the linear layers, but only one of them may do so, so the run fails at launch",
    ),
    clash(
        "tp-2d-dualpipev",
        a.tp_2d,
        DUALPIPEV,
        fixes=(drop(a.schedules_method, also=(a.dualpipev_dw_detach,)), LEAVE),
        why="the schedule can only exchange tensors that are sharded in one dimension, so the run fails at launch",
    ),
    one_of(
        "tp-2d-context-algo",
        a.context_parallel_algo,
        ("megatron_cp_algo", "ulysses_cp_algo"),
        when=a.tp_2d,
        message=(
            "--tp-2d works with the context-parallel algorithms megatron_cp_algo and ulysses_cp_algo, not with "
            "{context_parallel_algo}"
        ),
        fixes=(
            put(a.context_parallel_algo, "megatron_cp_algo"),
            put(a.context_parallel_algo, "ulysses_cp_algo"),
            LEAVE,
        ),
        why=(
            "2-D tensor parallelism supports only these two algorithms, so the run fails at launch. The algorithm is "
            "checked even when context parallelism is off"
        ),
        at=(a.context_parallel_algo, a.tp_2d),
    ),
    refuse(
        "tp-2d-ring-becomes-ulysses",
        a.tp_2d
        & (a.context_parallel_algo.written == "megatron_cp_algo")
        & ~a.use_flash_attn
        & (a.context_parallel_size == 1),
        message=(
            "--tp-2d without --use-flash-attn changes --context-parallel-algo from megatron_cp_algo to ulysses_cp_algo"
        ),
        why=("without context parallelism, nothing changes. With ring attention, flash attention is turned on instead"),
        severity=Severity.NOTE,
        at=(a.context_parallel_algo,),
        fixes=(put(a.use_flash_attn),),
    ),
    refuse(
        "tp-2d-expert-parallel",
        a.tp_2d & (a.expert_model_parallel_size > 1),
        fixes=(LEAVE,),
        message="--tp-2d needs an expert-parallel size of 1, not {expert_model_parallel_size}",
        why="experts do not support 2-D linear layers, so the run fails at launch",
    ),
    refuse(
        "tp-2d-experts",
        a.tp_2d & a.num_experts.is_set & (a.expert_model_parallel_size == 1),
        severity=Severity.WARNING,
        fixes=(LEAVE,),
        at=(a.tp_2d, a.num_experts),
        message=(
            "--tp-2d is used with {num_experts} experts, although MindSpeed's documentation excludes "
            "mixture-of-experts models; the validator accepts them"
        ),
        why="the documentation contradicts itself on mixtures of experts, and no published run combines the two",
    ),
    divides(
        "tp-2d-hidden-size",
        a.tp_y,
        a.hidden_size,
        when=a.tp_2d & (a.tp_y > 1),
        at=(a.tp_y, a.hidden_size),
        after=("mindspeed/tp-2d-sizes",),
        message="the hidden size {hidden_size} is not a multiple of --tp-y {tp_y}",
        why="2-D linear layers and norms must split the hidden size over the y ranks, so building the model fails",
    ),
    divides(
        "tp-2d-ffn-size",
        a.tp_x,
        a.ffn_hidden_size,
        when=a.tp_2d & (a.tp_x > 1),
        at=(a.tp_x, a.ffn_hidden_size),
        after=("mindspeed/tp-2d-sizes",),
        message="the FFN size {ffn_hidden_size} is not a multiple of --tp-x {tp_x}",
        why="2-D linear layers must split the FFN size over the x ranks, so building the model fails",
    ),
    refuse(
        "tp-2d-overlap-without-effect",
        ~a.tp_2d & any_of(*(h.given for h in (*SIZES, *OVERLAPS))),
        severity=Severity.WARNING,
        at=(*SIZES, *OVERLAPS),
        fixes=(
            drop(also=(*SIZES, *OVERLAPS), safety=Safety.SAFE, title=("remove the options that have no effect")),
            put(a.tp_2d),
        ),
        message="options of 2-D tensor parallelism have no effect without --tp-2d",
        why="only the 2-D linear layers read these options, so the run uses one-dimensional tensor parallelism",
    ),
    refuse(
        "coc-fused-kernel-without-effect",
        a.coc_fused_kernel & ~a.tp_2d & ~a.use_ascend_coc,
        severity=Severity.WARNING,
        at=(a.coc_fused_kernel,),
        fixes=(drop(a.coc_fused_kernel, safety=Safety.SAFE),),
        message="--coc-fused-kernel has no effect without --tp-2d or --use-ascend-coc",
        why="only --tp-2d and --use-ascend-coc read the option, so communication is not hidden",
    ),
    needs(
        "backward-overlap-without-fused-kernel",
        a.tp_2d & a.enable_backward_overlap_ag_with_matmul,
        a.coc_fused_kernel,
        severity=Severity.WARNING,
        at=(a.enable_backward_overlap_ag_with_matmul,),
        fixes=(drop(a.enable_backward_overlap_ag_with_matmul, safety=Safety.SAFE), put(a.coc_fused_kernel)),
        message="--enable-backward-overlap-ag-with-matmul has no effect without --coc-fused-kernel",
        why=(
            "the backward overlap is part of the fused kernel. Without that kernel, the flag only creates another "
            "process group"
        ),
    ),
    refuse(
        "tp-2d-fused-kernel-micro-batch",
        a.tp_2d & a.coc_fused_kernel & ~FORWARD_OVERLAP & (a.micro_batch_size > 1),
        severity=Severity.WARNING,
        at=(a.micro_batch_size, a.coc_fused_kernel),
        fixes=(put(a.micro_batch_size, 1), drop(a.coc_fused_kernel)),
        upstream={
            "mindspeed": f"{LINEAR}/linear_2d_split_along_first_dim.py:116",
            "mindspeed-llm": "docs/zh/pytorch/features/mcore/tensor_parallel_2d.md:39",
        },
        message="the fused kernel of 2-D tensor parallelism needs --micro-batch-size 1, not {micro_batch_size}",
        why=(
            "the kernel computes its output size without the batch dimension, so the documentation allows only a "
            "micro-batch of 1"
        ),
    ),
    refuse(
        "tp-2d-small",
        a.tp_2d & (a.tensor_model_parallel_size > 1) & (a.tensor_model_parallel_size < 16),
        severity=Severity.NOTE,
        message=(
            "--tp-2d is used with a tensor-parallel size of {tensor_model_parallel_size}, but the documented gain is "
            "for a size of 16 and a large dense model; other settings may gain nothing"
        ),
        why="the split in two directions is faster if one-dimensional communication is the bottleneck",
    ),
)
