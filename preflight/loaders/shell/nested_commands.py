"""A command line that is itself a text (eval "…", bash -c "…"): parsed by itself,
its words traced back to where they were typed."""

from __future__ import annotations

from bisect import bisect_right

from preflight.loaders.document import Count, Launch, Piece, Word, word_of
from preflight.loaders.launchers import Taken
from preflight.loaders.shell.word_splitting import Field, merged
from preflight.source.record import NamedTuple
from preflight.source.text import Source, Span

MAX_TEXT = 300_000
UNKNOWN = "_unknown_to_preflight"


class Nested(NamedTuple):
    """The text, the pieces it is made of, where each begins in it, and where the text is used,
    if elsewhere than it stands."""

    source: Source
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    used: tuple[Span, ...] = ()

    def origins(self, piece: Piece) -> list[Piece]:
        """The pieces that a piece of this text came from."""
        first = max(0, bisect_right(self.starts, piece.span.start) - 1)
        if not piece.exact or piece.text is None:
            origin = self.pieces[first]
            text = origin.because if origin.text is None and piece.text is not None else piece.text
            because = origin.because if origin.text is None else piece.because
            return [
                Piece(
                    text,
                    origin.span,
                    (*origin.uses, *self.used, *piece.uses),
                    False,
                    because,
                    piece.maybe or origin.maybe,
                )
            ]
        found: list[Piece] = []
        for at in range(first, len(self.pieces)):
            start, origin = self.starts[at], self.pieces[at]
            if start >= piece.span.end and found:
                break
            uses = (*origin.uses, *self.used, *piece.uses) if origin.uses or piece.uses else ()
            if origin.text is None:
                found.append(origin._replace(uses=uses))
                continue
            low, high = max(0, piece.span.start - start), min(len(origin.text), piece.span.end - start)
            if high > low or piece.text == "":
                found.append(origin.cut(low, max(low, high))._replace(uses=uses, maybe=origin.maybe or piece.maybe))
        return found or [self.pieces[first]]


class Texts:
    """All texts that were parsed by themselves while a script was followed; leads from them back to files."""

    def __init__(self) -> None:
        self._known: dict[int, Nested] = {}

    def add(self, text: Nested) -> None:
        self._known[id(text.source)] = text

    def pieces(self, piece: Piece) -> list[Piece]:
        """The pieces in files that a piece comes from."""
        text = self._known.get(id(piece.span.source))
        if text is not None and text.pieces:
            return [origin for part in text.origins(piece) for origin in self.pieces(part)]
        return [piece._replace(uses=tuple(map(self.span, piece.uses)))] if piece.uses else [piece]

    def span(self, span: Span) -> Span:
        """A place in a file."""
        while (text := self._known.get(id(span.source))) is not None and text.pieces:
            span = text.origins(Piece(span.text, span))[0].span
        return span

    def word(self, word: Word) -> Word:
        """A word, traced back."""
        parts = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
        return word_of(merged([origin for part in parts for origin in self.pieces(part)]) or parts)

    def count(self, count: Count | None) -> Count | None:
        """A count, traced back."""
        return count._replace(span=self.span(count.span)) if count is not None and count.span is not None else count

    def taken(self, taken: Taken) -> Taken:
        """A launch with every word where it was typed."""
        if not self._known:
            return taken
        launch = taken.launch
        moved = Launch(
            launch.launcher,
            tuple(map(self.word, launch.launcher_words)),
            self.word(launch.entry),
            tuple(map(self.word, launch.words)),
            {name: self.word(word) for name, word in launch.environment.items()},
            tuple(count for c in launch.world if (count := self.count(c)) is not None),
            launch.open,
            self.count(launch.nodes),
            self.count(launch.per_node),
            self.word(launch.device) if launch.device is not None else None,
            tuple(map(self.word, launch.assumed)),
            launch.lost,
            self.word(launch.directory) if launch.directory is not None else None,
        )
        return taken._replace(launch=moved, problems=tuple(p._replace(span=self.span(p.span)) for p in taken.problems))


def nested(words: list[Field]) -> Nested | None:
    """The text that words make together, blanks between them.
    Unknown pieces stand as a variable of an impossible name."""
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
    return Nested(source, tuple(pieces), tuple(starts), (place,))
