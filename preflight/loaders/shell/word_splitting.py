"""The result of an expansion, and how bash splits it into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from preflight.loaders.document import Piece, Word, word_of
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import Needed, Reason
from preflight.source.source_file import Span

_BLANKS = lazy_pattern(r"[ \t\n]+")
_SENTENCE = lazy_pattern(  # lower case only: compiling a pattern that ignores case takes ten times as long
    r"(?:your|fill|replace|please|enter|insert|todo|change|path to|the)\b[^\n= ]* [^\n=]*"
    r"|(?=.*\b(?:ip|path|dir|directory|node|address|port|ifname|file|folder|here|tokenizer|checkpoint|ckpt|dataset)\b)"
    r"[a-z]+(?: [a-z]+)+"
    r"|<[a-z][^<>\n]*>[\w./-]*"
)


class Bit(NamedTuple):
    """A stretch of an expansion. splits: it came from an unquoted expansion, so blanks in it end a word."""

    piece: Piece
    splits: bool = False


class Break:
    """A word boundary that quoting does not remove: between the elements of "${A[@]}"."""


BREAK = Break()
UNREAD, PILED = ", which a file that is not read may set", ", which becomes too long on several branches"
"""Endings of the reasons for a list that may contain any words."""
Bits = list["Bit | Break"]
Value = tuple[Piece, ...]


class Field(NamedTuple):
    """A word as pieces. loose: it is entirely an unknown expansion without quotes, so it may be no word or several."""

    pieces: list[Piece]
    loose: bool = False


def is_sentence(text: str) -> bool:
    """Words that a person should replace ("your model ckpt path"), not a list of values."""
    return " " in text and bool(_SENTENCE.fullmatch(text.strip().lower()))


def fields(bits: Iterable[Bit | Break]) -> list[Field]:
    """Split an expansion into words. An empty unquoted expansion disappears."""
    cutter = _Cutter()
    for bit in bits:
        if isinstance(bit, Break):
            cutter.end()
        elif not bit.splits or bit.piece.text is None:
            cutter.add(bit.piece, bit.splits)
        elif is_sentence(bit.piece.text):
            text = bit.piece.text.strip()
            because = Reason(f'the placeholder "{bit.piece.text.strip()}"', Needed.FILLED, f'"{text}"')
            cutter.add(bit.piece._replace(text=None, because=because, exact=False), False)
        else:
            cutter.split(bit.piece, bit.piece.text)
    cutter.end()
    return cutter.words


class _Cutter:
    def __init__(self) -> None:
        self.words: list[Field] = []
        self.current: list[Piece] = []
        self.loose = True

    def add(self, piece: Piece, loose: bool) -> None:
        self.current.append(piece)
        self.loose = self.loose and loose

    def end(self) -> None:
        if self.current:
            self.words.append(Field(self.current, self.loose))
        self.current, self.loose = [], True

    def split(self, piece: Piece, text: str) -> None:
        at = 0
        for match in _BLANKS.finditer(text):
            if match.start() > at:
                self.add(piece.cut(at, match.start()), False)
            self.end()
            at = match.end()
        if at < len(text):
            self.add(piece.cut(at, len(text)), False)


def joined(bits: Iterable[Bit | Break], blank: Span) -> Value:
    """An expansion without splitting: the value of an assignment."""
    pieces: list[Piece] = []
    for bit in bits:
        pieces.append(Piece(" ", blank, exact=False) if isinstance(bit, Break) else bit.piece)
    return tuple(pieces)


def merged(pieces: Sequence[Piece]) -> Value:
    """Pieces without empty ones next to others, and with adjacent pieces of one stretch merged."""
    found: list[Piece] = []
    for piece in pieces:
        if piece.text == "" and len(pieces) > 1:
            continue
        last = found[-1] if found else None
        if last is not None and _adjoin(last, piece):
            found[-1] = last._replace(
                text=(last.text or "") + (piece.text or ""), span=last.span._replace(end=piece.span.end)
            )
        else:
            found.append(piece)
    return tuple(found) or tuple(pieces[:1])


def _adjoin(one: Piece, other: Piece) -> bool:
    if not (one.exact and other.exact) or one.text is None or other.text is None:
        return False
    return (
        one.span.source is other.span.source
        and one.span.end == other.span.start
        and one.uses == other.uses
        and one.maybe == other.maybe
    )


def word(field: Field, near: Span) -> Word:
    """The word of a field; `near` is the place of an empty one."""
    pieces = merged(field.pieces)
    return word_of(pieces) if pieces else Word("", near, editable=False)


def value_of(given: Word) -> Value:
    """A word as the value of a variable."""
    return given.pieces or (Piece(given.text, given.span, given.uses, given.editable, given.because, given.maybe),)


def text_of(value: Iterable[Piece]) -> str | None:
    """The text of a value, None if part of it is unknown or uncertain."""
    parts = []
    for piece in value:
        if piece.text is None or piece.maybe:
            return None
        parts.append(piece.text)
    return "".join(parts)


def why(value: Iterable[Piece]) -> str:
    """The reason why a value is unknown."""
    return next((p.because or "a condition" for p in value if p.text is None or p.maybe), "")
