"""The four hooks. Each is called once at startup, takes no arguments and returns values;
preflight's own loop does the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.dialects import Dialect
    from preflight.lint.rule import Checkable, RulePack
    from preflight.run.cluster import Device

hookspec = pluggy.HookspecMarker("preflight")
hookimpl = pluggy.HookimplMarker("preflight")


@hookspec
def preflight_rules() -> Sequence[Checkable | RulePack]:  # type: ignore[empty-body]
    """Rules, or packs of rules that load when a run targets their framework."""


@hookspec
def preflight_dialects() -> Sequence[Dialect]:  # type: ignore[empty-body]
    """Readers of additional kinds of config."""


@hookspec
def preflight_devices() -> Sequence[Device]:  # type: ignore[empty-body]
    """Additional accelerators, by name."""


@hookspec
def preflight_reporters() -> Sequence[tuple[str, str]]:  # type: ignore[empty-body]
    """Output formats: name and "module:function";
    the function takes a Report and a Look and returns the text to write."""
