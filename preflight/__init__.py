"""preflight checks training configs of large models before the job is queued. These are its public names."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing, types and importlib takes longer than printing the version
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

__version__ = "0.1.0"

_HOMES = {
    "check": "api",
    "check_command": "api",
    "check_text": "api",
    "diff": "api",
    "estimate_memory": "api",
    "estimate_step_time": "api",
    "Report": "checking.engine",
    "Finding": "source.finding",
    "Fix": "source.finding",
    "Edit": "source.finding",
    "Related": "source.finding",
    "Safety": "source.finding",
    "Severity": "source.finding",
    "Unverified": "source.finding",
    "InputError": "source.source_file",
    "Message": "source.finding",
    "Job": "job",
    "Plan": "run.training_plan",
    "Value": "run.value",
    "known": "run.value",
    "Device": "run.cluster",
    "Target": "run.request",
    "Request": "run.request",
    "rule": "lint.rule",
    "RulePack": "lint.rule",
    "collect": "lint.rule",
    "hookimpl": "plugins.hookspecs",
}
_MOVED = {
    "arguments": "run.arguments",
    "cluster": "run.cluster",
    "document": "loaders.document",
    "finding": "source.finding",
    "plan": "run.training_plan",
    "request": "run.request",
    "rule": "lint.rule",
    "search": "layouts",
    "value": "run.value",
}
"""Modules that plugins of 0.1 import, and the present modules of their names; to be removed in 0.3."""

__all__ = sorted([*_HOMES, "__version__"])

if TYPE_CHECKING:
    from preflight.api import check as check
    from preflight.api import check_command as check_command
    from preflight.api import check_text as check_text
    from preflight.api import diff as diff
    from preflight.api import estimate_memory as estimate_memory
    from preflight.api import estimate_step_time as estimate_step_time
    from preflight.checking.engine import Report as Report
    from preflight.job import Job as Job
    from preflight.lint.rule import RulePack as RulePack
    from preflight.lint.rule import collect as collect
    from preflight.lint.rule import rule as rule
    from preflight.plugins.hookspecs import hookimpl as hookimpl
    from preflight.run.cluster import Device as Device
    from preflight.run.request import Request as Request
    from preflight.run.request import Target as Target
    from preflight.run.training_plan import Plan as Plan
    from preflight.run.value import Value as Value
    from preflight.run.value import known as known
    from preflight.source.finding import Edit as Edit
    from preflight.source.finding import Finding as Finding
    from preflight.source.finding import Fix as Fix
    from preflight.source.finding import Message as Message
    from preflight.source.finding import Related as Related
    from preflight.source.finding import Safety as Safety
    from preflight.source.finding import Severity as Severity
    from preflight.source.finding import Unverified as Unverified
    from preflight.source.source_file import InputError as InputError


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"preflight.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Keeps a moved module that has the same name as a public name (`rule`) from taking the name's place when it is
    imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


class _MovedModules:
    """Finds the modules of `_MOVED` under their old names, with a warning.
    Called only for names that nothing else finds."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> Any:
        package, _, old = name.partition(".")
        if package != __name__ or old not in _MOVED:
            return None
        import warnings
        from importlib.machinery import ModuleSpec

        new = "layouts" if old == "search" else "plugin"
        warnings.warn(f"{name} moved: import from preflight or preflight.{new}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, cls())  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        from importlib import import_module

        home = import_module(f"preflight.{_MOVED[module.__name__.partition('.')[2]]}")
        module.__dict__["__getattr__"] = lambda name: getattr(home, name)


sys.modules[__name__].__class__ = _Package
sys.meta_path.append(_MovedModules)
