"""Checks a run against the source of a program that reads a configuration file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from preflight.job import Job, Judged, Refused
from preflight.loaders.document import Node
from preflight.run.request import Request
from preflight.source.finding import Finding, Message, Related, Unverified
from preflight.source.resolved_words import Unknown
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.program.checkout.guarded_statements import Site
    from preflight.program.verdict import Place, Refusal


NEVER_SURE = frozenset(["AttributeError", "NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError"])
"""Errors that unread code may cause: they do not refuse a run."""
MOST_SHOWN, MOST_TEXT = 3, 400


def reads_configurations(job: Job) -> bool:
    """Whether the script of the run's program reads a configuration file, and the file is of one kind."""
    from preflight.program.judge import OF_ANOTHER_START, READS_CONFIGURATIONS

    tree = job.arguments.tree
    mixed = tree is not None and any(tree.get(name) is not None for name in OF_ANOTHER_START)
    return job.target.framework in READS_CONFIGURATIONS and not mixed


def judged_configuration(
    job: Job, *, tree: Node, request: Request, roots: Sequence[str], site: Callable[[Place, Sequence[str]], Site | None]
) -> Judged:
    """The verdict of the source about a run: a certain refusal; any other result leaves the findings of the rules
    unchanged."""
    from preflight.program import judge
    from preflight.program.verdict import Machine, Program

    content = _valued(tree.plain())
    if not isinstance(content, dict) or not roots:
        return Judged("unread", complete=False)
    count = job.cluster.count
    world = count.raw if count.known and isinstance(count.raw, int) else None
    program = Program(job.target.framework, tuple(roots))
    try:
        verdict = judge.judge(
            program, (), env={}, world_size=world, machine=Machine(dict(request.machine)), config=content
        )
    except Exception:  # a construct that the interpreter fails at leaves the program unread
        return Judged("unread", complete=False)
    certain = next((one for one in verdict.refusals if one.certain), None) if verdict.outcome == "refuses" else None
    if certain is None or certain.error in NEVER_SURE:
        if verdict.outcome not in ("refuses", "unread"):
            return Judged(verdict.outcome, complete=False)
        why = verdict.why or (f"{certain.error}: {certain.message} ({certain.place})" if certain is not None else "")
        said = (Unverified(Message("the source could not be read: {why}", why=why[:MOST_TEXT])),) if why else ()
        return Judged("unread", said, complete=False)
    place, statement = certain.place, certain.statement or getattr(site(certain.place, roots), "hash", "")
    refused = Refused(place.file, place.line, place.end, statement, certain.reads)
    return Judged("refuses", (_finding(certain, job),), refused)


def _valued(value: object) -> object:
    """A configuration whose unknown parts are represented as the interpreter expects."""
    if isinstance(value, Unknown):
        from preflight.program.values import Unknown as Open

        return Open((value.because or "the configuration",))
    if isinstance(value, dict):
        return {key: _valued(inner) for key, inner in value.items()}
    return [_valued(inner) for inner in value] if isinstance(value, list) else value


def _finding(refusal: Refusal, job: Job) -> Finding:
    """A refusal at the key that causes it."""
    named = list(_named(refusal.reads, job))[:MOST_SHOWN]
    values = [job.arguments.written[name] for name in named]
    spans = list(dict.fromkeys(value.setting.span for value in values if value.setting is not None))
    key = values[0].key if values else None
    text = " ".join(refusal.message.split())[:MOST_TEXT] or refusal.error
    return Finding(
        Message("{place} rejects the run: {text}", place=str(refusal.place), text=text),
        spans[0] if spans else job.start,
        related=tuple(Related(span, "read there") for span in spans[1:]),
        key=key or (),
        upstream=str(refusal.place),
    )


def _named(reads: Iterable[str], job: Job) -> Iterator[str]:
    """The settings whose last name part was read, most recent first; a name shared by several settings is skipped."""
    found: dict[str, list[str]] = {}
    for name in job.arguments.written:
        found.setdefault(name.rpartition(".")[2], []).append(name)
    for read in reads:
        if len(names := found.get(read) or []) == 1:
            yield names[0]
