"""Megatron-LM, MindSpeed and MindSpeed-LLM: the same parser and derivations, different options and versions."""

from __future__ import annotations

from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.dialects.megatron.names_in_constraints import DERIVED, megatron_names

__all__ = ["DERIVED", "MegatronDialect", "megatron_names"]


def __getattr__(name: str) -> Any:
    if name == "MegatronDialect":
        from preflight.dialects.megatron.dialect import MegatronDialect

        return MegatronDialect
    if name in ("DERIVED", "megatron_names"):
        from preflight.dialects.megatron import names_in_constraints

        return getattr(names_in_constraints, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
