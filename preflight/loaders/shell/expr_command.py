"""The output of `expr` for its words; None if unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from preflight.source.lazy_regex import lazy_pattern

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v",
    "blank": r" \t", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ATOM = lazy_pattern(
    r"(?P<set>\[\^?\]?(?:\[:\w+:\]|[^\]\[\\])*\])|\\(?P<escaped>[.*\[\]^$/\\-])|(?P<mark>\\[()])|(?P<plain>[^\\\[])"
)
_MAX_TEXT, _MAX_INVOLVED = 200, 60
"""Maximum characters of a text to which a pattern is applied; the second limit applies if it repeats more than
twice."""
_MAX_REPEATED = 4


def match(pattern: str, text: str) -> str | None:
    """The output of `expr text : pattern`: the group if there is one, otherwise the number of matching characters; None
    if unknown."""
    made = _translated(pattern)
    if made is None or len(text) > (_MAX_TEXT if made.pattern.count("*") < 3 else _MAX_INVOLVED):
        return None
    found = made.match(text)
    if made.groups:
        return found[1] if found else ""
    return str(len(found[0]) if found else 0)


@lru_cache(maxsize=64)
def _translated(pattern: str) -> re.Pattern[str] | None:
    """The pattern in Python's syntax; None if it contains more than simple forms."""
    made, at, repeatable = "", 0, False
    pattern = pattern.removeprefix("^")
    while at < len(pattern):
        found = _ATOM.match(pattern, at)
        if found is None:
            return None
        at = found.end()
        part, repeatable = _atom(found, repeatable, last=at == len(pattern))
        if part is None:
            return None
        made += part
    simple = made.count("(") < 2 and len(re.findall(r"(?<!\\)\*", made)) <= _MAX_REPEATED
    try:
        return re.compile(made, re.DOTALL | re.ASCII) if simple else None
    except re.error:
        return None


def _atom(found: re.Match[str], repeatable: bool, *, last: bool) -> tuple[str | None, bool]:
    """One part in Python's syntax (None if it is not simple), and whether a repetition may follow."""
    if found["set"]:
        return _set(found["set"]), True
    if found["escaped"]:
        return re.escape(found["escaped"]), True
    if found["mark"]:
        return found["mark"][1], False
    plain = found["plain"]
    if plain == "*":
        return ("*", False) if repeatable else (None, False)
    if plain in "^$":
        return (r"\Z", False) if plain == "$" and last else (None, False)
    return ("." if plain == "." else re.escape(plain)), True


def _set(text: str) -> str | None:
    """A set of characters: [a-z], [^/], [[:digit:]]."""
    inner = text[1:-1]
    negated, inner = inner.startswith("^"), inner.removeprefix("^")
    made, at = "", 0
    while at < len(inner):
        named = re.match(r"\[:(\w+):\]", inner[at:])
        if named is not None:
            if named[1] not in _CLASSES:
                return None
            made, at = made + _CLASSES[named[1]], at + named.end()
            continue
        made, at = made + (inner[at] if inner[at] == "-" else re.escape(inner[at])), at + 1
    return f"[{'^' if negated else ''}{made}]" if made else None


_INTEGER = lazy_pattern(r"-?[0-9]{1,60}")
_NULL = lazy_pattern(r"-?0+|")
_MAX_DEPTH = 50
_LIMIT = 1 << 63


class _NotKnown(Exception):
    """Raised if the output is unknown."""


def expr(words: Sequence[str]) -> str | None:
    """The output of `expr` with these words."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words or words in (["--help"], ["--version"]) or not all(map(str.isascii, words)):
        return None
    reader = _Reader(words)
    try:
        value = reader.operation(0, 0)
    except _NotKnown:
        return None
    return value if reader.at == len(words) else None


def _is_true(text: str) -> bool:
    """Neither empty nor zero."""
    return _NULL.fullmatch(text) is None


def _number(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise _NotKnown
    return int(text)


def _quotient(a: int, b: int) -> int:
    """The quotient rounded towards zero: -7 / 2 is -3."""
    if b == 0:
        raise _NotKnown
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _computing(operate: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def computed(a: str, b: str) -> str:
        result = operate(_number(a), _number(b))
        if not -_LIMIT <= result < _LIMIT:  # builds of expr differ beyond 64 bits
            raise _NotKnown
        return str(result)

    return computed


def _comparing(compare: Callable[[int, int], bool], *, order: bool) -> Callable[[str, str], str]:
    """Compares integers by value, otherwise texts, whose order depends on the locale of the machine."""

    def compared(a: str, b: str) -> str:
        if _INTEGER.fullmatch(a) and _INTEGER.fullmatch(b):
            return str(int(compare(int(a), int(b))))
        if order and a != b:
            raise _NotKnown
        return str(int(compare(int(a != b), 0)))

    return compared


def _matched(text: str, pattern: str) -> str:
    found = match(pattern, text)
    if found is None:
        raise _NotKnown
    return found


def _first_of(text: str, characters: str) -> str:
    return str(next((at for at, character in enumerate(text, 1) if character in characters), 0))


def _part(text: str, start: str, length: str) -> str:
    """A substring, counted from 1; empty if an argument is not a number or is out of range."""
    if not (_INTEGER.fullmatch(start) and _INTEGER.fullmatch(length)) or int(start) < 1 or int(length) < 1:
        return ""
    return text[int(start) - 1 : int(start) - 1 + int(length)]


_LEVELS: tuple[dict[str, Callable[[str, str], str]], ...] = (
    {"|": lambda a, b: a if _is_true(a) else b if _is_true(b) else "0"},
    {"&": lambda a, b: a if _is_true(a) and _is_true(b) else "0"},
    {
        "<": _comparing(lambda a, b: a < b, order=True),
        "<=": _comparing(lambda a, b: a <= b, order=True),
        "=": _comparing(lambda a, b: a == b, order=False),
        "==": _comparing(lambda a, b: a == b, order=False),
        "!=": _comparing(lambda a, b: a != b, order=False),
        ">=": _comparing(lambda a, b: a >= b, order=True),
        ">": _comparing(lambda a, b: a > b, order=True),
    },
    {"+": _computing(lambda a, b: a + b), "-": _computing(lambda a, b: a - b)},
    {
        "*": _computing(lambda a, b: a * b),
        "/": _computing(_quotient),
        "%": _computing(lambda a, b: a - _quotient(a, b) * b),
    },
    {":": _matched},
)
"""Binary operators, the loosest-binding first."""
_FUNCTIONS: dict[str, tuple[int, Callable[..., str]]] = {
    "match": (2, _matched),
    "substr": (3, _part),
    "index": (2, _first_of),
    "length": (1, lambda text: str(len(text))),
}
"""Prefix operators, with their number of operands."""


class _Reader:
    """Evaluates while parsing; live: the parsed part is evaluated, not skipped by | or &."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.at, self.live = words, 0, True

    def next(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def word(self) -> str:
        word = self.next()
        if word is None:
            raise _NotKnown
        self.at += 1
        return word

    def operation(self, level: int, depth: int) -> str:
        if level == len(_LEVELS):
            return self.operand(depth)
        value = self.operation(level + 1, depth)
        while (sign := self.next()) in _LEVELS[level]:
            self.at += 1
            before, decided = self.live, (sign == "|" and _is_true(value)) or (sign == "&" and not _is_true(value))
            self.live = before and not decided
            other = self.operation(level + 1, depth)
            self.live = before
            if before and sign is not None:
                value = _LEVELS[level][sign](value, other)
        return value

    def operand(self, depth: int) -> str:
        word = self.word()
        if depth > _MAX_DEPTH or word == ")":
            raise _NotKnown
        if word == "+":  # the next word is a text, regardless of its form
            return self.word()
        if word in _FUNCTIONS:
            count, function = _FUNCTIONS[word]
            values = [self.operand(depth + 1) for _ in range(count)]
            return function(*values) if self.live else ""
        if word != "(":
            return word
        value = self.operation(0, depth + 1)
        if self.word() != ")":
            raise _NotKnown
        return value
