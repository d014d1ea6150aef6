"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from __future__ import annotations

from importlib import import_module

from preflight.source.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.layouts.result import Found, Result
    from preflight.layouts.search import search
    from preflight.layouts.space import Limits
    from preflight.layouts.sweep import sweep

__all__ = ["Found", "Limits", "Result", "search", "sweep"]
_HOMES = {"Found": "result", "Result": "result", "search": "search", "Limits": "space", "sweep": "sweep"}


def __getattr__(name: str) -> Any:
    """The public names of the package, imported on demand: a search needs numpy, the types do not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"preflight.layouts.{_HOMES[name]}"), name)
