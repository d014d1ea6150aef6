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
    """The name in this release of an option of another one, "" if it has none."""
    spelt = _spelt(front_end.name, option)
    return names_since(front_end.name, front_end.release).get(spelt, "") or _of_same_argument(front_end, spelt)


def _of_same_argument(front_end: FrontEnd, option: str) -> str:
    """The only option of this release that sets the argument of an option that it lacks: in the nearest release with
    that option, it alone sets the argument, and it takes the same values."""
    near = numbers(front_end.release)
    releases = sorted((*contracts(front_end.name), data(front_end.name)["release"]), key=numbers)
    older = [one for one in reversed(releases) if numbers(one) < near]
    for release in (*older, *(one for one in releases if numbers(one) > near)):
        options = _at(front_end, release).keys.options
        if (flag := options.get(option)) is not None:
            alone = _setting(flag.dest, options.values()) == [option]
            here = front_end.keys.options
            now = [name for name in _setting(flag.dest, here.values()) if _takes_the_same(here[name], flag)]
            return now[0] if alone and len(now) == 1 else ""
    return ""


def _setting(dest: str, flags: Iterable[Flag]) -> list[str]:
    """The options that set an argument, without those that only switch it off and other spellings."""
    return list(dict.fromkeys(flag.option for flag in flags if flag.dest == dest and flag.kind != "false"))


def _takes_the_same(flag: Flag, other: Flag) -> bool:
    return (flag.kind, flag.nargs, flag.choices) == (other.kind, other.nargs, other.choices)


@cache
def names_since(front_end: str, release: str) -> dict[str, str]:
    """Key of an older release → its name in this one; `--option=value` → "" if the release always does what the value
    asks for. The table lists them by the first described release with the new names."""
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
    """The removal of an option whose typed value is its default in every release that has it, or what this release
    always does."""
    option, joined, value = (words[0].text or "").partition("=")
    last = words[0] if joined else next(iter(words[1:]), None)
    following = words[1:] if joined else words[2:]
    alone = not following or (following[0].text or "").startswith("--")
    if last is None or last.text is None or not alone or any(not one.editable or one.maybe for one in (words[0], last)):
        return fault
    text = value if joined else last.text
    flags = list(_flags(front_end, option))
    always = f"{_spelt(front_end.name, option)}={text.lower()}" in names_since(front_end.name, front_end.release)
    span = _together(words[0], last)
    if span is None or not flags or not (always or all(_is_default(flag, text) for flag in flags)):
        return fault
    template = "remove {key}, which no longer has any effect" if always else "remove {key}, which is set to its default"
    title = Message(template, key=option)
    return fault._replace(fix=(title, span, ""), keys=(option,), safe=True)


def _together(first: Word, last: Word) -> Span | None:
    """The text to delete for two adjacent words."""
    source, begin, end = first.span.source, widened(first.span), widened(last.span)
    if last.span.source is not source or source.text[begin.end : end.start].replace("\\\n", "").strip():
        return None
    return removal(source, Span(source, begin.start, end.end))


def _flags(front_end: FrontEnd, option: str) -> Iterator[Flag]:
    """The rows of an option in the described releases that have it."""
    for release in (*contracts(front_end.name), data(front_end.name)["release"]):
        keys = _at(front_end, release)
        if (flag := keys.keys.options.get(_spelt(front_end.name, option))) is not None:
            yield flag


def _at(front_end: FrontEnd, release: str) -> FrontEnd:
    """The front end at another described release."""
    if release == data(front_end.name)["release"]:
        return front_end._replace(own=None, release=release)
    return at_release(front_end, release)


def _is_default(flag: Flag, text: str) -> bool:
    if flag.switch:
        return False
    return text in NOTHING if flag.default is None else text.lower() == str(flag.default).lower()
