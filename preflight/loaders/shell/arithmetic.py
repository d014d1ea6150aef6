"""Whole-number arithmetic as bash does it, over text: bounded, and unknown where a name is."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|\$?\{?([A-Za-z_]\w*)(?:\[[^\]]*\])?\}?|(\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~()?:&|^]))")
_BINARY = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
_MAX_TOKENS = 500
_WIDTH = 1 << 64


class NotKnown(Exception):
    """The value cannot be computed; the message says because of what."""


def evaluate(text: str, lookup: Callable[[str], int]) -> int:
    """The value of an expression. lookup: a name's number, or raises NotKnown. Raises NotKnown."""
    tokens = _tokens(text)
    parser = _Parser(tokens, lookup)
    value = parser.ternary(0)
    if parser.at != len(tokens):
        raise NotKnown(text.strip())
    return value


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at, text = 0, text.strip().replace("\\\n", " ")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(tokens) > _MAX_TOKENS:
            raise NotKnown(text[:40])
        kind = "number" if match[1] else "name" if match[2] else "sign"
        tokens.append((kind, match[1] or match[2] or match[3]))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]], lookup: Callable[[str], int]) -> None:
        self.tokens, self.lookup, self.at, self.depth = tokens, lookup, 0, 0

    def sign(self, *signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "sign" and self.tokens[self.at][1] in signs:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def ternary(self, depth: int) -> int:
        if depth > 50:
            raise NotKnown("an expression nested too deep")
        value = self.binary(0, depth + 1)
        if self.sign("?") is None:
            return value
        yes = self.ternary(depth + 1)
        if self.sign(":") is None:
            raise NotKnown("an expression that is not complete")
        no = self.ternary(depth + 1)
        return yes if value else no

    def binary(self, level: int, depth: int) -> int:
        if level == len(_BINARY):
            return self.power(depth)
        value = self.binary(level + 1, depth)
        while (sign := self.sign(*_BINARY[level])) is not None:
            value = _apply(sign, value, self.binary(level + 1, depth))
        return value

    def power(self, depth: int) -> int:
        value = self.unary(depth)
        if self.sign("**") is None:
            return value
        exponent = self.power(depth + 1)
        if not 0 <= exponent <= 64:
            raise NotKnown("a power")
        return _wrap(value**exponent)

    def unary(self, depth: int) -> int:
        if depth > 50:
            raise NotKnown("an expression nested too deep")
        if (sign := self.sign("-", "+", "!", "~")) is not None:
            value = self.unary(depth + 1)
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[sign]
        if self.sign("(") is not None:
            value = self.ternary(depth + 1)
            if self.sign(")") is None:
                raise NotKnown("an expression that is not complete")
            return value
        if self.at >= len(self.tokens) or self.tokens[self.at][0] == "sign":
            raise NotKnown("an expression that is not complete")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "name":
            return self.lookup(token)
        return _number(token)


def _number(token: str) -> int:
    if len(token) > 20:
        raise NotKnown("a number too large")
    try:
        return _wrap(int(token, 16 if token[:2].lower() == "0x" else 8 if token.startswith("0") and len(token) > 1 else 10))
    except ValueError:
        raise NotKnown(token) from None


def _wrap(value: int) -> int:
    value %= _WIDTH
    return value - _WIDTH if value >= _WIDTH // 2 else value


def _apply(sign: str, a: int, b: int) -> int:
    if sign in ("/", "%"):
        if b == 0:
            raise NotKnown("a division by zero")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if sign == "/" else a - quotient * b
    simple: dict[str, Callable[[], int]] = {
        "||": lambda: int(bool(a or b)), "&&": lambda: int(bool(a and b)), "|": lambda: a | b, "^": lambda: a ^ b, "&": lambda: a & b,
        "==": lambda: int(a == b), "!=": lambda: int(a != b), "<": lambda: int(a < b), "<=": lambda: int(a <= b), ">": lambda: int(a > b),
        ">=": lambda: int(a >= b), "<<": lambda: a << (b & 63), ">>": lambda: a >> (b & 63), "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b,
    }  # fmt: skip
    return _wrap(simple[sign]())
