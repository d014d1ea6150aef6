"""From what an interpretation noted to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.program.facts import FILES
from preflight.program.interpreter import Interpreter
from preflight.program.options import ParserError
from preflight.program.values import OPAQUE_VALUES, Raised, Unknown, Value
from preflight.program.verdict import Place, Refusal, Remark, Rewrite, Verdict

PARSER = "argparse"
MESSAGE = 2000


def conclude(
    run: Interpreter,
    stages: Sequence[str],
    raised: Raised | None,
    initial: Mapping[str, Value],
    given: Sequence[str],
) -> Verdict:
    """The verdict of one run. raised: what ended it; initial: the arguments as they were parsed."""
    refusals = [
        refusal(one.raised, one.cause, run.stage_of.get(id(one), one.stage), given)
        for one in run.notes
        if one.raised.sure
    ]
    why = "; ".join(f"{what} ({place})" for what, place in list(run.gaps.items())[:5])
    if raised is not None and raised.sure:
        refusals.append(refusal(raised, Unknown(), run.stage, given)._replace(certain=True))
        outcome = "refuses"
    elif raised is not None:
        why = why or f"{type(raised.error).__name__}: {raised} ({raised.place})"
        outcome = "unread"
    else:
        left_open = [one for one in refusals if set(one.unless) != {FILES}]
        outcome = "may refuse" if left_open else "unread" if run.gaps else "accepts"
    values = {
        name: value
        for name, value in (run.arguments or {}).items()
        if not isinstance(value, OPAQUE_VALUES) and not _partly_unknown(value)
    }
    return Verdict(
        outcome,  # type: ignore[arg-type]
        tuple(_distinct(refusals)),
        tuple(_rewrites(run, initial)),
        tuple(Remark(text, place) for text, place in dict.fromkeys(run.remarks)),
        values,
        tuple(sorted(run.sources.asked)),
        why if outcome in ("unread", "may refuse") else "",
        tuple(stages),
        frozenset(run.entered),
    )


def refusal(raised: Raised, cause: Unknown, stage: str, given: Sequence[str]) -> Refusal:
    """One refusal in words."""
    error = raised.error
    name = PARSER if isinstance(error, ParserError) else type(error).__name__
    explicit = {option: at for at, option in enumerate(given)}
    reads = sorted(raised.reads, key=lambda one: -explicit.get(one, -1))
    unless = tuple(sorted(cause.facts or cause.gaps))
    return Refusal(raised.place, name, str(error)[:MESSAGE], tuple(reads), False, unless, "", stage)


def _distinct(refusals: list[Refusal]) -> list[Refusal]:
    found: dict[tuple[Place, bool], Refusal] = {}
    for one in refusals:
        found.setdefault((one.place, one.certain), one)
    return list(found.values())


def _partly_unknown(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, OPAQUE_VALUES) for one in value)
    return isinstance(value, dict) and any(isinstance(one, OPAQUE_VALUES) for one in value.values())


def _rewrites(run: Interpreter, initial: Mapping[str, Value]) -> list[Rewrite]:
    found = []
    for name, place in run.writes.items():
        if name not in initial or run.arguments is None or name not in run.arguments:
            continue
        before, after = initial[name], run.arguments[name]
        if isinstance(after, OPAQUE_VALUES) or (type(before) is type(after) and before == after):
            continue
        found.append(Rewrite(name, before, after, place))
    return found
