"""What keeps memory from following from a config's own layout."""

from __future__ import annotations

from preflight.dialects.mindformers.namespace import Run

SEARCHED = "sharding that auto_parallel finds"
STREAMS = "hyper-connections of MindSpore"


def unmodelled(run: Run) -> tuple[str, ...]:
    """Every reason, by name."""
    searched = (SEARCHED,) if run.raw("parallel_mode") == "auto_parallel" else ()
    streams = (STREAMS,) if run.raw("mcore.enable_hyper_connections") is True else ()
    return (*switched_off(run), *searched, *streams)


def switched_off(run: Run) -> tuple[str, ...]:
    """A layout for many devices under use_parallel: False is usually switched on by the command line:
    say nothing about memory."""
    off = run.written.get("use_parallel") is not None and run.raw("use_parallel") is False
    sizes = [
        run.written.get(f"parallel_config.{name}") for name in ("data_parallel", "model_parallel", "pipeline_stage")
    ]
    many = any(size is not None and isinstance(size.raw, int) and size.raw > 1 for size in sizes)
    return ("a layout for many devices under use_parallel: False",) if off and many else ()
