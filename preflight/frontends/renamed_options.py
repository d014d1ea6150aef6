"""Options of a front end that have another name in the stated release, or that were removed and are set to their
default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from preflight import schemas
from preflight.dialects.megatron.options import Flag
from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end import SAID, UNREAD, FrontEnd, data
from preflight.frontends.options_by_release import at_release
from preflight.loaders.document import Problem, Word
from preflight.loaders.shell.edit_ranges_and_comments import removal, widened
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.source_file import Span

NOTHING = frozenset({"None", "null", "none"})


def with_moves(front_end: FrontEnd, faults: Iterable[Problem], words: Sequence[Word] = ()) -> Iterator[Problem]:
    """The faults of a run; an option of other releases gets its name in this one, or is removed if it is set to its
    default. words: those of a launch."""
    by_start = {(word.span.path, word.span.start): at for at, word in enumerate(words)}
    for fault in faults:
        if fault.kind != UNREAD or not fault.in_use or not front_end.stated:
            yield fault
        elif name := moved_to(front_end, _option(fault)):
            yield _renamed(front_end, fault, name)
        else:
            at = by_start.get((fault.span.path, fault.span.start))
            yield fault if at is None else _removed(front_end, fault, words[at:])


def moved_to(front_end: FrontEnd, option: str) -> str:
    """The name in this release of an option of an older one, "" if it has none."""
    return names_since(front_end.name, front_end.release).get(_spelt(front_end.name, option), "")


@cache
def names_since(front_end: str, release: str) -> dict[str, str]:
    """Key of an older release → its name in this one. The table lists them by the first described release with the new
    names."""
    table: dict[str, dict[str, str]] = schemas.read("frontends/moved").get(front_end, {})
    return {
        old: new for since, names in table.items() if numbers(since) <= numbers(release) for old, new in names.items()
    }


def _option(fault: Problem) -> str:
    typed = fault.span.text.partition("=")[0]
    return typed if typed.startswith("--") else f"--{typed}"


def _spelt(front_end: str, option: str) -> str:
    """An option in the spelling of the tables."""
    return f"--{option[2:].replace('-', '_')}" if data(front_end).get("dashes") else option


def _renamed(front_end: FrontEnd, fault: Problem, name: str) -> Problem:
    typed = fault.span.text.partition("=")[0]
    shown = name if typed.startswith("--") else name.removeprefix("--")
    hint = Message("; it is now {near}", near=shown)
    span = Span(fault.span.source, fault.span.start, fault.span.start + len(typed))
    return fault._replace(
        message=Message(SAID[front_end.unread], front_end=front_end.keys.label, key=typed, hint=hint),
        fix=(Message("write {near}", near=shown), span, shown),
        keys=(typed, shown) if shown == name else (typed,),
        safe=shown == name,
    )


def _removed(front_end: FrontEnd, fault: Problem, words: Sequence[Word]) -> Problem:
    """The removal of an option whose typed value is its default in every release that has it."""
    option, joined, value = (words[0].text or "").partition("=")
    last = words[0] if joined else next(iter(words[1:]), None)
    following = words[1:] if joined else words[2:]
    alone = not following or (following[0].text or "").startswith("--")
    if last is None or last.text is None or not alone or any(not one.editable or one.maybe for one in (words[0], last)):
        return fault
    flags = list(_flags(front_end, option))
    if not flags or not all(_is_default(flag, value if joined else last.text) for flag in flags):
        return fault
    span = _together(words[0], last)
    if span is None:
        return fault
    title = Message("remove {key}, which is set to its default", key=option)
    return fault._replace(fix=(title, span, ""), keys=(option,), safe=True)


def _together(first: Word, last: Word) -> Span | None:
    """The text to delete for two adjacent words."""
    source, begin, end = first.span.source, widened(first.span), widened(last.span)
    if last.span.source is not source or source.text[begin.end : end.start].replace("\\\n", "").strip():
        return None
    return removal(source, Span(source, begin.start, end.end))


def _flags(front_end: FrontEnd, option: str) -> Iterator[Flag]:
    """The rows of an option in the described releases that have it."""
    table = data(front_end.name)["release"]
    for release in (*contracts(front_end.name), table):
        keys = front_end._replace(own=None, release=table) if release == table else at_release(front_end, release)
        if (flag := keys.keys.options.get(_spelt(front_end.name, option))) is not None:
            yield flag


def _is_default(flag: Flag, text: str) -> bool:
    if flag.switch:
        return False
    return text in NOTHING if flag.default is None else text.lower() == str(flag.default).lower()
