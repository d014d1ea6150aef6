"""The words of an arithmetic expression of bash: numbers of any base, names, signs."""

from __future__ import annotations

import re

from preflight.source.record import NamedTuple

_MAX_TOKENS = 500
_MAX_DIGITS = 70
_TOKEN = (
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]*|[0-9]+#[0-9a-zA-Z@_]+|[0-9]+)"
    r"|(?P<name>\$\{[A-Za-z_]\w*\}|\$?[A-Za-z_]\w*)(?P<element>\[[^\]]*\])?"
    r"|(?P<sign><<=|>>=|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&^|]=|[-+*/%<>!~()?:&|^=,]))"
)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_"
_SET = r"\b([A-Za-z_]\w*)\b(?:\[[^\]]*\])?\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
ASSIGNING = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="])


class NotKnown(Exception):
    """The value cannot be computed; the message says because of what."""


class Token(NamedTuple):
    """kind: number, name, sign, or step (++ and -- beside a name)."""

    kind: str
    text: str


def tokens_of(text: str) -> list[Token]:
    """The tokens of an expression. Raises NotKnown."""
    tokens: list[Token] = []
    pattern = re.compile(_TOKEN, re.ASCII)
    at, text = 0, text.replace("\\\n", " ").rstrip()
    while at < len(text):
        match = pattern.match(text, at)
        if match is None or len(tokens) > _MAX_TOKENS or match["element"] not in (None, "[0]"):
            raise NotKnown(text.strip()[:40])
        token = (
            Token("number", match["number"]) if match["number"] else Token("name", (match["name"] or "").strip("${}"))
        )
        at = match.end()
        if (sign := match["sign"]) is not None:
            beside = bool(tokens) and tokens[-1].kind == "name"
            if sign in ("++", "--") and not beside and not re.match(r"\s*[A-Za-z_]", text[at:]):
                sign, at = sign[0], at - 1  # 1--1 is 1 - -1
            token = Token("step" if sign in ("++", "--") else "sign", sign)
        tokens.append(token)
    return tokens


def number_of(token: str) -> int:
    """A number as bash reads it: octal after a 0, hexadecimal after 0x, any base before a #. Raises NotKnown."""
    base, digits = 10, token
    if "#" in token:
        before, _, digits = token.partition("#")
        base = 0 if before.startswith("0") or len(before) > 2 else int(before)
    elif token.startswith("0"):
        base, digits = (16, token[2:]) if token[:2].lower() == "0x" else (8, token)
    if not 2 <= base <= len(_DIGITS) or len(digits) > _MAX_DIGITS:
        raise NotKnown(token[:40])
    value = 0
    for digit in digits.lower() if base <= 36 else digits:
        if _DIGITS.index(digit) >= base:
            raise NotKnown(token[:40])
        value = value * base + _DIGITS.index(digit)
    return value


def names_set(text: str) -> frozenset[str]:
    """Every name that an expression may set, whether or not its value is known."""
    return frozenset(name for match in re.finditer(_SET, text) for name in match.groups() if name)
