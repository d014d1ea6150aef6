"""Human decisions about checks, and open decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflight.lint.defect_rules import Defect
from upstream.behaviour import Behaviour
from upstream.described import Checks, kept
from upstream.documents import spans
from upstream.evidence import held, only_wider, read_exactly
from upstream.extraction import scoped
from upstream.follow import Line
from upstream.grouped import grouped

HUMAN = ("sites", "rules", "same", "stands", "within", "covers")
"""The parts written by hand: site → why no rule covers it; rule → why it has no site; site → hashes that mean the same
as the statement from which a rule was written; rule → site that it covers → releases at which it was read; rule → first
and last release to which it is limited, and why; rule → rules of other releases that refuse everything that it
refuses."""
TOGETHER = ("groups", "reported", "older")
"""Optional parts written by hand. If many sites share one reason: name → why, how it is recognized, and where; rule →
the sites whose faults it reports although it has no evidence. For releases of which otherwise only the options are
described: rule → those that refuse the same in other words, and where."""


def read(path: Path) -> dict[str, Any]:
    """The human decisions, or an empty document."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    together = {name: known[name] for name in TOGETHER if known.get(name)}
    return {name: known.get(name, {}) for name in HUMAN} | together


def with_ids(decided: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """The decisions, with the present ids of sites. renamed: former id → present id."""
    found = dict(decided)
    for name in ("sites", "same"):
        rows = {id: value for id, value in found[name].items() if id not in renamed}
        for old, value in ((old, found[name][old]) for old in renamed if old in found[name]):
            new = renamed[old]
            rows[new] = sorted({*rows.get(new, ()), *value}) if name == "same" else rows.get(new, value)
        found[name] = rows
    found["stands"] = {rule: _joined(sites, renamed) for rule, sites in found["stands"].items()}
    if "reported" in found:
        found["reported"] = {
            rule: list(dict.fromkeys(renamed.get(id, id) for id in ids)) for rule, ids in found["reported"].items()
        }
    return found


def _joined(sites: Mapping[str, Sequence[str]], renamed: Mapping[str, str]) -> dict[str, list[str]]:
    """Site → the releases at which it was read; sites that have become one are combined."""
    found: dict[str, list[str]] = {}
    for id, read in sites.items():
        known = found.setdefault(renamed.get(id, id), [])
        known += [name for name in read if name not in known]
    return found


def decisions_document(
    checks: Checks, decided: Mapping[str, Any], rules: Sequence[Any], told: Behaviour | None = None
) -> dict[str, Any]:
    """The decisions, and open cases: sites without a rule, rules without a site, reworded sites.

    rules: those that could have a site only here. told: the
    verdicts of the releases' programs.
    """
    undecided = _undecided(checks, decided)
    by_group = grouped(undecided, checks.lines, decided.get("groups", {}), lambda site: scoped(checks.framework, site))
    sites = {
        line.id: [
            spans(checks.number(number) for number, site in line.places.items() if scoped(checks.framework, site)),
            shown(line),
        ]
        for line in undecided
        if line.id not in by_group
    }
    upheld = {rule.id for rule in rules if not isinstance(rule, Defect)}  # a defect is not a check of upstream
    without = sorted(upheld - set(checks.mapped.rules) - set(decided["rules"]))
    missing = [
        f"{place.rule} {place.file}:{place.line} {place.release}".rstrip()
        for place in checks.mapped.missing
        if place.rule not in decided["rules"]
    ]
    found: dict[str, Any] = {
        "sites": dict(sorted(sites.items(), key=lambda item: str(item[1][1]))),
        "rules": without,
        "places": sorted(missing),
        "reworded": _reworded(checks, decided, told),
        "versions": contradicted(checks, rules, decided),
        "wider": _wider(checks, decided, told),
    }
    machine = {"sites by group": by_group} if by_group else {}
    return {**decided, **machine, **{f"open {name}": value for name, value in found.items()}}


def _undecided(checks: Checks, decided: Mapping[str, Any]) -> list[Line]:
    """The checks on the path of a config without a rule and without a recorded reason."""
    reported = {id for ids in decided.get("reported", {}).values() for id in ids}
    known = checks.owners().keys() | decided["sites"].keys() | reported
    return [
        line
        for line in checks.wanted()
        if line.id not in known and any(scoped(checks.framework, site) for site in line.places.values())
    ]


def contradicted(checks: Checks, rules: Sequence[Any], decided: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Rule → the releases at which it was read that have its check although the rule excludes them, and vice versa. If
    the evidence decides, only for rules that name releases themselves."""
    lines = checks.by_id
    found: dict[str, list[list[str]]] = {}
    names = [release.name for release in checks.releases]
    read_at = {name for name in checks.framework.read_at if name[:1].isdigit()}

    def limited(rule: str) -> set[str]:
        within = kept(checks.framework, decided["within"].get(rule), map(checks.number, range(len(names))))
        return {name for number, name in enumerate(names) if checks.number(number) in within}

    for rule in rules:
        evidence = checks.mapped.rules.get(rule.id)
        if (
            evidence is None
            or all(lines[id].last.kind == "text" for id in evidence.sites)
            or rule.id in decided["rules"]
        ):
            continue
        if checks.framework.decides and not getattr(rule, "versions", ""):
            continue
        sure = {names[number] for number in held(evidence, lines, decided["same"])[0]} & limited(rule.id)
        meant = {name for name in read_at if rule.concerns({checks.framework.name: name})}
        left = [sorted(sure & read_at - meant), sorted(meant - sure)]
        found |= {rule.id: left} if left[0] or left[1] else {}
    return dict(sorted(found.items()))


def shown(line: Line) -> str:
    """The current or last location of a line."""
    return f"{line.last.file}:{line.last.line} {line.last.function}"


def _reworded(checks: Checks, decided: Mapping[str, Any], told: Behaviour | None) -> dict[str, Any]:
    """Site → hash → releases in which a rule's site differs from what was read, and no program decides."""
    lines, read = checks.by_id, _hashes(checks)
    found: dict[str, dict[str, set[int]]] = {}
    others = read_exactly(checks.mapped.rules, lines, decided["same"])
    for rule, evidence in checks.mapped.rules.items():
        doubted = held(evidence, lines, decided["same"], others)[1]
        for number in sorted(_untold(checks, rule, decided, told, doubted)):
            for id in evidence.sites:
                site = lines[id].places.get(number)
                if site is not None and site.hash not in read[id] and site.hash not in decided["same"].get(id, ()):
                    found.setdefault(id, {}).setdefault(site.hash, set()).add(checks.number(number))
    return {id: {hash: spans(numbers) for hash, numbers in hashes.items()} for id, hashes in sorted(found.items())}


def _wider(checks: Checks, decided: Mapping[str, Any], told: Behaviour | None) -> dict[str, Any]:
    """Rule → the releases in which its condition is weaker than in the release where it was read, and for which no
    other rule was written: the verdict still applies, but the message and the fix may not."""
    lines, rules = checks.by_id, checks.mapped.rules
    others = read_exactly(rules, lines, decided["same"])
    found = {
        rule: _untold(checks, rule, decided, told, only_wider(evidence, lines, decided["same"], others))
        for rule, evidence in rules.items()
    }
    return {rule: spans(map(checks.number, numbers)) for rule, numbers in found.items() if numbers}


def _untold(
    checks: Checks, rule: str, decided: Mapping[str, Any], told: Behaviour | None, followed: Iterable[int]
) -> set[int]:
    """The followed releases to which a rule is limited by hand and whose programs do not show whether it holds."""
    within = kept(checks.framework, decided["within"].get(rule), range(len(checks.framework.releases)))
    return {
        number
        for number in followed
        if checks.number(number) in within and (told is None or not told.answers(rule, checks.releases[number].name))
    }


def _hashes(checks: Checks) -> dict[str, set[str]]:
    """Site → the hashes at which any of its rules was read."""
    found: dict[str, set[str]] = {}
    for evidence in checks.mapped.rules.values():
        for id, hashes in evidence.sites.items():
            found.setdefault(id, set()).update(hashes)
    return found
