"""preflight rules: the list of rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from preflight.checking.request_validation import verify_facts
from preflight.cli import completion
from preflight.cli.app import OK
from preflight.cli.exit_handling import say
from preflight.cli.options import Lang
from preflight.lint.rule import Checkable
from preflight.lint.suppression import former
from preflight.lint.upstream_evidence import evidence
from preflight.report.rule_pages import (
    GENERATED,
    documented,
    finds,
    levels,
    pages,
    severities,
    translated_severities,
)
from preflight.report.upstream_check_coverage import coverage
from preflight.run.project_settings import SEVERITIES, Facts
from preflight.run.request import Target
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean
from preflight.source.translation import columns, local, padded
from preflight.source.writing import told, write_file

Framework = Annotated[
    str | None,
    typer.Option(
        "--framework",
        metavar="NAME",
        help="List only the rules of this framework.",
        autocompletion=completion.frameworks,
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]...", help="List only rules whose id or summary contains all of these words."),
]
Level = Annotated[
    str | None,
    typer.Option(
        "--severity",
        metavar="error|warning|note",
        help="List only rules of this severity.",
        autocompletion=completion.severities,
    ),
]
All = Annotated[bool, typer.Option("--all", help="List every rule.", show_default=False)]
Coverage = Annotated[
    bool,
    typer.Option(
        "--coverage", help="Print how many of the frameworks' own checks the rules cover.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)]
Missing = Annotated[
    bool,
    typer.Option(
        "--missing",
        help="With --coverage, also list the checks that have no rule and no recorded reason for that.",
        show_default=False,
    ),
]
WriteDocs = Annotated[
    Path | None,
    typer.Option(
        "--write-docs",
        metavar="FOLDER",
        help="Write a page for each topic, and a list of the rules, to this folder.",
        show_default=False,
    ),
]

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="FRAMEWORK@VERSION",
        help="List only checks that were added after this release.",
        autocompletion=completion.targets,
        show_default=False,
    ),
]


WIDTH = 100
"""Width of a line of the list, in columns."""
LONG_ID = 48
"""Width of the ids, in columns."""


def rules(
    words: Words = None,
    framework: Framework = None,
    severity: Level = None,
    every: All = False,
    since: Since = None,
    show_coverage: Coverage = False,
    missing: Missing = False,
    as_json: AsJson = False,
    write_docs: WriteDocs = None,
    lang: Lang = None,
) -> int:
    """List the rules, or write their pages.

    Without a filter, only the number of rules per framework is printed.
    """
    from preflight.plugins.manager import load

    loaded = load()
    if framework is not None:
        verify_facts(Facts(target=framework), loaded)
    found = _chosen(documented(loaded.rules(None)), words or (), framework, severity)
    if since is not None:
        verify_facts(Facts(target=since), loaded)
        say("".join(_newer(found, Target.parse(since))))
    elif write_docs is not None:
        _write(write_docs, pages(found))
    elif show_coverage:
        say(coverage((framework,) if framework else (), missing=missing))
    elif as_json:
        say(json.dumps([_row(rule) for rule in found], indent=2) + "\n")
    elif every or words or framework or severity:
        if not found:
            raise InputError(
                f"no rule matches {' and '.join(map(repr, words or ['this choice']))}; see `preflight rules`"
            )
        say("".join(_lines(found)))
    else:
        say(_counts(found))
    return OK


def _chosen(
    known: Sequence[Checkable], words: Sequence[str], framework: str | None, severity: str | None
) -> list[Checkable]:
    """The rules with all of the words, of a framework and of a severity. Raises InputError for an unknown severity."""
    if severity is not None and severity not in SEVERITIES:
        hint = did_you_mean(severity, SEVERITIES)
        raise InputError(f"--severity must be one of {', '.join(reversed(SEVERITIES))}, not {severity!r}{hint}")
    wanted = [word.lower() for word in words]
    return [
        rule
        for rule in known
        if framework is None or not rule.frameworks or framework in rule.frameworks
        if severity is None or severity in levels(rule)
        if all(word in _searched(rule) for word in wanted)
    ]


def _searched(rule: Checkable) -> str:
    """The text of a rule in which words are searched."""
    shown = finds(rule)
    return f"{rule.id} {' '.join(former(rule.id))} {rule.summary} {shown} {local(shown)}".lower()


def _lines(found: Sequence[Checkable]) -> Iterator[str]:
    """A line for each rule, with an example of its message, on the next line if it exceeds WIDTH columns."""
    width = min(max((len(rule.id) for rule in found), default=0), LONG_ID)
    for rule in found:
        head, found_by_it = f"{rule.id:<{width}}  {padded(translated_severities(rule), 7)}", local(finds(rule))
        if columns(head) + 2 + columns(found_by_it) <= WIDTH:
            yield f"{head}  {found_by_it}\n"
        else:
            yield f"{head.rstrip()}\n"
            yield from (f"    {line.rstrip()}\n" for line in _wrapped(found_by_it, WIDTH - 4))


def _wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text of a number of columns, broken after blanks and between Chinese characters."""
    line = ""
    for word in _WORDS.findall(text):
        if line and columns(line + word.rstrip()) > width:
            yield line
            line = ""
        line += word
    yield line


def _counts(found: Sequence[Checkable]) -> str:
    """How many rules each framework has, by severity, and how to list them."""
    names = sorted(
        {name for rule in found for name in rule.frameworks or (EVERY,)}, key=lambda name: (name == EVERY, name)
    )
    rows = [
        (name, [sum(str(r.severity) == level for r in found if name in (r.frameworks or (EVERY,))) for level in LEVELS])
        for name in names
    ]
    width = max(len(name) for name in names)
    heads = [padded(local(f"{level}s"), 8, right=True) for level in LEVELS]
    lines = [f"{padded(local('framework'), width)}  {'  '.join(heads)}"]
    lines += [f"{padded(local(name), width)}  {'  '.join(f'{n:>8}' for n in numbers)}" for name, numbers in rows]
    lines += ["", local(Message(_HOW_TO_LIST, number=len(found)))]
    return "".join(f"{line}\n" for line in lines)


_WORDS = lazy_pattern(r"[!-~]+ ?|.")
_HOW_TO_LIST = (
    "{number} rules. `preflight rules WORD` searches them, `--framework NAME` and `--severity LEVEL`\n"
    "filter them, `--all` lists all, `preflight explain RULE` prints the page of one."
)
LEVELS = tuple(reversed(SEVERITIES))
EVERY = "every framework"


def _newer(found: Sequence[Checkable], since: Target) -> Iterator[str]:
    """A line for each rule that a later release applies and this one does not, with those releases."""
    known = evidence(since.framework)
    if known is None or not known.releases:
        raise InputError(f"there is no list of the checks in each release of {since.framework}")
    releases = known.releases[known.number(since.version) + 1 :]
    later = [release for release in releases if any(known.held(rule.id, release) for rule in found)]
    newer = []
    for rule in found:
        if known.held(rule.id, since.version) is False:
            made = [at for at, release in enumerate(later) if known.held(rule.id, release)]
            newer += [(made[0], _span(later, made), rule)] if made else []
    first, width = (max(map(len, column), default=0) for column in ([n[1] for n in newer], [n[2].id for n in newer]))
    for _, span, rule in sorted(newer, key=lambda one: (one[0], one[2].id)):
        yield f"{span:<{first}}  {rule.id:<{width}}  {severities(rule):<7}  {rule.summary}\n"


def _span(later: Sequence[str], made: Sequence[int]) -> str:
    """The first release with a check, and the last one if newer releases dropped it."""
    if made[-1] == len(later) - 1:
        return later[made[0]]
    return f"{later[made[0]]} only" if made[0] == made[-1] else f"{later[made[0]]} to {later[made[-1]]}"


def _row(rule: Checkable) -> dict[str, object]:
    row = {"id": rule.id, "severity": str(rule.severity), "severities": list(map(str, levels(rule)))}
    return {**row, "frameworks": list(rule.frameworks), "summary": rule.summary}


def _generated(index: Path) -> bool:
    return index.is_file() and GENERATED in index.read_text(encoding="utf-8", errors="replace")


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Update a folder of pages; pages of removed rules are deleted."""
    if any(folder.rglob("*.md")) and not _generated(folder / "README.md"):
        raise InputError("contains files not written by preflight; name another folder", str(folder))
    with told(str(folder)):
        for old in folder.rglob("*.md"):
            if old.relative_to(folder).as_posix() not in texts:
                old.unlink()
        for name, text in texts.items():
            write_file(folder / name, text.encode("utf-8"), parents=True)
