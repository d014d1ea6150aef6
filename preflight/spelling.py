"""What somebody may have meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like a misspelt one, or None."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1, 0.6)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is not known: "; did you mean 'select'?", or nothing."""
    close = nearest(word, known)
    return f"; did you mean {close!r}?" if close else ""
