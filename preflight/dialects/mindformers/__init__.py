"""MindFormers: graph mode (schema-free, templated, mcore) and pynative, releases 1.0 to 2.1."""

from __future__ import annotations

from preflight.source.typing_without_import import Any

__all__ = ["MindFormersDialect"]


def __getattr__(name: str) -> Any:
    if name == "MindFormersDialect":
        from preflight.dialects.mindformers.dialect import MindFormersDialect

        return MindFormersDialect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
