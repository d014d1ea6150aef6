"""A command line that is itself a text (eval "…", bash -c "…"): parsed by itself, its words traced back to where they were typed."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from preflight.document import Launch, Piece, Word, word_of
from preflight.loaders.launchers import Taken
from preflight.loaders.shell.fields import Field, merged
from preflight.source import Source, Span

MAX_TEXT = 300_000
UNKNOWN = "_unknown_to_preflight"


class Nested(NamedTuple):
    """The text, the pieces it is made of, and where each begins."""

    source: Source
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    place: Span

    def translate(self, taken: Taken) -> Taken:
        """A launch found in the text, with every word where it was typed."""
        launch = taken.launch
        return taken._replace(
            launch=Launch(
                launch.launcher,
                tuple(map(self.word, launch.launcher_words)),
                self.word(launch.entry),
                tuple(map(self.word, launch.words)),
                {name: self.word(word) for name, word in launch.environment.items()},
                tuple(count._replace(span=self.span(count.span) if count.span else None) for count in launch.world),
                launch.open,
                launch.nodes and launch.nodes._replace(span=self.span(launch.nodes.span) if launch.nodes.span else None),
                launch.per_node and launch.per_node._replace(span=self.span(launch.per_node.span) if launch.per_node.span else None),
            ),
            problems=tuple(p._replace(span=self.span(p.span)) for p in taken.problems),
        )

    def word(self, word: Word) -> Word:
        """A word of the text, traced back."""
        parts = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
        return word_of(merged([origin for part in parts for origin in self._origins(part)]) or parts)

    def span(self, span: Span) -> Span:
        """A place in the text, traced back."""
        if span.source is not self.source:
            return span
        return self._origins(Piece(span.text, span))[0].span

    def _origins(self, piece: Piece) -> list[Piece]:
        if piece.span.source is not self.source or not self.pieces:
            return [piece._replace(uses=tuple(self.span(use) for use in piece.uses))]
        first = max(0, bisect_right(self.starts, piece.span.start) - 1)
        if not piece.exact or piece.text is None:
            origin = self.pieces[first]
            because = origin.because if origin.text is None else piece.because
            text = origin.because if origin.text is None and piece.text is not None else piece.text
            return [Piece(text, origin.span, (*origin.uses, self.place), False, because, piece.maybe or origin.maybe)]
        found: list[Piece] = []
        for at in range(first, len(self.pieces)):
            start, origin = self.starts[at], self.pieces[at]
            if start >= piece.span.end and found:
                break
            if origin.text is None:
                found.append(origin._replace(uses=(*origin.uses, self.place)))
                continue
            low, high = max(0, piece.span.start - start), min(len(origin.text), piece.span.end - start)
            if high > low or piece.text == "":
                cut = origin.cut(low, max(low, high))
                found.append(cut._replace(uses=(*cut.uses, self.place) if cut.uses else (), maybe=cut.maybe or piece.maybe))
        return found or [piece]


def nested(words: list[Field]) -> Nested | None:
    """The text that words make together, blanks between them. Unknown pieces stand as a variable of an impossible name."""
    pieces: list[Piece] = []
    for index, field in enumerate(words):
        if index:
            pieces.append(Piece(" ", field.pieces[0].span, exact=False))
        pieces += field.pieces
    if not pieces:
        return None
    starts, parts, at = [], [], 0
    for piece in pieces:
        starts.append(at)
        text = piece.text if piece.text is not None else f"${{{UNKNOWN}}}"
        parts.append(text)
        at += len(text)
    if at > MAX_TEXT:
        return None
    place = pieces[0].uses[-1] if pieces[0].uses else pieces[0].span
    source = Source("".join(parts), place.source.name)
    return Nested(source, tuple(pieces), tuple(starts), place)
