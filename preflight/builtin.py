"""preflight's own dialects, devices, reporters and rules, through the same entry point as anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from preflight.hookspecs import hookimpl

if TYPE_CHECKING:
    from preflight.cluster import Device
    from preflight.dialects import Dialect
    from preflight.rule import RulePack


@hookimpl
def preflight_rules() -> Sequence[RulePack]:
    packs: Sequence[RulePack] = import_module("preflight.rules").packs()
    return packs


@hookimpl
def preflight_dialects() -> Sequence[Dialect]:
    from preflight.dialects.megatron.front import Megatron
    from preflight.dialects.mindformers import MindFormersDialect

    return [Megatron(), MindFormersDialect()]


@hookimpl
def preflight_devices() -> Sequence[Device]:
    from preflight.devices import devices

    return devices()


@hookimpl
def preflight_reporters() -> Sequence[tuple[str, str]]:
    own = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html", "statistics")
    return [(name, f"preflight.report.{name}:render") for name in own]
