"""preflight checks training configs of large models before the job is queued. These are its public names."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "check": "api",
    "check_command": "api",
    "check_text": "api",
    "estimate_memory": "api",
    "Report": "engine",
    "Finding": "finding",
    "Fix": "finding",
    "Edit": "finding",
    "Related": "finding",
    "Safety": "finding",
    "Severity": "finding",
    "Unverified": "finding",
    "InputError": "source",
    "Job": "job",
    "Plan": "plan",
    "Value": "value",
    "known": "value",
    "Device": "cluster",
    "Target": "request",
    "Request": "request",
    "rule": "rule",
    "RulePack": "rule",
    "collect": "rule",
    "hookimpl": "hookspecs",
}
__all__ = sorted([*_HOME, "__version__"])

if TYPE_CHECKING:
    from preflight.api import check as check
    from preflight.api import check_command as check_command
    from preflight.api import check_text as check_text
    from preflight.api import estimate_memory as estimate_memory
    from preflight.cluster import Device as Device
    from preflight.engine import Report as Report
    from preflight.finding import Edit as Edit
    from preflight.finding import Finding as Finding
    from preflight.finding import Fix as Fix
    from preflight.finding import Related as Related
    from preflight.finding import Safety as Safety
    from preflight.finding import Severity as Severity
    from preflight.finding import Unverified as Unverified
    from preflight.hookspecs import hookimpl as hookimpl
    from preflight.job import Job as Job
    from preflight.plan import Plan as Plan
    from preflight.request import Request as Request
    from preflight.request import Target as Target
    from preflight.rule import RulePack as RulePack
    from preflight.rule import collect as collect
    from preflight.rule import rule as rule
    from preflight.source import InputError as InputError
    from preflight.value import Value as Value
    from preflight.value import known as known


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"preflight.{_HOME[name]}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Keeps a submodule that is called like a public name (`rule`) from taking the name's place when it is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
