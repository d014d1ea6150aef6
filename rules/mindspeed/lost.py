"""Settings that the framework silently changes, and settings that do not work although no check rejects them."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import Constraint, ConstraintSet, drop, put, refuse
from preflight.lint.expressions import Handle, all_of
from preflight.rules.mindspeed.shorthand import LLM, a, flag

MINDSPEED = ConstraintSet("mindspeed")
MEGATRON = "megatron/training/arguments.py"
TP, CP = a.tensor_model_parallel_size, a.context_parallel_size

# these have a different expert layer
OTHER_LAYER = a.moe_alltoall_overlap_comm | a.moe_allgather_overlap_comm | a.moe_tp_extend_ep

MINDSPEED.add(
    refuse(
        "sequence-parallel-off",
        a.sequence_parallel.given & (TP == 1),
        severity=Severity.NOTE,
        upstream=f"{MEGATRON}:761",
        at=(a.sequence_parallel, TP),
        message="--sequence-parallel is turned off, because the tensor-parallel size is 1",
        why="there is only one rank, so the sequence cannot be split, and nothing is lost",
        fixes=(drop(a.sequence_parallel, safety=Safety.SAFE),),
    ),
    refuse(
        "sequence-parallel-split",
        a.sequence_parallel & (TP > 1) & (CP > 0) & (a.seq_length % CP == 0) & (a.seq_length // CP % TP != 0),
        severity=Severity.WARNING,
        upstream="megatron/core/tensor_parallel/mappings.py:69",
        at=(a.seq_length, TP),
        layout=True,
        shows={"local": a.seq_length // CP},
        message=(
            "{local} tokens per context-parallel rank are not divisible by the tensor-parallel size "
            "{tensor_model_parallel_size} with --sequence-parallel"
        ),
        why="no validator catches this, so the first step fails because the embedding cannot be scattered",
    ),
    refuse(
        "experts-tensor-first-step",
        a.num_experts.is_set & (TP > 1) & ~a.sequence_parallel & ~a.tp_2d & ~OTHER_LAYER,
        severity=Severity.WARNING,
        upstream={
            "mindspeed": "megatron/core/transformer/moe/moe_layer.py:135",
            "mindspeed-llm": "mindspeed_llm/core/transformer/moe/moe_layer.py:127",
        },
        at=(TP, a.num_experts),
        message=(
            "a mixture of experts with a tensor-parallel size of {tensor_model_parallel_size} needs --sequence-parallel"
        ),
        why="no validator catches this, so the expert layer raises an error in the first training step",
        after=("megatron/experts-and-tensor-without-sequence-parallel",),
        fixes=(put(a.sequence_parallel, safety=Safety.SAFE),),
    ),
    refuse(
        "noop-layers-ignored",
        a.noop_layers.given & a.automated_pipeline,
        severity=Severity.WARNING,
        at=(a.noop_layers,),
        unless_framework="mindspeed-llm",
        message="--noop-layers is ignored with --automated-pipeline",
        why="the planner places the layers itself, so the model has more layers than intended",
        fixes=(drop(a.noop_layers), drop(a.automated_pipeline)),
    ),
)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
DEPRECATED = f"{LLM}arguments/deprecated_args.py"
RING_RESET = (
    (CP > 1)
    & a.reset_attention_mask
    & (a.attention_mask_type == "causal")
    & (a.context_parallel_algo == "megatron_cp_algo")
)


def _overruled(line: int, old: Handle, spelling: str, new: Handle, *, wins: bool) -> Constraint:
    """An older and a newer spelling of one option that are set to different values. wins: the older one takes
    precedence."""
    lost, kept = (flag(new), spelling) if wins else (spelling, flag(new))
    return refuse(
        f"{flag(new)[2:]}-twice",
        old.given & new.given & (old.written != new.written),
        severity=Severity.WARNING,
        at=(new, old),
        upstream=f"{DEPRECATED}:{line}",
        message=f"{lost} is ignored, because {kept} takes precedence",
        why="the two options set the same value, and their order on the command line does not matter",
        fixes=(drop(old), drop(new)),
    )


MINDSPEED_LLM.add(
    refuse(
        "variable-lengths-ignored",
        a.variable_seq_lengths.given & ~a.no_pad_to_seq_lengths & (a.ai_framework != "mindspore") & ~RING_RESET,
        severity=Severity.WARNING,
        at=(a.variable_seq_lengths,),
        upstream=f"{MEGATRON}:619",
        message="--variable-seq-lengths has no effect, because Megatron sets it to False",
        why="every sample is padded to the sequence length",
        fixes=(drop(a.variable_seq_lengths, safety=Safety.SAFE), put(a.no_pad_to_seq_lengths)),
        versions=">=2.3",
    ),
    refuse(
        "output-slices-ignored",
        all_of(a.output_layer_slice_num.given, a.output_layer_slice_num.written != 1),
        severity=Severity.WARNING,
        at=(a.output_layer_slice_num,),
        message="--output-layer-slice-num is reset to 1, so the given value has no effect",
        why="logits are computed in one piece, which needs more memory",
        fixes=(drop(a.output_layer_slice_num, safety=Safety.SAFE),),
    ),
    refuse(
        "half-gradients-ignored",
        a.o2_gradient & a.bf16 & ~a.grad_reduce_in_bf16,
        severity=Severity.WARNING,
        at=(a.o2_gradient,),
        message="--o2-gradient has no effect, because gradients are kept in fp32",
        why=(
            "the code that read the option was deleted before 26.0 (a05e91c), so gradients take 4 bytes per "
            "parameter, not 2 as in the manual. Megatron's --grad-reduce-in-bf16 halves their size"
        ),
        fixes=(drop(a.o2_gradient, safety=Safety.SAFE), put(a.grad_reduce_in_bf16)),
    ),
    refuse(
        "throughput-log-off",
        a.log_throughput.given & a.no_pad_to_seq_lengths,
        severity=Severity.NOTE,
        at=(a.log_throughput,),
        message="--log-throughput is turned off by --no-pad-to-seq-lengths",
        why="without padding, the amount of computation in a step is unknown in advance",
        fixes=(drop(a.log_throughput, safety=Safety.SAFE),),
    ),
    refuse(
        "shape-order-changed",
        a.shape_order.given & a.reset_attention_mask,
        severity=Severity.NOTE,
        at=(a.shape_order,),
        message="--reset-attention-mask changes --shape-order to TND",
        why="packed documents are stored one after another",
        fixes=(drop(a.shape_order, safety=Safety.SAFE),),
    ),
    _overruled(70, a.deprecated_cp_attention_mask_type, "--cp-attention-mask-type", a.attention_mask_type, wins=True),
    _overruled(75, a.deprecated_moe_intermediate_size, "--moe-intermediate-size", a.moe_ffn_hidden_size, wins=True),
    _overruled(80, a.deprecated_n_group, "--n-group", a.moe_router_num_groups, wins=False),
    _overruled(85, a.deprecated_topk_group, "--topk-group", a.moe_router_group_topk, wins=False),
    _overruled(
        92, a.deprecated_routed_scaling_factor, "--routed-scaling-factor", a.moe_router_topk_scaling_factor, wins=False
    ),
    _overruled(97, a.deprecated_qk_rope_head_dim, "--qk-rope-head-dim", a.qk_pos_emb_head_dim, wins=True),
    _overruled(102, a.deprecated_qk_nope_head_dim, "--qk-nope-head-dim", a.qk_head_dim, wins=True),
    _overruled(112, a.deprecated_rope_scaling_beta_fast, "--rope-scaling-beta-fast", a.beta_fast, wins=True),
    _overruled(117, a.deprecated_rope_scaling_beta_slow, "--rope-scaling-beta-slow", a.beta_slow, wins=True),
)
