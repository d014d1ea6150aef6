"""What a Megatron run hides behind computation, and its attention windows: what step time asks for."""

from __future__ import annotations

from preflight.dialects.megatron.namespace import Run

SWITCHES = {
    "tensor": ("tp_comm_overlap", "use_ascend_mc2", "use_ascend_coc"),
    "gradients": ("overlap_grad_reduce",),
    "parameters": ("overlap_param_gather",),
    "experts": ("overlap_moe_expert_parallel_comm", "moe_alltoall_overlap_comm", "moe_fb_overlap"),
    "stages": ("overlap_p2p_comm",),
    "graphs": ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl"),
}


def overlaps(run: Run) -> tuple[str, ...]:
    """What is hidden. The exchange that goes with a weight's gradient always is (d98e8a6
    megatron/core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication)."""
    found = [name for name, switches in SWITCHES.items() if any(_is_on(run, switch) for switch in switches)]
    return ("backward", *found, *(("whole graph",) if is_one_graph(run) else ()))


def is_one_graph(run: Run) -> bool:
    """Whether a whole iteration is one CUDA graph: kernels start without the host (d98e8a6
    megatron/core/full_cuda_graph.py)."""
    impl, scope = (run.value(name).raw for name in ("cuda_graph_impl", "cuda_graph_scope"))
    wide = scope if isinstance(scope, (tuple, list)) else [scope]
    return impl == "full_iteration" or (impl == "local" and "full_iteration" in map(str, wide))


def _is_on(run: Run, name: str) -> bool:
    """Whether a switch is on, of options that not every release has."""
    value = run.value(name)
    return value.known and value.raw not in (None, False, 0, "", "none")


def window(run: Run) -> int | None:
    """Tokens before it that a query sees in a windowed layer."""
    size = run.window_size
    first = size[0] if isinstance(size, (tuple, list)) and size else run.sliding_window
    return first if isinstance(first, int) and first > 0 else None


def window_every(run: Run) -> int | None:
    """Each so many-th layer sees all tokens."""
    every = run.window_attn_skip_freq
    return every if isinstance(every, int) and not isinstance(every, bool) else None
