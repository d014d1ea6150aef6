"""Findings for refusals by the program's own source: the message, the places of the options, and the implied fix."""

from __future__ import annotations

from preflight.checking.fix_policy import implied_fix
from preflight.job import Job
from preflight.source.finding import Finding, Message, Related, Unverified
from preflight.source.source_file import Span
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.program.checkout.guarded_statements import Site
    from preflight.program.verdict import Refusal

PARSER = "argparse"
MOST_SHOWN = 4
MOST_TEXT = 400


def undecided_refusal(refusal: Refusal, job: Job) -> Unverified:
    """The facts that decide a refusal: the deciding one, or all that it depends on."""
    from preflight.program.values import parted

    parts: dict[str, object] = {"text": refusal_text(refusal), "place": str(refusal.place)}
    lost = (fact.partition(" ")[0] for fact in refusal.unless if fact.startswith("$"))
    unstated = tuple(dict.fromkeys(fact.removeprefix("$") if fact.startswith("$--") else fact for fact in lost))
    if unstated:
        because = Message("may be rejected, depending on {facts:and}: {text} ({place})", facts=unstated, **parts)
    elif len(refusal.unless) == 1 and parted(refusal.unless[0])[1]:
        because = Message("rejected unless {facts:and}: {text} ({place})", facts=refusal.unless, **parts)
    elif refusal.unless:
        names = tuple(dict.fromkeys(parted(fact)[0] for fact in refusal.unless))
        because = Message("may be rejected, depending on {facts:and}: {text} ({place})", facts=names, **parts)
    else:
        because = Message("may be rejected: {text} ({place})", **parts)
    return Unverified(because, job.start)


def refusal_text(refusal: Refusal) -> str:
    """The message of upstream, on one line."""
    return " ".join(refusal.message.split())[:MOST_TEXT] or refusal.error


def refusal_finding(refusal: Refusal, job: Job, site: Site | None) -> Finding:
    """A refusal at the option that causes it."""
    parsed = refusal.error == PARSER
    spans = _spans(refusal, job)
    text = refusal_text(refusal)
    if not refusal.message.strip() and site is not None and site.condition:
        text = " and ".join(sorted(site.condition))
    given = tuple(_shown(name, job) for name in refusal.reads if job.arguments.given(name) is not None)[:MOST_SHOWN]
    place = str(refusal.place) if refusal.place.file else "the program"
    if parsed:
        message = Message("the program's parser rejects the command: {text}", text=text)
    elif given:
        message = Message("{place} rejects the run: {text}; here {given:and}", place=place, text=text, given=given)
    else:
        message = Message("{place} rejects the run: {text}", place=place, text=text)
    first = next((value for name in refusal.reads if (value := job.arguments.given(name)) is not None), None)
    fix = implied_fix(site.condition, job.arguments) if site is not None else None
    return Finding(
        message,
        spans[0] if spans else job.start,
        related=tuple(Related(span, "read there") for span in spans[1:MOST_SHOWN]),
        fix=fix,
        key=first.key if first is not None else (),
        upstream=PARSER if parsed else (place if refusal.place.file else None),
    )


def _shown(name: str, job: Job) -> str:
    value = job.arguments.given(name)
    raw = value.raw if value is not None and value.known else "?"
    return job.arguments.spell(name) if raw is True else f"{job.arguments.spell(name)} {raw}"


def _spans(refusal: Refusal, job: Job) -> list[Span]:
    """The places of the arguments that the condition read; for the parser, the words that its message names."""
    values = (job.arguments.given(name) for name in refusal.reads)
    found = [value.setting.span for value in values if value is not None and value.setting is not None]
    if not found and refusal.error == PARSER:
        said = refusal.message.replace(",", " ").split()
        found = [word.span for word in job.arguments.words if (word.text or "").partition("=")[0] in said]
    return list(dict.fromkeys(found))
