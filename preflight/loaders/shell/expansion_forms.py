"""Parts of expansions: the form of ${…}, lists of values, literal text with escapes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Piece
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.word_splitting import BREAK, Bit, Bits, Break, Value
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Source, Span

EXPANSIONS = frozenset(
    ["simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution"]
)
QUOTES = frozenset(["string", "raw_string", "ansi_c_string", "translated_string"])
DOUBLE = lazy_pattern(r'\\\r?\n|\\([$`"\\])')
BARE = lazy_pattern(r"\\\r?\n|\\(.)", re.DOTALL)
HERE = lazy_pattern(r"\\\r?\n|\\([$`\\])")
_PARAMETER = lazy_pattern(
    r"(!?#?|#!)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[(?:[^\]]*)\])?(:?[-=+?]|%%?|##?|//|/#|/%|/|:|\^\^?|,,?|@)?", re.DOTALL
)
_COMMANDS = lazy_pattern(r"[;\n'\"`]|\$\(")
"""What stands in commands, and not in plain arithmetic."""
_SLICED = lazy_pattern(r"\$\{(?:@|\w+\[@\]):[^-=+?].*\}", re.DOTALL)
# fmt: off
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b", "f":
    "\f", "v": "\v", "?": "?"}
# fmt: on


class Form(NamedTuple):
    """${prefix name[index] operator operand}. whole: "@" or "*" when all elements are meant; start: where the operand
    begins."""

    prefix: str
    name: str
    subscript: str
    operator: str
    start: int

    @property
    def whole(self) -> str:
        return self.subscript if self.subscript in ("@", "*") else self.name if self.name in ("@", "*") else ""


NOWHERE = Source("", "")


def is_arithmetic(text: str) -> bool:
    """Whether an expansion is `$((…))`, which the grammar takes for a substitution inside `${X:-…}`."""
    if not text.startswith("$((") or not text.endswith("))") or _COMMANDS.search(text, 3) is not None:
        return False
    depth = 0
    for char in text[3:-2]:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


def read_form(text: str) -> Form | None:
    """The form of an expansion as typed; None when it has none that is read here."""
    if not text.startswith("${"):
        return Form("", text[1:], "", "", 0)
    inner = text[2:-1]
    if inner in ("#", "!", "@", "*", "?", "$", "-"):
        return Form("", inner, "", "", 0)
    match = _PARAMETER.match(inner)
    if match is None or (not match[4] and match.end() < len(inner)):
        return None
    return Form(match[1], match[2], (match[3] or "[]")[1:-1].strip("\"'"), match[4] or "", match.end())


def elements(variable: Variable, form: Form, span: Span) -> list[Value]:
    """The values that a form takes from a variable."""
    if form.whole or not form.subscript:
        chosen = variable.items if form.whole and variable.array else variable.items[:1]
    elif variable.keys:
        chosen = tuple(v for k, v in zip(variable.keys, variable.items, strict=False) if k == form.subscript)
    elif form.subscript.lstrip("-").isdecimal() and len(form.subscript) < 6:
        index = int(form.subscript)
        chosen = variable.items[index : index + 1] if index >= 0 else variable.items[index:][:1]
    else:
        return [(Piece(None, span, exact=False, because=span.text),)]
    return [tuple(piece._replace(uses=(*piece.uses, span)) for piece in value) for value in chosen]


def indices(variable: Variable | None, form: Form, span: Span, quoted: bool) -> Bits:
    """${!A[@]}: the indices of an array."""
    if variable is None:
        return [unknown(span, f"${form.name}", quoted)]
    keys = variable.keys or tuple(map(str, range(len(variable.items))))
    return listed([(Piece(key, span, exact=False),) for key in keys], span, quoted, form.whole)


def listed(values: Sequence[Value], span: Span, quoted: bool, whole: str) -> Bits:
    """Values as bits: each a word of its own for "${A[@]}", one word with blanks between for "${A[*]}",
    else cut at blanks."""
    if quoted and whole == "@" and len(values) == 1 and len(values[0]) == 1 and values[0][0].text is None:
        return [Bit(values[0][0], True)]
    found: Bits = []
    for index, value in enumerate(values):
        if index:
            found.append(Bit(Piece(" ", span, exact=False)) if quoted and whole == "*" else BREAK)
        if quoted and whole == "@" and any_number([value]):
            found.append(Bit(value[0], True))
            continue
        found += [Bit(piece, not quoted) for piece in value] or (
            [Bit(Piece("", span, exact=False))] if quoted and whole == "@" else []
        )
    return found


def any_number(values: Sequence[Value]) -> bool:
    """Whether one of these stands for any number of words: the arguments of a script that nobody knows."""
    return any(len(value) == 1 and value[0].because in ("$@", "$*") for value in values)


def is_list(text: str) -> bool:
    """Whether an expansion in quotes can be no word at all."""
    return text == "$@" or text.endswith(("[@]}", "${@}")) or _SLICED.fullmatch(text) is not None


def perhaps(bit: Bit | Break) -> Bit | Break:
    """A bit that may be there."""
    return bit if isinstance(bit, Break) else bit._replace(piece=bit.piece._replace(maybe=True))


def unknown(span: Span, because: str, quoted: bool) -> Bit:
    """A bit whose value is not known."""
    return Bit(Piece(None, span, exact=False, because=because), not quoted)


def shown(span: Span) -> str:
    """A text, shortened for a message."""
    text = span.text
    return text if len(text) <= 40 else text[:37] + "…"


def literal(span: Span) -> Bit:
    """Text as it is typed."""
    return Bit(Piece(span.text, span))


def literals(span: Span, escape: re.Pattern[str], loose: bool = False) -> Bits:
    """Literal text with its escapes taken out. loose: blanks in it end a word."""
    text = span.text
    if not text:
        return []
    if "\\" not in text:
        return [literal(span)._replace(splits=loose)]
    found: Bits = []
    at = 0
    for match in escape.finditer(text):
        if match.start() > at:
            found.append(literal(Span(span.source, span.start + at, span.start + match.start()))._replace(splits=loose))
        if match[1] is not None:
            found.append(
                Bit(
                    Piece(
                        match[1], Span(span.source, span.start + match.start(), span.start + match.end()), exact=False
                    )
                )
            )
        at = match.end()
    if at < len(text):
        found.append(literal(Span(span.source, span.start + at, span.end))._replace(splits=loose))
    return found


def ansi(span: Span) -> Bit:
    """The text of $'…'."""
    inner = Span(span.source, span.start + 2, max(span.start + 2, span.end - 1))
    if "\\" not in inner.text:
        return literal(inner)
    known = re.fullmatch(r"(?:[^\\]|\\[ntr\\'\"abefv?])*", inner.text, re.DOTALL)
    text = re.sub(r"\\(.)", lambda m: _ESCAPES[m[1]], inner.text, flags=re.DOTALL) if known else None
    return Bit(Piece(text, inner, exact=False, because="" if known else span.text))
