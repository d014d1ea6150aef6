"""MindSpeed's --swap-attention: what attention keeps lies on the host while other layers are at work.

Source: MindSpeed v26.0.0_core_r0.12.1, mindspeed/core/memory/swap_attention: every tensor that a named module saves is
copied away and freed at the end of its layer's forward pass, and comes back at the start of that layer's backward pass
(prefetch.py:104-118, :207-225, :359-371). No layer is recomputed as a whole then: --recompute-num-layers are layers
whose MLP is (adaptor.py:96-124, swap_attention_apply.py:22-23, common.py:151).
"""

from __future__ import annotations

from preflight.dialects.megatron.mindspeed_stages import held_layers
from preflight.dialects.megatron.namespace import Run

Counts = tuple[tuple[int, ...], ...]
KEPT = {
    "self_attention": ("norm 1 output", "query key value", "attention output"),
    "input_layernorm": ("norm 1 input",),
}
"""What a module saves of its own, by its name in a layer."""
MAYBE = ("query key norm inputs", "key value up", "compressed query", "attention output, padded")
"""What attention saves as parts of larger tensors, which are not copied, or as whole ones."""
MLP = ("fc1 output", "gate activation", "activation output", "weighted activation")
EXPERTS = ("router", "dispatched tokens", "expert outputs", "shared experts")
OLDER = "input_layernorm,self_attention,pre_cross_attn_layernorm"
"""What MindSpeed-LLM before 2.2 takes where --swap-modules is not given (training/arguments.py of 2.1.0)."""


def modules(run: Run) -> tuple[str, ...]:
    """The modules whose tensors are swapped; none where the option is off, or names others that no formula knows."""
    if not run.value("swap_attention").written or not run.swap_attention:
        return ()
    named = run.swap_modules or OLDER
    if any(name in named for name in ("mlp", "pre_mlp_layernorm")) or run.schedules_method == "dualpipev":
        return ()
    return tuple(name for name in KEPT if name in named) if "self_attention" in named else ()


def outputs(run: Run) -> tuple[tuple[tuple[str, ...], Counts], ...]:
    """The outputs that are gone while other layers are at work, with the layers of each stage."""
    swapped = modules(run)
    if not swapped:
        return ()
    held = held_layers(run)
    away, again = _numbers(run, len(held))
    names = tuple(name for module in swapped for name in KEPT[module])
    return (names, _dealt(held, away)), ((*MLP, *EXPERTS), _dealt(held, again))


def repeated(run: Run) -> tuple[tuple[str, Counts], ...]:
    """The linears that run again."""
    if not modules(run) or run.num_experts:
        return ()
    held = held_layers(run)
    counts = _dealt(held, _numbers(run, len(held))[1])
    return ("fc1", counts), ("fc2", counts)


def _numbers(run: Run, chunks: int) -> tuple[int, int]:
    """Layers of a rank that are swapped, and whose MLP is recomputed (adaptor.py:96-118)."""
    rank = run.num_layers // run.pipeline_model_parallel_size
    count = run.recompute_num_layers or 0
    if not run.enable_recompute_layers_per_pp_rank:
        count = rank if count >= (run.num_layers_per_virtual_pipeline_stage or rank) else count * chunks
    count = rank if run.recompute_method == "uniform" else min(count, rank)
    return (count if run.recompute_method == "block" else rank), count


def _dealt(held: Counts, count: int) -> Counts:
    """Dealt out over a rank's virtual stages, one by one."""
    return tuple(tuple(min(n, max(0, -(-(count - v) // len(held)))) for n in row) for v, row in enumerate(held))
