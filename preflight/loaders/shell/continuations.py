"""Lines that were meant to go on with the command above them, and begin one of their own."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.loaders.entries import command_name
from preflight.loaders.shell.uncertain_words import is_group
from preflight.loaders.shell.word_splitting import Field, text_of, word
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span

_BETWEEN = lazy_pattern(r"(?:[ \t]*(?:\\[ \t]*)?(?:#[^\n]*|\r)?\n)+[ \t]*(?:\\[ \t]*)?(?:#[^\n]*)?")
"""What may stand between a command and the line that was meant to go on with it: ends of lines and comments."""
_NUMBER = lazy_pattern(r"-?[\d.]+(?:[eE][-+]?\d+)?")
_STARTERS = frozenset("torchrun msrun deepspeed accelerate srun mpirun mpiexec orterun".split())
"""Commands that start another one: by themselves they do nothing."""


class Broken(NamedTuple):
    """Words that begin a command of their own. joined: they are read as part of the launch above."""

    place: Span
    joined: bool


def chains(broken: Sequence[Broken]) -> list[list[Broken]]:
    """Lines that follow on each other without a continuation are one mistake."""
    found: list[list[Broken]] = []
    for one in broken:
        last = found[-1][-1] if found else None
        if last is not None and last.joined and one.joined and _follows(last.place, one.place):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _follows(place: Span, below: Span) -> bool:
    between = place.source.text[place.end : below.start] if below.source is place.source else ""
    return _BETWEEN.fullmatch(between) is not None


class Above(NamedTuple):
    """The command above a line: its words, the column it begins in, and whether it starts something."""

    words: list[Field]
    column: int
    started: bool

    @property
    def waits(self) -> bool:
        """Whether it ends in an option that may take a value."""
        return (text_of(self.words[-1].pieces) or "").startswith("--") and "=" not in (
            text_of(self.words[-1].pieces) or ""
        )

    @property
    def starts_nothing(self) -> bool:
        return not self.started and command_name(word(self.words[0], self.words[0].pieces[0].span)) in _STARTERS


def cut_off(place: Span, words: list[Field], below: Span, started: bool) -> Above | None:
    """The command above a line, where only comments and ends of lines stand between,
    and it starts or is meant to start something."""
    if below.source is not place.source or below.start <= place.end or not words:
        return None
    if not _follows(place, below):
        return None
    kept = (
        words[:-1] if len(words) > 1 and (text_of(words[-1].pieces) or "x").isspace() else words
    )  # `\ ` is a blank as a word
    above = Above(kept, place.column, started)
    return above if started or above.starts_nothing else None


def goes_on(words: list[Field], place: Span, above: Above | None) -> bool:
    """Whether words are no command: options, or what else can only belong to the command above."""
    first = words[0]
    text = first.pieces[0].text
    if text is not None and text.startswith("-"):
        return above is not None or text_of(first.pieces) is not None
    if above is None:
        return False
    whole = text_of(first.pieces)
    if above.starts_nothing:
        return whole is not None and whole.endswith(".py")
    if place.column <= above.column or _is_command(words):
        return False
    if whole is None:
        return is_group(first) or above.waits
    options = any((text_of(field.pieces) or "").startswith("--") for field in words[1:])
    return above.waits and (options or len(words) == 1 or bool(_NUMBER.fullmatch(whole)))


def _is_command(words: list[Field]) -> bool:
    """Whether a script or a launcher is named among the first words."""
    names = [command_name(word(field, field.pieces[0].span)) for field in words[:6]]
    return any(name.endswith((".py", ".sh")) or name in _STARTERS or name.startswith("python") for name in names)
