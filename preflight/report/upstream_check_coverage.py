"""Measured coverage: how many of the frameworks' own checks the rules implement."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType

from preflight import schemas
from preflight.lint.rule import Checkable, Rule
from preflight.lint.upstream_evidence import evidence
from preflight.source.typing_without_import import Any

_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.py):(\d+)")
HOW = (
    "A check counts as covered if a rule that cites its upstream location reports a finding in an example that "
    "upstream rejects there."
)

OPEN = "open: "
"""How the kind of the checks that may be missing begins."""


def coverage(frameworks: Iterable[str] = (), *, missing: bool = False) -> str:
    """Per framework and version: the number of covered checks and the reasons for leaving others out. missing: also the
    checks for which no reason is recorded."""
    wanted = tuple(frameworks)
    lines = [HOW]
    for name, found in measured().items():
        if not wanted or name.partition("@")[0] in wanted:
            lines += ["", *_catalogue(name, found, missing)]
    for framework in dict.fromkeys(name.partition("@")[0] for name in measured()):
        if not wanted or framework in wanted:
            lines += _releases(framework)
    return "\n".join(lines) + "\n"


def _releases(framework: str) -> Iterator[str]:
    """Per known release: the number of checks in its sources, and how each is handled."""
    if (known := evidence(framework)) is None:
        return
    yield from ("", f"{framework}, from its source code, by release:")
    for release, found in known.decided().items():
        if not any(found):
            yield f"  {release}: only its options are known"
            continue
        yield (
            f"  {release}: {sum(found)} checks, {found[0]} with a rule, {found[1]} left out for a reason, "
            f"{found[2]} open"
        )


def _catalogue(name: str, found: dict[str, Any], missing: bool) -> Iterator[str]:
    checks, covered = found["checks"], found["covered"]
    reasons: dict[str, list[str]] = {}
    for place, why in found["not_covered"].items():
        reasons.setdefault(why, []).append(place)
    bare = reasons.pop("", [])
    excused = checks - covered - len(bare)
    yield (
        f"{name}: {covered} of {checks} covered ({100 * covered // checks}%), {excused} left out for a reason, "
        f"{len(bare)} not covered"
    )
    yield f"  {found['source']}"
    for why, places in reasons.items():
        yield f"  left out, {why}:"
        yield from (f"    {place}" for place in places)
    if listed := found.get("automatic"):
        yield from _automatic(name, listed, missing)
    if bare:
        yield f"  not covered{'' if missing else f': {len(bare)} (--missing lists them)'}"
        yield from (f"    {place}" for place in bare if missing)


def _automatic(name: str, counts: dict[str, int], missing: bool) -> Iterator[str]:
    """The checks that no person judged, by kind; optionally also the locations of the open ones."""
    yield f"  also listed automatically: {sum(counts.values())} checks (schemas/coverage/mindformers-automatic.json)"
    for kind, count in counts.items():
        is_open = kind.startswith(OPEN)
        yield f"    {count} {kind}{'; --missing lists them' if is_open and not missing else ''}"
        if is_open and missing:
            yield from (f"      {place}" for place in schemas.read("coverage/mindformers-automatic")[name][kind])


def measured() -> dict[str, dict[str, Any]]:
    """Framework@version → checks, covered, and place → reason of those that are not."""
    text = schemas.text("coverage/measured.json")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def mentioned(rule: Checkable) -> set[tuple[str, int]]:
    """Every upstream location that a rule refers to; for a rule function, those in the text of its module."""
    texts = list(rule.owned)
    if isinstance(rule, Rule):
        texts.append(text_of(rule))
    return {(match[1], int(match[2])) for text in texts for match in _PLACE.finditer(text)}


def text_of(rule: Rule) -> str:
    """The source of a rule function: its module if that contains only this rule, otherwise the function and the names
    of the module that it uses."""
    if not rule.paged:
        return inspect.getsource(sys.modules[rule.function.__module__])
    used = parts(rule)
    functions = (value for value in used.values() if inspect.isfunction(value) or inspect.isclass(value))
    constants = (f"{name} = {value!r}" for name, value in used.items() if name.isupper())
    return "\n".join([inspect.getsource(rule.function), *map(inspect.getsource, functions), *constants])


def parts(rule: Rule) -> dict[str, Any]:
    """Name → the names of its module that a rule function uses, directly or through functions that it calls."""
    module = vars(sys.modules[rule.function.__module__])
    found: dict[str, Any] = {}
    left = [rule.function.__code__]
    while left:
        code = left.pop()
        left += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for name in code.co_names:
            value = module.get(name)
            own = name.isupper() or getattr(value, "__module__", "") == rule.function.__module__
            if name not in found and value is not None and own:
                found[name] = value
                left += [value.__code__] if inspect.isfunction(value) else []
    return found
