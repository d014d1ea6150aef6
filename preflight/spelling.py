"""What somebody may have meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is most like a misspelt one, or None. cutoff: how alike, from 0 to 1."""
    return _nearest(word, tuple(known), cutoff)


@lru_cache(maxsize=1024)
def _nearest(word: str, known: tuple[str, ...], cutoff: float) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1, cutoff)
    return close[0] if close else None


def meant_boolean(word: str) -> bool | None:
    """The boolean that a misspelt word most likely means, or None."""
    lower = word.strip().lower()
    for known, value in (("true", True), ("false", False)) if 3 <= len(lower) <= 6 and lower.isalpha() else ():
        if sorted(lower) == sorted(known) or _one_letter_more(lower, known) or _one_letter_more(known, lower):
            return value
    return None


def _one_letter_more(longer: str, shorter: str) -> bool:
    return len(longer) == len(shorter) + 1 and any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is not known: "; did you mean 'select'?", or nothing."""
    close = nearest(word, known)
    return f"; did you mean {close!r}?" if close else ""
