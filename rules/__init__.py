"""preflight's own rules. They are found by walking this package, and use the same entry point as third-party rules."""

from __future__ import annotations

if __name__ != "preflight.rules":
    raise ImportError(f"import preflight.rules, not {__name__}: a second copy of every rule would be made")

from collections.abc import Sequence

from preflight.lint.rule import Checkable, RulePack

FRAMEWORKS = {
    "megatron": ("megatron", "megatron-yaml"),
    "mindspeed": ("mindspeed", "mindspeed-llm"),
    "mindformers": ("mindformers", "pynative"),
    "frontends": (
        "areal",
        "slime",
        "ms-swift",
        "verl",
        "nemo-rl",
        "mindspeed-rl",
        "megatron-bridge",
        "flagscale",
        "primus",
        "mcore-adapter",
        "mindspeed-llm-fsdp2",
        "mindspeed-mm",
        "skyrl",
    ),
}
"""Folder of rules → the frameworks whose runs load them."""


FAMILIES = {
    "launcher": "Checks of launcher options and their values.",
    "msrun_launcher": "Checks of launches with MindFormers' msrun_launcher.sh.",
}
"""Subjects of the pages that are shared by rule functions whose names begin alike."""


def _pack(package: str, frameworks: tuple[str, ...]) -> RulePack:
    def whole() -> tuple[Checkable, ...]:
        from importlib import import_module
        from pkgutil import iter_modules

        from preflight.lint.rule import collect

        names = [info.name for info in iter_modules(import_module(package).__path__, f"{package}.") if not info.ispkg]
        return tuple(rule for name in sorted(names) for rule in collect(import_module(name)))

    def deferred() -> tuple[Checkable, ...]:
        from preflight.lint.rule_registry import load

        return load(package)

    return RulePack(frameworks, whole, deferred)


def packs() -> Sequence[RulePack]:
    """The framework-independent rules, and one pack per framework."""
    return [
        _pack("preflight.rules", ()),
        *(_pack(f"preflight.rules.{folder}", frameworks) for folder, frameworks in FRAMEWORKS.items()),
    ]
