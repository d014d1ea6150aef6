"""preflight's own dialects, devices, reporters and rules, through the same entry point as third-party ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.dialects import Dialect
    from preflight.lint.rule import RulePack
    from preflight.run.cluster import Device


def preflight_rules() -> Sequence[RulePack]:
    """The packs of rules."""
    packs: Sequence[RulePack] = import_module("preflight.rules").packs()
    return packs


def preflight_dialects() -> Sequence[Dialect]:
    """The readers."""
    from preflight.dialects.megatron.lazy_dialect import Megatron
    from preflight.dialects.mindformers import MindFormersDialect
    from preflight.frontends.supported_front_ends import FRONT_ENDS

    return [Megatron(), MindFormersDialect(), *FRONT_ENDS]


def preflight_devices() -> Sequence[Device]:
    """The accelerators."""
    from preflight.run.cluster import devices

    return devices()


def preflight_reporters() -> Sequence[tuple[str, str]]:
    """The output formats."""
    own = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html", "statistics")
    return [(name, f"preflight.report.{name}:render") for name in own]
