"""The values of names in Python programs, as far as they are literals. Programs are parsed, never run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from preflight.loaders.document import Piece, Word, word_of
from preflight.loaders.launchers import CommandError, split_command
from preflight.source.source_file import Source, Span

MOST_WORDS, MAX_TEXT, MAX_NESTING, LONGEST_LINE = 2000, 20_000, 40, 5000
Known = list[Word] | Word
"""A list of words, or a single word."""


class Values:
    """Values by name; an unknown one is a word without a text."""

    def __init__(self, source: Source, known: dict[str, Known] | None = None) -> None:
        self.source, self.known = source, dict(known or {})
        self.lines = source.text.split("\n")

    def inside(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Values:
        """In a function: its parameters are unknown, and so are its global declarations."""
        inner = Values(self.source, self.known)
        arguments = function.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ):
            inner.known.pop(argument.arg if argument is not None else "", None)
        return inner

    def take(self, statement: ast.stmt) -> None:
        """Follow one statement."""
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            self._put(statement.targets[0].id, self.value(statement.value))
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            self._put(statement.target.id, self.value(statement.value))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            self._add(statement.target.id, self.value(statement.value))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._grow(statement.value)
        else:
            self.forget([statement])

    def _grow(self, call: ast.Call) -> None:
        """list.append and list.extend."""
        function = call.func
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name) or len(call.args) != 1:
            return
        value = self.value(call.args[0])
        if function.attr == "append":
            self._add(function.value.id, [value] if isinstance(value, Word) else None)
        elif function.attr == "extend":
            self._add(function.value.id, value)
        elif function.attr in ("insert", "remove", "pop", "clear", "update"):
            self.known.pop(function.value.id, None)

    def _add(self, name: str, value: Known | None) -> None:
        self._put(name, _added(self.known.get(name), value))

    def _put(self, name: str, value: Known | None) -> None:
        if value is None or (isinstance(value, list) and len(value) > MOST_WORDS):
            self.known.pop(name, None)
        else:
            self.known[name] = value

    def forget(self, statements: Sequence[ast.stmt]) -> None:
        """Names that a branch or a loop may set or change are unknown."""
        for node in (node for statement in statements for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.known.pop(node.id, None)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                self.known.pop(
                    node.value.id if node.attr in ("append", "extend", "insert", "remove", "pop") else "", None
                )

    def command(self, arguments: Sequence[ast.expr]) -> Sequence[Word] | None:
        """The words of a command: a list, or a text split as in a shell."""
        value = self.value(
            arguments[-1] if len(arguments) == 2 and isinstance(arguments[1], ast.List) else arguments[0]
        )
        if isinstance(value, Word):
            try:
                return split_command(value)
            except CommandError:
                return None
        return value or None

    def value(self, node: ast.expr, depth: int = 0) -> Known | None:
        """A word, a list of words, or None if a list may have any."""
        if depth > MAX_NESTING:
            return None
        if isinstance(node, ast.List | ast.Tuple):
            return self._list(node.elts, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
            return _added(left, right)
        if isinstance(node, ast.Name):
            return self.known.get(node.id, self._unknown(node))
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return self._text(node)

    def _list(self, nodes: Sequence[ast.expr], depth: int) -> Known | None:
        words: list[Word] = []
        for node in nodes:
            found = self.value(node.value if isinstance(node, ast.Starred) else node, depth + 1)
            if isinstance(node, ast.Starred) and isinstance(found, list):
                words += found
            elif isinstance(found, Word) and (found.text is None or not isinstance(node, ast.Starred)):
                words.append(found)
            else:
                return None
        return words if len(words) <= MOST_WORDS else None

    def _called(self, node: ast.Call, depth: int) -> Known | None:
        """str(x), "…".split(), " ".join(list)."""
        function = node.func
        if isinstance(function, ast.Name) and function.id == "str" and len(node.args) == 1:
            return self.value(node.args[0], depth + 1)
        if isinstance(function, ast.Attribute) and function.attr == "split":
            text = self.value(function.value, depth + 1)
            return split_command(text) if isinstance(text, Word) and not set(text.text or "'") & set("'\"\\") else None
        if isinstance(function, ast.Attribute) and function.attr == "join" and len(node.args) == 1:
            words, blank = self.value(node.args[0], depth + 1), self.value(function.value, depth + 1)
            if isinstance(words, list) and words and isinstance(blank, Word):
                return _joined([part for word in words for part in (blank, word)][1:])
        return self._unknown(node)

    def _text(self, node: ast.expr) -> Word:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float)
            and not isinstance(node.value, bool)
        ):
            return Word(str(node.value)[:MAX_TEXT], self.span(node), editable=False)
        if isinstance(node, ast.JoinedStr):
            made = [self.value(p.value, 1) if isinstance(p, ast.FormattedValue) else self._text(p) for p in node.values]
            parts = [part for part in made if isinstance(part, Word)]
            if parts and len(parts) == len(made):
                return _joined(parts, self.span(node))
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) == ("sys", "executable")
        ):
            return Word("python", self.span(node), editable=False)
        return self._unknown(node)

    def _unknown(self, node: ast.expr) -> Word:
        span = self.span(node)
        return Word(None, span, because=span.text[:40], editable=False)

    def span(self, node: ast.expr) -> Span:
        """The place of a node; columns in the syntax tree count bytes."""
        start = self._offset(node.lineno, node.col_offset)
        return Span(
            self.source, start, self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        )

    def _offset(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if len(text) > LONGEST_LINE:
            return self.source.starts[line - 1]
        before = text.encode("utf-8")[:column].decode("utf-8", "ignore")
        return min(self.source.starts[line - 1] + len(before), len(self.source.text))


def _added(one: Known | None, other: Known | None) -> Known | None:
    """The sum of two lists or texts. An unknown operand may be any additional words of a list."""
    if isinstance(one, list):
        more = other if isinstance(other, list) else [other] if isinstance(other, Word) and other.text is None else None
        return one + more if more is not None and len(one) + len(more) <= MOST_WORDS else None
    return _joined([one, other]) if isinstance(one, Word) and isinstance(other, Word) else None


def _joined(words: Sequence[Word], span: Span | None = None) -> Word:
    """Texts put together."""
    if sum(len(word.text or "") for word in words) > MAX_TEXT:
        return Word(None, span or words[0].span, because="a string that is too long", editable=False)
    pieces = [Piece(word.text, span or word.span, (), False, word.because) for word in words]
    return word_of(tuple(pieces))
