"""The forms of expansions: ${…} and its operators, lists of values, literal text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Piece
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.word_splitting import BREAK, Bit, Bits, Break, Value
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span

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
"""Text that occurs in commands, but not in plain arithmetic."""
_SLICED = lazy_pattern(r"\$\{(?:@|\w+\[@\]):[^-=+?].*\}", re.DOTALL)
# fmt: off
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b", "f":
    "\f", "v": "\v", "?": "?"}
# fmt: on


class Form(NamedTuple):
    """${prefix name[index] operator operand}. whole: "@" or "*" for all elements; start: the place of the operand."""

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
    """Whether an expansion is `$((…))`, which the grammar parses as a substitution inside `${X:-…}`."""
    if not text.startswith("$((") or not text.endswith("))") or _COMMANDS.search(text, 3) is not None:
        return False
    depth = 0
    for char in text[3:-2]:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


def read_form(text: str) -> Form | None:
    """The form of an expansion as typed; None for unsupported forms."""
    if not text.startswith("${"):
        return Form("", text[1:], "", "", 0)
    inner = text[2:-1]
    if inner in ("#", "!", "@", "*", "?", "$", "-"):
        return Form("", inner, "", "", 0)
    match = _PARAMETER.match(inner)
    if match is None or (not match[4] and match.end() < len(inner)):
        return None
    return Form(match[1], match[2], (match[3] or "[]")[1:-1].strip("\"'"), match[4] or "", match.end())


def has_known_keys(variable: Variable) -> bool:
    """Whether a variable is an associative array whose keys are plain text."""
    return bool(variable.keys) and not any("$" in key or "`" in key for key in variable.keys)


def elements(variable: Variable, form: Form, span: Span) -> list[Value]:
    """The values that a form selects from a variable."""
    if form.whole or not form.subscript:
        chosen = variable.items if form.whole and variable.array else variable.items[:1]
    elif has_known_keys(variable) and "$" not in form.subscript:
        chosen = tuple(v for k, v in zip(variable.keys, variable.items, strict=False) if k == form.subscript)
    elif not variable.keys and form.subscript.lstrip("-").isdecimal() and len(form.subscript) < 6:
        index = int(form.subscript)
        before = variable.items[: index + 1] if index >= 0 else variable.items
        if any(any_number([value]) or splits(value) for value in before):  # the element may be one of these words
            return [(Piece(None, span, exact=False, because=span.text),)]
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
    """Values as bits: separate words for "${A[@]}", one word joined by blanks for "${A[*]}", otherwise split at
    blanks."""
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
    """Whether one of these may be any number of words: the unknown arguments of a script."""
    return any(len(value) == 1 and value[0].because in ("$@", "$*") for value in values)


def splits(value: Value) -> bool:
    """Whether a value comes from an unquoted expansion whose words are unknown."""
    if len(value) != 1 or value[0].text is not None:
        return False
    place = value[0].span
    return place.source.text[place.start - 1 : place.start] != '"'


def is_list(text: str) -> bool:
    """Whether a quoted expansion may produce no word at all."""
    return text == "$@" or text.endswith(("[@]}", "${@}")) or _SLICED.fullmatch(text) is not None


def perhaps(bit: Bit | Break) -> Bit | Break:
    """A bit that may be absent."""
    return bit if isinstance(bit, Break) else bit._replace(piece=bit.piece._replace(maybe=True))


def unknown(span: Span, because: str, quoted: bool) -> Bit:
    """A bit with an unknown value."""
    return Bit(Piece(None, span, exact=False, because=because), not quoted)


def shown(span: Span) -> str:
    """A text, shortened for a message."""
    text = span.text
    return text if len(text) <= 40 else text[:37] + "…"


def literal(span: Span) -> Bit:
    """Text as it is typed."""
    return Bit(Piece(span.text, span))


def literals(span: Span, escape: re.Pattern[str], loose: bool = False) -> Bits:
    """Literal text without its escapes. loose: blanks in it end a word."""
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


_SLICE = lazy_pattern(r"\s*(-?[0-9]{1,9})\s*(?::\s*(-?[0-9]{1,9})\s*)?")

_LONGEST = (4000, 4000, 200, 60)
"""Maximum characters of a text for a pattern with this number of stars, so that matching takes a few milliseconds at
most."""


def transform(text: str, operator: str, operand: str) -> str | None:
    """The text after %, %%, #, ##, /, //, /#, /%, ^, ^^, `,`, `,,` or a substring; None for an unknown form."""
    if operator in ("%", "%%", "#", "##"):
        return _trim(text, operator, operand)
    if operator.startswith("/"):
        parts = re.split(r"(?<!\\)/", operand, maxsplit=1)
        pattern, new = parts[0], parts[1] if len(parts) > 1 else ""
        found = _pattern(pattern, True) if _manageable(text, pattern) else None
        if found is None or not pattern:
            return text if not pattern else None
        anchored = {"/#": f"(?:{found})", "/%": f"(?:{found})\\Z"}.get(operator, found)
        return re.sub(
            f"\\A{anchored}" if operator == "/#" else anchored,
            lambda _: new,
            text,
            count=0 if operator == "//" else 1,
            flags=re.DOTALL,
        )
    if operator in ("^", "^^", ",", ",,") and not operand:
        change = str.upper if operator[0] == "^" else str.lower
        return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
    return None


def substring(text: str, operand: str) -> str | None:
    """${NAME:offset:length}."""
    match = _SLICE.fullmatch(operand)
    if match is None:
        return None
    start = int(match[1])
    start = start + len(text) if start < 0 else start
    if match[2] is None:
        return text[start:] if 0 <= start <= len(text) else ""
    length = int(match[2])
    end = start + length if length >= 0 else len(text) + length
    return text[start:end] if 0 <= start <= len(text) and end >= start else None


def _trim(text: str, operator: str, operand: str) -> str | None:
    pattern = _pattern(operand, len(operator) == 2) if _manageable(text, operand) else None
    if pattern is None:
        return None
    if operator[0] == "#":
        match = re.match(pattern, text, re.DOTALL)
        return text[match.end() :] if match else text
    starts = range(len(text) + 1) if len(operator) == 2 else range(len(text), -1, -1)
    return next((text[:start] for start in starts if re.fullmatch(pattern, text[start:], re.DOTALL)), text)


def _manageable(text: str, pattern: str) -> bool:
    """Whether matching is fast: the work grows with the length to the power of the number of stars plus one."""
    return len(text) <= _LONGEST[min(pattern.count("*"), 3)]


def glob(pattern: str) -> re.Pattern[str] | None:
    """A shell pattern for a whole text."""
    found = _pattern(pattern, True)
    return re.compile(found, re.DOTALL) if found is not None else None


def _pattern(text: str, greedy: bool) -> str | None:
    """A shell pattern as a regular expression; None if it has unsupported forms or would take too long."""
    if text.count("*") > 3 or len(text) > 200:
        return None
    parts, at = [], 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            parts.append(".*" if greedy else ".*?")
        elif char == "?":
            parts.append(".")
        elif char == "\\" and at < len(text):
            parts.append(re.escape(text[at]))
            at += 1
        elif char == "[" and (match := re.compile(r"([!^]?)([\w.,-]+)\]").match(text, at)):
            parts.append(f"[{'^' if match[1] else ''}{match[2]}]")
            at = match.end()
        elif char in "[(":
            return None
        else:
            parts.append(re.escape(char))
    found = "".join(parts)
    try:
        re.compile(found)
    except re.error:  # a reversed range
        return None
    return found
