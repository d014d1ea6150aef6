"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from __future__ import annotations

from importlib import import_module

from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.layouts.multi_file_search import sweep
    from preflight.layouts.result import Found, Result
    from preflight.layouts.search import search
    from preflight.layouts.search_inputs import Limits

__all__ = ["Found", "Limits", "Result", "search", "sweep"]
_HOMES = {
    "Found": "result",
    "Result": "result",
    "search": "search",
    "Limits": "search_inputs",
    "sweep": "multi_file_search",
}


def __getattr__(name: str) -> Any:
    """The public names of the package, imported on demand: a search needs numpy, the types do not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"preflight.layouts.{_HOMES[name]}"), name)
