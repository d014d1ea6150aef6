"""MindFormers' scripts/msrun_launcher.sh: its argument forms, and the command line inside its first argument."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Count, Piece, Problem, Unknown, Word, word_of
from preflight.source.message import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple

_NAME = "msrun_launcher.sh"
_TOKEN = lazy_pattern(r"""\\\n|\\(.)|'([^']*)'|(")|([^\s\\'"]+)|([\s]+)|(.)""", re.DOTALL)


class CommandError(Exception):
    """The command line inside a word cannot be read."""


class Arguments(NamedTuple):
    """What msrun_launcher.sh is given. command: the first argument, None when the script would not run it."""

    command: Word | None
    world: Count
    local: Count
    problems: tuple[Problem, ...]


def arguments(words: Sequence[Word]) -> Arguments:
    """Read the words after the launcher's name: 1, 2, 6 or 9 arguments."""
    given = words[1:]
    command = given[0] if given else None
    world = _number(given[1]) if len(given) > 1 else Count(8, None, f"{_NAME}'s default")
    local = _number(given[2]) if len(given) == 9 else world
    problems = []
    if any(w.text is None and not w.because for w in given):
        pass
    elif len(given) not in (1, 2, 6, 9):
        template = "{launcher} takes 1, 2, 6 or 9 arguments and is given {count}; it prints its usage and stops"
        message = Message(template, launcher=_NAME, count=len(given))
        problems.append(Problem("msrun-launcher-arguments", message, words[0].span))
    elif len(given) > 1 and world.value == 1:
        world = world._replace(value=Unknown("nothing is started"))
        template = "{launcher} with 1 worker prints a hint and exits 0 without running anything"
        problems.append(Problem("msrun-launcher-single-worker", Message(template, launcher=_NAME), given[1].span))
    elif len(given) > 1 and given[1].text is not None and not given[1].text.isdigit():
        template = "{launcher} needs the number of workers as its second argument, not {text!r}"
        message = Message(template, launcher=_NAME, text=given[1].text)
        problems.append(Problem("msrun-launcher-arguments", message, given[1].span))
    return Arguments(command, world, local, tuple(problems))


def _number(word: Word) -> Count:
    text = word.text
    known = text is not None and re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0
    return Count(int(text) if known and text else Unknown(word.because or text or ""), word.span, _NAME)


def split_command(word: Word) -> list[Word]:
    """The words of a command line that is itself one word, each with the place where it was typed.
    Raises CommandError."""
    pieces = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
    words: list[Word] = []
    current: list[Piece] = []
    quoted = started = False
    for piece in pieces:
        if piece.text is None:
            current.append(piece)
            started = True
            continue
        for match in _TOKEN.finditer(piece.text):
            kind = match.lastindex
            if kind == 3:
                quoted, started = not quoted, True
            elif kind == 5 and not quoted:
                if started:
                    words.append(_made(current, piece))
                current, started = [], False
            elif kind == 2 and quoted:
                current.append(piece.cut(match.start(), match.end()))
            elif kind is not None:
                current.append(piece.cut(match.start(kind), match.end(kind)))
                started = True
    if quoted:
        raise CommandError("a quote is not closed")
    if started:
        words.append(_made(current, pieces[-1]))
    return words


def _made(pieces: list[Piece], near: Piece) -> Word:
    return word_of(tuple(pieces)) if pieces else Word("", near.span, near.uses, editable=False)
