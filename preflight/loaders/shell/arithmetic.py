"""Whole-number arithmetic as bash does it, over text: 64 bits that wrap, bounded, and unknown where a name is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from preflight.loaders.shell.arithmetic_tokens import ASSIGNING, Token, number_of, tokens_of
from preflight.loaders.shell.arithmetic_tokens import NotKnown as NotKnown
from preflight.source.record import NamedTuple

_WIDTH = 1 << 64
_MAX_DEPTH = 50


class Result(NamedTuple):
    """The value of an expression, and the variables that it sets."""

    value: int
    sets: Mapping[str, int]


def evaluate(text: str, lookup: Callable[[str], int]) -> int:
    """The value of an expression. lookup: a name's number, or raises NotKnown. Raises NotKnown."""
    return compute(text, lookup).value


def compute(text: str, lookup: Callable[[str], int]) -> Result:
    """The value of an expression, and what it sets. Raises NotKnown."""
    parser = _Parser(tokens_of(text), lookup)
    value = parser.commas(0) if parser.tokens else 0
    if parser.at != len(parser.tokens):
        raise NotKnown(text.strip())
    return Result(value, parser.sets)


def _wrap(value: int) -> int:
    value %= _WIDTH
    return value - _WIDTH if value >= _WIDTH // 2 else value


def _divided(a: int, b: int) -> int:
    """The quotient without its fraction: -7 / 2 is -3."""
    if b == 0:
        raise NotKnown("a division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _bits(count: int) -> int:
    if not 0 <= count < 64:
        raise NotKnown("a shift by more bits than there are")
    return count


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise NotKnown("a negative power")
    return pow(base, exponent, _WIDTH)


_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": lambda a, b: a << _bits(b), ">>": lambda a, b: a >> _bits(b)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": _divided, "%": lambda a, b: a - _divided(a, b) * b},
    {"**": _power},
)
"""Operators between two values, those that bind loosest first."""
_OPERATORS = {sign: operate for level in _LEVELS for sign, operate in level.items()}
_LEVEL_OF = {sign: number for number, level in enumerate(_LEVELS) for sign in level}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
}


class _Parser:
    """Computes while it reads; live: what is read counts, and is not the side of a condition that is not taken."""

    def __init__(self, tokens: list[Token], lookup: Callable[[str], int]) -> None:
        self.tokens, self.lookup, self.at, self.live = tokens, lookup, 0, True
        self.sets: dict[str, int] = {}

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else Token("end", "")

    def take(self, *signs: str) -> str | None:
        kind, text = self.peek()
        if kind != "sign" or text not in signs:
            return None
        self.at += 1
        return text

    def need(self, sign: str) -> None:
        if self.take(sign) is None:
            raise NotKnown("an expression that is not complete")

    @contextmanager
    def taken(self, live: bool) -> Iterator[None]:
        """Read a part that counts only where `live`."""
        before, self.live = self.live, self.live and live
        yield
        self.live = before

    def commas(self, depth: int) -> int:
        value = self.assignment(depth)
        while self.take(",") is not None:
            value = self.assignment(depth)
        return value

    def assignment(self, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise NotKnown("an expression nested too deep")
        (kind, name), (_, sign) = self.peek(), self.peek(1)
        if kind != "name" or sign not in ASSIGNING:
            return self.ternary(depth)
        self.at += 2
        before = self.named(name) if sign != "=" else 0
        value = self.assignment(depth + 1)
        return self.put(name, value if sign == "=" else self.applied(sign[:-1], before, value))

    def ternary(self, depth: int) -> int:
        value = self.binary(0, depth)
        if self.take("?") is None:
            return value
        with self.taken(value != 0):
            yes = self.commas(depth + 1)
        self.need(":")
        with self.taken(value == 0):
            no = self.ternary(depth + 1)
        return yes if value else no

    def binary(self, least: int, depth: int) -> int:
        value = self.unary(depth)
        while (level := _LEVEL_OF.get(sign := self.peek().text, -1)) >= least and self.peek().kind == "sign":
            self.at += 1
            decided = (sign == "&&" and not value) or (sign == "||" and bool(value))
            with self.taken(not decided):
                other = self.binary(level + (sign != "**"), depth + 1)
                applied = self.applied(sign, value, other)
            value = int(sign == "||") if decided else applied
        return value

    def unary(self, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise NotKnown("an expression nested too deep")
        if (sign := self.take(*_UNARY)) is not None:
            return _wrap(_UNARY[sign](self.unary(depth + 1)))
        if self.take("(") is not None:
            value = self.commas(depth + 1)
            self.need(")")
            return value
        kind, text = self.peek()
        self.at += 1
        if kind == "step":  # ++x
            name = self.peek().text  # the reader of tokens makes sure that it is one
            self.at += 1
            return self.put(name, self.named(name) + (1 if text == "++" else -1))
        if kind == "name":
            return self.stepped(text, self.named(text))
        if kind == "number":
            return _wrap(number_of(text))
        raise NotKnown("an expression that is not complete")

    def stepped(self, name: str, value: int) -> int:
        """x++: the value before."""
        if self.peek().kind == "step":
            self.put(name, value + (1 if self.peek().text == "++" else -1))
            self.at += 1
        return value

    def named(self, name: str) -> int:
        if not self.live:
            return 0
        return self.sets[name] if name in self.sets else self.lookup(name)

    def put(self, name: str, value: int) -> int:
        value = _wrap(value)
        if self.live:
            self.sets[name] = value
        return value

    def applied(self, sign: str, a: int, b: int) -> int:
        return _wrap(_OPERATORS[sign](a, b)) if self.live or sign == "**" else 0  # bash looks at a power in any case
