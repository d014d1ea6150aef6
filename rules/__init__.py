"""preflight's own rules, found by walking this package; they enter by the same entry point as anybody's."""

from __future__ import annotations

if __name__ != "preflight.rules":
    raise ImportError(f"import preflight.rules, not {__name__}: a second copy of every rule would be made")

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from preflight.rule import Checkable, RulePack, collect

_FRAMEWORKS = {"megatron": ("megatron",), "mindspeed": ("mindspeed", "mindspeed-llm"), "mindformers": ("mindformers", "pynative")}


def _load(package: str) -> tuple[Checkable, ...]:
    parent = import_module(package)
    names = [info.name for info in iter_modules(parent.__path__, f"{package}.") if not info.ispkg]
    return tuple(rule for name in sorted(names) for rule in collect(import_module(name)))


def packs() -> Sequence[RulePack]:
    """The neutral rules, and a pack per framework."""
    found = [RulePack((), lambda: _load("preflight.rules"))]
    for folder, frameworks in _FRAMEWORKS.items():
        found.append(RulePack(frameworks, lambda folder=folder: _load(f"preflight.rules.{folder}")))  # type: ignore[misc]
    return found
