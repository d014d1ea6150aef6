"""What `preflight fix` tells: a line for each change that the text has in the end, and in one line what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from preflight.fix.fixer import Outcome, State
from preflight.fix.prove_script import NOT_WRITTEN
from preflight.report.escapes import counted, plain
from preflight.report.style import Look
from preflight.source.finding import Severity
from preflight.source.language import joined, local

_WAYS: dict[State, str] = {
    "needs --unsafe": "with --unsafe",
    "needs a choice": "with --interactive",
    "needs --follow": "with --follow",
    "needs --select": "with --select RULE, as notes",
    "advice only": "by hand, as `preflight check` says",
    "not proven": "with a fix that cannot be proven",
    "no mechanical fix": "without a fix",
}


def distinct_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """One outcome where several runs read the same line."""
    found: dict[object, Outcome] = {}
    for outcome in outcomes:
        finding = outcome.finding
        place = (finding.rule, finding.path, finding.span.start, finding.message)
        if place not in found or outcome.state == "fixed":
            found[place] = outcome
    return list(found.values())


def outcome_lines(outcomes: Sequence[Outcome], style: Look, *, would: bool) -> Iterator[str]:
    """The lines about a call. would: nothing is written."""
    done = [outcome for outcome in outcomes if outcome.state == "fixed"]
    left = [outcome for outcome in outcomes if outcome.state != "fixed"]
    yield from (_line(outcome, style, would=would) for outcome in done)
    if style.quiet:
        return
    if done:
        number = len(done)
        yield local(f"{number} would be fixed." if would else f"{number} fixed.")
    elif not left:
        yield local("Nothing to fix.")
    if left:
        yield _left(left)


def _left(left: Sequence[Outcome]) -> str:
    """How much is left, and what can be done about it."""
    severities = Counter(outcome.finding.severity for outcome in left)
    much = joined([counted(severities[severity], str(severity)) for severity in Severity if severities[severity]], "")
    states = Counter(outcome.state for outcome in left)
    ways = joined([f"{states[state]} {words}" for state, words in _WAYS.items() if states[state]], "")
    following = [outcome for outcome in left if outcome.state == "needs --follow" or outcome.detail == NOT_WRITTEN]
    elsewhere = dict.fromkeys(f" {plain(local(outcome.detail))}." for outcome in following)
    return local(f"Left: {much} ({ways}); `preflight check` lists them.") + "".join(elsewhere)


def _line(outcome: Outcome, style: Look, *, would: bool) -> str:
    finding = outcome.finding
    at = outcome.place or finding.span.source.position(finding.span.start)
    place = style.paint(plain(f"{finding.path}:{at.line}:{at.column}"), "bold")
    state = style.paint(local("would be fixed" if would else "fixed"), "green")
    detail = f" ({plain(local(outcome.detail))})" if outcome.detail else ""
    rule = style.paint(f"[{plain(finding.rule)}]", "cyan")
    return f"{place}: {state}: {plain(local(finding.message))} {rule}{detail}"
