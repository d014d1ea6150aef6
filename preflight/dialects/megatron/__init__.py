"""Megatron-LM, MindSpeed and MindSpeed-LLM: the same parser and derivations, different options and versions."""

from __future__ import annotations

from preflight.source.typing_placeholders import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.dialects.megatron.constraint_names import DERIVED, megatron_names

__all__ = ["DERIVED", "MegatronDialect", "megatron_names"]


def __getattr__(name: str) -> Any:
    if name == "MegatronDialect":
        from preflight.dialects.megatron.dialect import MegatronDialect

        return MegatronDialect
    if name in ("DERIVED", "megatron_names"):
        from preflight.dialects.megatron import constraint_names

        return getattr(constraint_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
