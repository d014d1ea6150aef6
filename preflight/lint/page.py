"""The documentation page of a declared constraint, written from its entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from preflight.lint.evidence import found_places
from preflight.lint.expressions import Expression
from preflight.lint.sentences import Spell, as_typed, refusal
from preflight.source.finding import Severity


class Declared(Protocol):
    """What a page says of a declared constraint."""

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


_VERBS = {Severity.ERROR: "Refuses", Severity.WARNING: "Warns about", Severity.NOTE: "Points at"}
_BOUNDS = {">=": "from {} on", ">": "after {}", "<": "before {}", "<=": "up to {}", "==": "{} only"}


def page(constraint: Declared, spell: Spell = as_typed, example: Mapping[str, str] | None = None) -> str:
    """Markdown with the headings that every rule's page has.

    spell: how arguments are named. example: a run that is found and one that is not, as schemas/examples has them.
    """
    lines = [re.sub(r"\{([A-Za-z_][\w.]*)\}", r"‹\1›", constraint.message), ""]
    lines += ["## What it does", f"{_VERBS[Severity(constraint.severity)]} {refusal(constraint.refuse, spell)}", ""]
    why = constraint.why[:1].upper() + constraint.why[1:]
    lines += ["## Why is this bad?", why if why.endswith(".") else f"{why}.", ""]
    if example:
        lines += [*_example(example), ""]
    if constraint.fixes:
        safe = constraint.fixes[0].safety == "safe"
        lines += [
            "## Fix safety",
            "Safe: the training result stays the same." if safe else "Unsafe: the fix changes what is run.",
            "",
        ]
    if releases := _releases(constraint):
        lines += ["## Releases", releases, ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "## References", *_references(constraint)]))


def _example(example: Mapping[str, str]) -> Iterator[str]:
    yield "## Example"
    if around := example.get("around", ""):
        yield f"{around[:1].upper()}{around[1:]}:"
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
        names = " and ".join(f"`{name}`" for name in example["dropped"].split())
        yield f"Use instead: the same without {names}."


def _block(text: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}".rstrip() for line in text.splitlines())
    yield ""


def _releases(constraint: Declared) -> str:
    """In which releases it holds, in words."""
    found = []
    for bound in filter(None, constraint.versions.split(",")):
        operator, release = re.fullmatch(r"\s*(?:(>=|<=|==|>|<)\s*)?(\S+)\s*", bound).groups()  # type: ignore[union-attr]
        found.append(_BOUNDS[operator or "=="].format(release))
    return f"{constraint.framework}: {', '.join(found)}." if found else ""


def _references(constraint: Declared) -> Iterator[str]:
    places = {"": constraint.upstream} if isinstance(constraint.upstream, str) else constraint.upstream
    for version, place in places.items():
        if place:
            yield f"* {constraint.framework}{_at(version, constraint.framework)}: `{place}`"
    yield from (f"* {constraint.framework}: `{place}`" for place in constraint.also)
    found = found_places(constraint.framework, constraint.id)
    declared = {*places.values(), *constraint.also}
    yield from (
        f"* {constraint.framework} {release}: `{place}`" for place, release in found.items() if place not in declared
    )
    if not any(places.values()) and not constraint.also and not found:
        yield f"* {constraint.framework} itself does not check it"


def _at(version: str, framework: str) -> str:
    if not version or version == framework:
        return ""
    return f" {version}" if version[:1].isdigit() else f" ({version})"
