"""Checks that MindSpeed-LLM 2.0 and 2.1 make on multi-head latent attention."""

from __future__ import annotations

from preflight.lint.constraint import Constraint, ConstraintSet, drop, put, refuse
from preflight.lint.expressions import Expression, Handle
from preflight.rules.mindspeed.shorthand import a, lacks

MLA = a.multi_head_latent_attention
OVERLAP = a.mla_up_proj_tp_overlap
SIZES = (a.kv_lora_rank, a.v_head_dim, a.qk_rope_head_dim, a.qk_nope_head_dim)


def _size(number: int, size: Handle) -> Constraint:
    before: Expression = MLA
    for other in SIZES[:number]:
        before = before & other.is_set
    return refuse(
        f"latent-{size.name.replace('_', '-')}",
        before & size.is_none,
        at=(MLA,),
        message=lacks(MLA, size),
        why="the sizes of the projections are computed from the missing option, so the run fails at launch",
        fixes=(drop(MLA),),
    )


MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "latent-padded-length",
        MLA & (a.padded_base_length < 1),
        at=(a.padded_base_length,),
        message="--padded-base-length {padded_base_length} must be at least 1",
        why=(
            "lengths are padded to multiples of --padded-base-length, which must be positive; otherwise, the run "
            "fails at launch"
        ),
        fixes=(drop(a.padded_base_length),),
    ),
    *(_size(number, size) for number, size in enumerate(SIZES)),
    refuse(
        "latent-overlap-split",
        MLA & OVERLAP & ~a.mla_mm_split,
        at=(OVERLAP,),
        message="--mla-up-proj-tp-overlap needs --mla-mm-split",
        why="only the split matrix product can be overlapped, so the run fails at launch",
        fixes=(put(a.mla_mm_split), drop(OVERLAP)),
    ),
    refuse(
        "latent-overlap-sequence-parallel",
        MLA & OVERLAP & ~a.sequence_parallel,
        at=(OVERLAP,),
        message="--mla-up-proj-tp-overlap needs --sequence-parallel",
        why=(
            "the overlap hides the all-gather of the sequence, which exists only with sequence parallelism, so the "
            "run fails at launch"
        ),
        fixes=(put(a.sequence_parallel), drop(OVERLAP)),
    ),
    refuse(
        "latent-recompute-overlap",
        MLA & a.recompute_mla_up_proj & ~OVERLAP,
        at=(a.recompute_mla_up_proj,),
        message="--recompute-mla-up-proj needs --mla-up-proj-tp-overlap",
        why="only the overlapped projection can be recomputed, so the run fails at launch",
        fixes=(put(OVERLAP), drop(a.recompute_mla_up_proj)),
    ),
    refuse(
        "latent-recompute-zero-memory",
        MLA & a.recompute_mla_up_proj & OVERLAP & a.mla_zero_memory,
        at=(a.mla_zero_memory, a.recompute_mla_up_proj),
        message="--recompute-mla-up-proj does not work with --mla-zero-memory",
        why="both options drop the same activations, but only one of them may do so, so the run fails at launch",
        fixes=(drop(a.mla_zero_memory), drop(a.recompute_mla_up_proj)),
    ),
    refuse(
        "latent-swap-schedule",
        MLA & a.mla_swap_core_attn_out & (a.schedules_method.is_none | (a.schedules_method != "dualpipev")),
        at=(a.mla_swap_core_attn_out, a.schedules_method),
        message="--mla-swap-core-attn-out needs --schedules-method dualpipev",
        why="the outputs can only be swapped back in the order of the dualpipev schedule, so the run fails at launch",
        fixes=(drop(a.mla_swap_core_attn_out),),
    ),
    refuse(
        "latent-swap-overlap",
        MLA & a.mla_swap_core_attn_out & (a.schedules_method == "dualpipev") & ~a.moe_fb_overlap,
        at=(a.mla_swap_core_attn_out,),
        message="--mla-swap-core-attn-out needs --moe-fb-overlap",
        why="the swap can only run while the overlap computes, so the run fails at launch",
        fixes=(put(a.moe_fb_overlap), drop(a.mla_swap_core_attn_out)),
    ),
    refuse(
        "latent-divided-context",
        a.mla_fa_divide_qk & (a.context_parallel_size > 1),
        message="--mla-fa-divide-qk does not work with a context-parallel size of {context_parallel_size}",
        why="the divided kernel supports only whole sequences, so the run fails at launch",
        fixes=(drop(a.mla_fa_divide_qk),),
    ),
    refuse(
        "latent-divided-positions",
        a.mla_fa_divide_qk & (a.context_parallel_size <= 1) & ~a.reset_position_ids,
        at=(a.mla_fa_divide_qk,),
        message="--mla-fa-divide-qk needs --reset-position-ids",
        why="the divided kernel supports only packed samples, so the run fails at launch",
        fixes=(put(a.reset_position_ids), drop(a.mla_fa_divide_qk)),
    ),
)
