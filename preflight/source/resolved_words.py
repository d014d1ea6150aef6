"""A resolved word of a command: known or unknown, with its place and its pieces."""

from __future__ import annotations

from enum import Enum
from itertools import pairwise

from preflight.source.record import NamedTuple
from preflight.source.source_file import Span


class Needed(str, Enum):
    """The fact that would make a value known, if there is a single one."""

    WORLD_SIZE = "world-size"
    DEVICE = "device"
    FILLED = "filled"
    MODEL_CONFIG = "model-config"
    VOCABULARY = "vocabulary"


class Reason(str):
    """Why a value is unknown, as text, with the fact that would make it known. about: the text of a placeholder."""

    __slots__ = ("about", "needs")

    needs: Needed | None
    about: str

    def __new__(cls, text: str, needs: Needed | None, about: str = "") -> Reason:
        made = super().__new__(cls, text)
        made.needs, made.about = needs, about
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Reason, (str(self), self.needs, self.about)


def needed(because: str) -> Needed | None:
    """The fact that would make the value known; None for a reason without one."""
    return because.needs if isinstance(because, Reason) else None


NO_WORLD_SIZE = Reason("the device count is not given", Needed.WORLD_SIZE)


class Unknown:
    """A value that cannot be known before the job runs; `because` names the cause ("$NNODES", "$(hostname)")."""

    __slots__ = ("because",)

    def __init__(self, because: str = "") -> None:
        self.because = because

    def __repr__(self) -> str:
        return f"Unknown({self.because!r})"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false")


UNKNOWN = Unknown()


class Piece(NamedTuple):
    """A part of a word with one origin. exact: `text` is literally the text of `span`, so it can be cut and
    replaced."""

    text: str | None
    span: Span
    uses: tuple[Span, ...] = ()
    exact: bool = True
    because: str = ""
    maybe: bool = False

    def cut(self, start: int, end: int) -> Piece:
        """Part of a known text."""
        assert self.text is not None
        span = Span(self.span.source, self.span.start + start, self.span.start + end) if self.exact else self.span
        return self._replace(text=self.text[start:end], span=span)


class Word(NamedTuple):
    """A word of a resolved command. text: None if unknown; `because` then has the reason.

    span: the place where it was typed (for a variable, its assignment); uses: the places through which it reached the
    command. pieces: its parts, if there is more than one ("--log-dir=${DIR}/a").
    """

    text: str | None
    span: Span
    uses: tuple[Span, ...] = ()
    because: str = ""
    editable: bool = True
    maybe: bool = False
    pieces: tuple[Piece, ...] = ()

    @property
    def value(self) -> object:
        return self.text if self.text is not None else Unknown(self.because)

    @property
    def parts(self) -> tuple[Word, Word | None]:
        """A "--flag=value" word as flag and value, each with its own place and each known or not;
        any other word and None."""
        pieces = self.pieces or (Piece(self.text, self.span, self.uses, self.editable, self.because, self.maybe),)
        for index, piece in enumerate(pieces):
            if piece.text is None or (not index and not piece.text.startswith("--")):
                return self, None
            if (at := piece.text.find("=")) >= 0:
                flag, value = piece.cut(0, at), piece.cut(at + 1, len(piece.text))
                rest = (
                    pieces[index + 1 :] if value.text == "" and pieces[index + 1 :] else (value, *pieces[index + 1 :])
                )
                return word_of((*pieces[:index], flag)), word_of(rest)
        return self, None


def word_of(pieces: tuple[Piece, ...]) -> Word:
    """The word composed of pieces; its span is the place where they are combined."""
    if len(pieces) == 1:
        text, span, uses, exact, because, maybe = pieces[0]
        return Word(text, span, uses, because, exact and text is not None, maybe)
    whole = all(p.exact and p.text is not None and p.uses == pieces[0].uses for p in pieces)
    joined = whole and all(a.span.end == b.span.start and a.span.source is b.span.source for a, b in pairwise(pieces))
    text = None if any(p.text is None for p in pieces) else "".join(p.text or "" for p in pieces)
    common = _common(pieces)
    sites = [p.uses[len(p.uses) - common - 1] if len(p.uses) > common else p.span for p in pieces]
    first = sites[0]
    same = [site for site in sites if site.source is first.source]
    span = Span(first.source, min(site.start for site in same), max(site.end for site in same))
    uses = pieces[0].uses[len(pieces[0].uses) - common :]
    because = next((p.because for p in pieces if p.text is None), "")
    return Word(text, span, uses, because, joined, any(p.maybe for p in pieces), () if joined else pieces)


def _common(pieces: tuple[Piece, ...]) -> int:
    """The number of last uses that all pieces share."""
    count = min(len(p.uses) for p in pieces)
    while count and any(p.uses[len(p.uses) - count :] != pieces[0].uses[len(pieces[0].uses) - count :] for p in pieces):
        count -= 1
    return count
