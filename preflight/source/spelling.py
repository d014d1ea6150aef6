"""Suggestions for unknown words; none after a file has used up its comparisons."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from preflight.source.budget import may_compare

CLOSE_PHRASES = 0.9
CUTOFF = 0.6
LONGEST = 200
"""Maximum length of a word that may be a misspelling."""


def nearest(word: str, known: Iterable[str], cutoff: float = CUTOFF) -> str | None:
    """The known word most similar to a misspelt one, or None. cutoff: minimum similarity, from 0 to 1."""
    names = tuple(known)
    if word in names or not may_compare(len(names)):
        return word if word in names else None
    return next(iter(_alike(word, names, 1, cutoff)), None)


def alike(word: str, known: Iterable[str], cutoff: float) -> tuple[str, ...]:
    """The known words similar to a misspelt one, most similar first."""
    names = tuple(known)
    return _alike(word, names, len(names), cutoff) if may_compare(len(names)) else ()


@lru_cache(maxsize=1024)
def _alike(word: str, known: tuple[str, ...], most: int, cutoff: float) -> tuple[str, ...]:
    if len(word) > LONGEST:
        return ()
    near = [name for name in known if _most_alike(word, name) >= cutoff]
    if not near:
        return ()
    from difflib import get_close_matches

    return tuple(get_close_matches(word, near, most, cutoff))


def _most_alike(word: str, name: str) -> float:
    """The highest similarity that two words can have, from their lengths and letters: difflib is slow to load."""
    size, shared = len(word) + len(name), 2 * min(len(word), len(name))
    if shared < CUTOFF * size:
        return shared / size
    return 2 * sum(min(word.count(letter), name.count(letter)) for letter in set(word)) / size if size else 1.0


def slips(word: str, known: Iterable[str], cutoff: float = 0.78) -> tuple[str, ...]:
    """The known words of which a word is most likely a misspelling; several if they are equally likely.

    Differences in case or separators come first, then one added, missing or replaced letter, then two swapped letters,
    then the only word of which one is a prefix of the other, then the nearest by difflib.
    """
    names = tuple(name for name in known if name != word)
    if not word or len(word) > LONGEST or not may_compare(len(names)):
        return ()
    for test in (_same_letters, _letter_off, _swapped, _begins):
        if found := tuple(name for name in names if test(word, name)):
            return found
    close = [
        name for name in _alike(word, names, 2, cutoff) if not _other_number(word, name) and not _other_head(word, name)
    ]
    return tuple(close) if len(close) > 1 and _as_alike(word, *close) else tuple(close[:1])


def typing_errors(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known words from which a word differs only in case or separators, in one letter, or in two swapped letters,
    the closest kind first; those with another number are other words."""
    names = tuple(known)
    if word in names or len(word) > LONGEST or not may_compare(len(names)):
        return ()
    tests = (_same_letters, _letter_off, _swapped)
    found = (tuple(name for name in names if test(word, name) and not _other_number(word, name)) for test in tests)
    return next(filter(None, found), ())


def _as_alike(word: str, one: str, other: str) -> bool:
    """Whether a word is equally similar to both others."""
    from difflib import SequenceMatcher

    ratios = {SequenceMatcher(None, name, word).ratio() for name in (one, other)}
    return len(ratios) == 1


def _same_letters(word: str, known: str) -> bool:
    return _flat(word.strip()) == _flat(known)


def _letter_off(word: str, known: str) -> bool:
    one, other = word.lower(), known.lower()
    if _one_letter_more(one, other) or _one_letter_more(other, one):
        return len(known) > 2
    at = _differ(one, other)
    return len(one) == len(other) > 3 and len(at) == 1 and not (one[at[0]].isdigit() and other[at[0]].isdigit())


def _begins(word: str, known: str) -> bool:
    one, other = sorted((word.lower(), known.lower()), key=len)
    return len(one) > 2 and other.startswith(one) and other[len(one)] in "_-"


def _other_number(word: str, known: str) -> bool:
    return re.findall(r"\d+", word) != re.findall(r"\d+", known)


def _other_head(word: str, known: str) -> bool:
    """Whether two names end in the same word (Tokenizer), but begin differently (Aquila, Null)."""
    from difflib import SequenceMatcher

    one, other = (re.match(r"(.+)([A-Z][a-z]{3,})$", name) for name in (word, known))
    if one is None or other is None or one[2] != other[2]:
        return False
    return SequenceMatcher(None, other[1], one[1]).ratio() < 0.6


def is_other_phrase(name: str, known: str) -> bool:
    """Whether a name of several words has other words than a known one, more than one word being left out or added:
    update_micro_batch_size and update_dynamic_max_batch_size."""
    from difflib import SequenceMatcher

    one, other = re.split("[_-]", name.lower()), re.split("[_-]", known.lower())
    if len(one) == len(other):
        return any(SequenceMatcher(None, a, b).ratio() < 0.5 for a, b in zip(one, other, strict=True))
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    left_out = all(word in rest for word in short)
    return not left_out and SequenceMatcher(None, "".join(one), "".join(other)).ratio() < CLOSE_PHRASES


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
    """The end of a message about an unknown word: "; did you mean 'select'?", or nothing."""
    return meant(nearest(word, known))


def meant(close: str | None) -> str:
    """The end of a message, for a known word that is already found."""
    return f"; did you mean {close!r}?" if close else ""


def slip_of(name: str, known: Iterable[str]) -> str | None:
    """The known class of which a name is a typing error: other capitals, a doubled letter, two swapped letters, or one
    wrong letter in a word.

    A name without one of its words counts as one if at least three words are left or the last one is missing; with an
    additional word or another number it is a different class.
    """
    words, classes = _words(name), tuple(known)
    if (same := next((other for other in classes if _flat(other) == _flat(name)), None)) is not None:
        return same
    tests = (_doubled, _swapped)
    return next(
        (other for other in classes if any(test(name, other) for test in tests) or _one_word_off(words, _words(other))),
        None,
    )


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _doubled(longer: str, shorter: str) -> bool:
    return len(longer) == len(shorter) + 1 and any(
        longer[:i] + longer[i + 1 :] == shorter and longer[i] == longer[i - 1] for i in range(1, len(longer))
    )


def _words(name: str) -> list[str]:
    """ "MFLossMonitor" → mf, loss, monitor."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def _one_word_off(words: list[str], known: list[str]) -> bool:
    if len(words) > 2 and (words == known[:-1] or _one_word_missing(words, known)):
        return True
    odd = [(one, other) for one, other in zip(words, known, strict=False) if one != other]
    return len(words) == len(known) and len(odd) == 1 and _one_letter_off(*odd[0])


def _one_word_missing(words: list[str], known: list[str]) -> bool:
    if len(known) != len(words) + 1:
        return False
    at = next(i for i, word in enumerate(known) if i == len(words) or words[i] != word)
    return known[:at] + known[at + 1 :] == words and known[at].isalpha() and len(known[at]) > 3


def _one_letter_off(word: str, known: str) -> bool:
    """A letter too many, missing or swapped with the next; in longer words also a replaced one."""
    if not word.isalpha() or len(known) < 4:
        return False
    if len(word) > 4 and known == f"{word}ing":
        return True
    if _one_letter_more(word, known) or _one_letter_more(known, word):
        return True
    return _swapped(word, known) or (len(word) == len(known) > 5 and len(_differ(word, known)) == 1)


def _swapped(name: str, known: str) -> bool:
    at = _differ(name, known)
    return (
        len(name) == len(known)
        and len(at) == 2
        and at[1] == at[0] + 1
        and name[at[0]] == known[at[1]]
        and name[at[1]] == known[at[0]]
    )


def _differ(name: str, known: str) -> list[int]:
    return [i for i, (one, other) in enumerate(zip(name, known, strict=False)) if one != other]


def float_of_yaml(text: str) -> str:
    """A number in scientific notation as YAML 1.1 reads one: with a decimal point and a signed exponent."""
    mantissa, _, exponent = text.lower().partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent if exponent[0] in '+-' else '+' + exponent}"


def anagram_of(name: str, known: Collection[str]) -> str:
    """The name that has the same letters in another order, or fewer or more of the same letter in a row; "" if none
    has, or it is a known one: any other name may be defined by the user."""
    if name in known:
        return ""
    letters, single = sorted(name), _single(name)
    return next((one for one in known if sorted(one) == letters or _single(one) == single), "")


def _single(name: str) -> str:
    """A name in which no letter follows itself."""
    return "".join(letter for at, letter in enumerate(name) if name[at - 1 : at] != letter)
