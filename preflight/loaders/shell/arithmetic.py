"""Integer arithmetic of bash: 64 bits with wrap-around, bounded, unknown if a variable is unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from preflight.loaders.document import Piece
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.expansion_forms import EXPANSIONS, QUOTES
from preflight.loaders.shell.state import Expands, Variable
from preflight.loaders.shell.word_splitting import Field, text_of, why
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

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
    """The value cannot be computed; the message names the reason."""


class NoInteger(str):
    """Why an expression is unknown: bash refuses the value of a variable in it, which is the text. place: where the
    script sets it."""

    __slots__ = ("name", "place")

    name: str
    place: Span

    def __new__(cls, value: str, name: str, place: Span) -> NoInteger:
        made = super().__new__(cls, value)
        made.name, made.place = name, place
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return NoInteger, (str(self), self.name, self.place)


class _Refused(NotKnown):
    """bash refuses the expression, because a variable in it is not an integer."""

    def __init__(self, because: NoInteger) -> None:
        super().__init__(str(because))
        self.because = because


class Token(NamedTuple):
    """kind: number, name, sign, or step (++ and -- next to a name)."""

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
    """A number in bash's notation: octal after 0, hexadecimal after 0x, any base before #. Raises NotKnown."""
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


_WIDTH = 1 << 64
_MAX_DEPTH = 50


class Result(NamedTuple):
    """The value of an expression, and the variables that it sets."""

    value: int
    sets: Mapping[str, int]


def evaluate(text: str, lookup: Callable[[str], int]) -> int:
    """The value of an expression. lookup: returns the number of a name. Raises NotKnown."""
    return compute(text, lookup).value


def compute(text: str, lookup: Callable[[str], int]) -> Result:
    """The value of an expression, and the variables that it sets. Raises NotKnown."""
    parser = _Parser(tokens_of(text), lookup)
    value = parser.commas(0) if parser.tokens else 0
    if parser.at != len(parser.tokens):
        raise NotKnown(text.strip())
    return Result(value, parser.sets)


def _wrap(value: int) -> int:
    value %= _WIDTH
    return value - _WIDTH if value >= _WIDTH // 2 else value


def _divided(a: int, b: int) -> int:
    """The quotient rounded towards zero: -7 / 2 is -3."""
    if b == 0:
        raise NotKnown("a division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _bits(count: int) -> int:
    if not 0 <= count < 64:
        raise NotKnown("a shift by more bits than a number has")
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
"""Binary operators, the loosest-binding first."""
_OPERATORS = {sign: operate for level in _LEVELS for sign, operate in level.items()}
_LEVEL_OF = {sign: number for number, level in enumerate(_LEVELS) for sign in level}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
}


class _Parser:
    """Evaluates while parsing; live: the parsed part is evaluated, not skipped by a condition."""

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
            raise NotKnown("an incomplete expression")

    @contextmanager
    def taken(self, live: bool) -> Iterator[None]:
        """Parse a part that is evaluated only if `live`."""
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
            raise NotKnown("an expression that is nested too deeply")
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
            raise NotKnown("an expression that is nested too deeply")
        if (sign := self.take(*_UNARY)) is not None:
            return _wrap(_UNARY[sign](self.unary(depth + 1)))
        if self.take("(") is not None:
            value = self.commas(depth + 1)
            self.need(")")
            return value
        kind, text = self.peek()
        self.at += 1
        if kind == "step":  # ++x
            name = self.peek().text  # the tokenizer ensures this
            self.at += 1
            return self.put(name, self.named(name) + (1 if text == "++" else -1))
        if kind == "name":
            return self.stepped(text, self.named(text))
        if kind == "number":
            return _wrap(number_of(text))
        raise NotKnown("an incomplete expression")

    def stepped(self, name: str, value: int) -> int:
        """x++: the value before the increment."""
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
        return _wrap(_OPERATORS[sign](a, b)) if self.live or sign == "**" else 0  # bash always evaluates a power


MAX_DEPTH = 40


def arithmetic(expander: Expands, tree: Tree, node: Node, span: Span, *, once: bool = False) -> Piece:
    """$(( … )), (( … )) or parts of them: a number, or unknown.

    once: a statement that is executed once, so its assignments are kept. An expansion may be read more than once, so
    variables that it sets become unknown.
    """
    try:
        return _computed(expander, _plain(expander, tree, node), span, once=once)
    except NotKnown as cause:
        _forget(expander, names_set(tree.text(node)), span)
        because = cause.because if isinstance(cause, _Refused) else str(cause)
        return Piece(None, span, exact=False, because=because)


def let(expander: Expands, words: Iterable[Field]) -> None:
    """let X=1 "Y = X * 2": every word is an expression."""
    for pieces in (word.pieces for word in words):
        text, span = text_of(pieces), pieces[0].span
        try:
            if text is None:
                raise NotKnown(why(pieces))
            _computed(expander, text, span, once=True)
        except NotKnown:
            _forget(expander, names_set("".join(piece.text or "$" for piece in pieces)), span)


def _computed(expander: Expands, text: str, span: Span, *, once: bool) -> Piece:
    """The value of an expression, after its assignments. Raises NotKnown."""
    value, sets = compute(text, lambda name: number(expander, name, span))
    for name, new in sets.items():
        old = expander.state.get(name)
        piece = Piece(str(new) if once else None, span, exact=False, because="" if once else f"${name}")
        variable = old if old is not None else Variable((), False, span)
        expander.state.put(name, variable._replace(items=((piece,), *variable.items[1:]), place=span, others=()))
    return Piece(str(value), span, exact=False)


def _forget(expander: Expands, names: Iterable[str], span: Span) -> None:
    """Set names to unknown values."""
    for name in names:
        unknown = Piece(None, span, exact=False, because=f"${name}")
        expander.state.put(name, Variable(((unknown,),), False, span))


def _plain(expander: Expands, tree: Tree, node: Node) -> str:
    """The expression's text with the expansions inside it replaced by their values. Raises NotKnown."""
    span = tree.span(node)
    parts, at = [], span.start
    stack = list(reversed(node.named_children))
    while stack:
        child = stack.pop()
        if child.type not in EXPANSIONS and child.type not in QUOTES:
            stack += reversed(child.named_children)
            continue
        place, value = tree.span(child), expander.value(tree, child)
        if (text := text_of(value)) is None:
            raise NotKnown(why(value))
        if (plain := _WHOLE_OPERAND.fullmatch(tree.text(child))) and _apart(tree.source.text, place):
            _check_integer(text, plain[1], expander.state.get(plain[1]))
        parts += [tree.source.text[at : place.start], text]
        at = place.end
    whole = "".join([*parts, tree.source.text[at : span.end]])
    ends = {"$((": (3, 2), "((": (2, 2), "$[": (2, 1)}
    before, after = next((cut for start, cut in ends.items() if whole.startswith(start)), (0, 0))
    return whole[before : len(whole) - after]


def number(expander: Expands, name: str, span: Span) -> int:
    """The number in a variable. Raises NotKnown."""
    variable = expander.state.get(name)
    value = variable.scalar if variable is not None else expander.unset(name, span)
    if (text := text_of(value)) is None:
        raise NotKnown(why(value) or f"${name}")
    if not text.strip():
        return 0
    _check_integer(text, name, variable)
    if not re.fullmatch(r"\s*[-+]?\w{1,20}\s*", text, re.ASCII):
        raise NotKnown(f"${name}")
    expander.depth += 1
    try:
        if expander.depth > MAX_DEPTH:
            raise NotKnown(f"${name}")
        return evaluate(text, lambda inner: number(expander, inner, span))
    finally:
        expander.depth -= 1


_NO_INTEGER = re.compile(
    r"[1-9]\d{0,30}(?:\.\d{1,30})?[A-Za-z]\w{0,30}|\d{1,30}\.\d{1,30}|[1-9]\d{0,30}_[\d_]{1,40}|0[0-7]{0,20}[89]\d{0,20}",
    re.ASCII,
)
"""Text that begins like a number and is not an integer: 100B, 1e9, 0.5, 1_000, 08."""
_WHOLE_OPERAND = re.compile(r"\$\{?([A-Za-z_]\w*)\}?", re.ASCII)


def _check_integer(text: str, name: str, variable: Variable | None) -> None:
    """Raises NotKnown if bash refuses the value of a variable that the script sets."""
    if variable is not None and not variable.array and not variable.sometimes and _NO_INTEGER.fullmatch(text):
        raise _Refused(NoInteger(text, name, variable.place))


def _apart(text: str, place: Span) -> bool:
    """Whether an expansion is a whole operand: not a subscript, and not part of 16#$X or $X.5."""
    around = text[place.start - 1 : place.start] + text[place.end : place.end + 1]
    return not any(one.isalnum() or one in "_#.[]$@{}\"'`\\" for one in around)
