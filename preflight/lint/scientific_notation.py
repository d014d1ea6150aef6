"""Ways to write a number in scientific notation that YAML 1.1 reads as text."""

from __future__ import annotations

from preflight.source.finding import Edit, Fix, Safety
from preflight.source.pattern import lazy_pattern
from preflight.source.spelling import float_of_yaml
from preflight.source.text import Span

_RATE = lazy_pattern(r"(?i)(?:^|_)(?:lr|learning_rate)(?:_|$)")


def spellings(text: str) -> tuple[str, ...]:
    """The number as YAML reads it; where its exponent has no sign, with each of both: which one was left out is not
    known."""
    plus = float_of_yaml(text)
    if text.lower().partition("e")[2][:1] in "+-":
        return (plus,)
    return (plus, plus.replace("e+", "e-"))


def ways(text: str, key: tuple[str | int, ...], span: Span) -> tuple[Fix, ...]:
    """A fix for each number that a text may be. Only the one that cannot change the meaning is safe: where the sign of
    the exponent is missing, or a learning rate would exceed 1, they are offered."""
    numbers = spellings(text)
    name = next((str(part) for part in reversed(key) if isinstance(part, str)), "")
    sure = len(numbers) == 1 and not (_RATE.search(name) and abs(float(numbers[0])) > 1)
    safety = Safety.SAFE if sure else Safety.UNSAFE
    return tuple(
        Fix(f"write {number}", (Edit("splice", key, number, span),), safety, offered=not sure) for number in numbers
    )
