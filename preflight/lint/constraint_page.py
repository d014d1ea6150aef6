"""The documentation page of a declared constraint: its condition in English, its reason, its source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from preflight.lint.condition_in_words import Spell, as_typed, refusal
from preflight.lint.expressions import Expression
from preflight.lint.upstream_evidence import found_places
from preflight.source.finding import Severity
from preflight.source.typing_without_import import Any, Protocol


class Declared(Protocol):
    """The text of a page about a declared constraint."""

    @property
    def id(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def refuse(self) -> Expression: ...
    @property
    def framework(self) -> str: ...
    @property
    def versions(self) -> str: ...
    @property
    def upstream(self) -> str | Mapping[str, str]: ...
    @property
    def severity(self) -> str: ...
    @property
    def also(self) -> tuple[str, ...]: ...
    @property
    def fixes(self) -> tuple[Any, ...]: ...


SAFE = "Safe: the fix does not change the training result."
UNSAFE = "Unsafe: the fix may change the batch size, the loss curve or the speed of the run."
_REPORTED = {Severity.ERROR: "an error", Severity.WARNING: "a warning", Severity.NOTE: "a note"}
_BOUNDS = {">=": "{} and later", ">": "after {}", "<": "before {}", "<=": "up to {}", "==": "{} only"}
_NAMES = {
    "megatron": "Megatron",
    "mindspeed": "MindSpeed",
    "mindspeed-llm": "MindSpeed-LLM",
    "mindformers": "MindFormers",
}


def _named(framework: str) -> str:
    """The name of a framework in prose."""
    return _NAMES.get(framework, framework)


def page(constraint: Declared, spell: Spell = as_typed, example: Mapping[str, str] | None = None) -> str:
    """Markdown with the headings of every rule page. spell: names of arguments. example: a run with the finding and one
    without, from schemas/examples.
    """
    lines = [re.sub(r"\{([A-Za-z_][\w.]*)\}", r"‹\1›", constraint.message), ""]
    lines += [
        "## What it does",
        f"Reports {_REPORTED[Severity(constraint.severity)]} if {refusal(constraint.refuse, spell)}",
        "",
    ]
    why = constraint.why[:1].upper() + constraint.why[1:]
    lines += ["## Why is this bad?", why if why.endswith(".") else f"{why}.", ""]
    if example:
        lines += [*_example(example), ""]
    if constraint.fixes:
        safe = constraint.fixes[0].safety == "safe"
        lines += [
            "## Fix safety",
            SAFE if safe else UNSAFE,
            "",
        ]
    if releases := _releases(constraint):
        lines += ["## Releases", releases, ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "## References", *_references(constraint)]))


def _example(example: Mapping[str, str]) -> Iterator[str]:
    yield "## Example"
    if around := example.get("around", ""):
        yield f"{_around(around)}:"
    yield from _block(example["found"])
    if message := example.get("message"):
        yield "preflight reports:"
        yield ""
        yield f"> {message}"
        yield ""
    if silent := example.get("silent"):
        yield "Use instead:"
        yield from _block(silent)
    else:
        names = [f"`{name}`" for name in example["dropped"].split()]
        kind = "options" if names[0].startswith("`--") else "settings"
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        yield f"Use instead: the same {kind} without {listed}."


def _around(text: str) -> str:
    """The release and the devices of an example: "in megatron 0.18.0, with 2 devices" → "With Megatron 0.18.0 on 2
    devices"."""
    release, _, devices = text.partition(", ") if text.startswith("in ") else ("", "", text)
    devices = re.sub(r"^with (\d+ devices?)$", r"on \1", devices)
    devices = re.sub(r"^with (\d+) (devices?), on (\w+)$", r"on \1 \3 \2", devices)
    framework, _, number = release.removeprefix("in ").partition(" ")
    said = " ".join(filter(None, [f"with {_named(framework)} {number}".strip() if release else "", devices]))
    return f"{said[:1].upper()}{said[1:]}"


def _block(text: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}".rstrip() for line in text.splitlines())
    yield ""


def _releases(constraint: Declared) -> str:
    """The releases in which it applies, in words."""
    bounds = {}
    for bound in filter(None, constraint.versions.split(",")):
        operator, release = re.fullmatch(r"\s*(?:(>=|<=|==|>|<)\s*)?(\S+)\s*", bound).groups()  # type: ignore[union-attr]
        bounds[operator or "=="] = release
    if bounds.keys() == {">=", "<"}:
        found = [f"from {bounds['>=']} up to, but not including, {bounds['<']}"]
    else:
        found = [_BOUNDS[operator].format(release) for operator, release in bounds.items()]
    return f"Applies to {_named(constraint.framework)} {', '.join(found)}." if found else ""


def _references(constraint: Declared) -> Iterator[str]:
    name = _named(constraint.framework)
    places = {"": constraint.upstream} if isinstance(constraint.upstream, str) else constraint.upstream
    for version, place in places.items():
        if place:
            yield f"* {name}{_at(version, constraint.framework)}: `{place}`"
    yield from (f"* {name}: `{place}`" for place in constraint.also)
    found = found_places(constraint.framework, constraint.id)
    declared = {*places.values(), *constraint.also}
    yield from (f"* {name} {release}: `{place}`" for place, release in found.items() if place not in declared)
    if not any(places.values()) and not constraint.also and not found:
        yield f"* {name} does not check this."


def _at(version: str, framework: str) -> str:
    if not version or version == framework:
        return ""
    return f" {version}" if version[:1].isdigit() else f" ({version})"
