"""Expands words: quotes, variables, ${…}, $((…)); unknown parts become unknown pieces."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from preflight.loaders.document import Piece
from preflight.loaders.shell.arithmetic import NotKnown, arithmetic, evaluate, number
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.expansion_forms import (
    BARE,
    DOUBLE,
    EXPANSIONS,
    HERE,
    NOWHERE,
    QUOTES,
    Form,
    ansi,
    any_number,
    elements,
    indices,
    is_arithmetic,
    is_list,
    listed,
    literal,
    literals,
    perhaps,
    read_form,
    shown,
    splits,
    substring,
    transform,
    unknown,
)
from preflight.loaders.shell.state import Changes, Expands, State, Variable
from preflight.loaders.shell.word_splitting import Bit, Bits, Value, joined, merged, text_of, why
from preflight.source.budget import may_step
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span


def is_array(state: State, form: Form) -> bool:
    """Whether a form with [@] means a list; for a plain variable it is its text."""
    variable = state.get(form.name)
    return form.name in ("@", "*") or (variable is not None and variable.array)


def subscript(expander: Expands, variable: Variable, text: str, span: Span) -> str:
    """The subscript of A[$i], A[i+1], or of an associative array."""
    if variable.keys:
        name = text.lstrip("$").strip("{}")
        other = expander.state.get(name) if text.startswith("$") else None
        return (text_of(other.scalar) or text) if other is not None else text
    try:
        return str(_number(expander, text, span))
    except NotKnown:
        return text


def elements_of(expander: Expands, values: list[Value], operand: str, span: Span) -> list[Value] | None:
    """The values that `offset:length` selects from a list; None if unknown, or if bash rejects it."""
    offset, colon, length = operand.partition(":")
    try:
        start = _number(expander, offset.strip() or "0", span)
        count = _number(expander, length.strip() or "0", span) if colon else len(values)
    except NotKnown:
        return None
    start = start + len(values) if start < 0 else start
    if count < 0:
        return None
    return values[start : start + count] if start >= 0 else []


def _number(expander: Expands, text: str, span: Span) -> int:
    return evaluate(text, lambda name: number(expander, name, span))


MAX_WORK = 60_000
_OF_A_JOB = lazy_pattern(r"(?:SLURMD?|PBS|LSB|OMPI|PMIX?|FLUX|COBALT|PJM|SGE|OAR)_\w+")
"""Variables that a scheduler or mpirun sets in a job, not the script or its caller."""
_COUNT_OF_A_JOB = lazy_pattern(r"(?:SLURM_(?:JOB_NUM_NODES|NNODES|NTASKS|NPROCS)|PBS_NUM_NODES|FLUX_JOB_NNODES)")


class Exhausted(Exception):
    """Raised if a script takes too much work."""


class Parameters(ABC):
    """The parameters of a script over its state. arguments: the positional ones, None if unknown."""

    def __init__(self, state: State, unset: Callable[[str, Span | None], Value]) -> None:
        self.state, self.unset = state, unset
        self.arguments: list[Value] | None = None
        self.depth = self.work = 0

    @abstractmethod
    def value(self, tree: Tree, node: Node) -> Value:
        """The expansion of a node."""

    def spend(self, work: int) -> None:
        """Count work. Raises Exhausted."""
        self.work += work
        if self.work > MAX_WORK or not may_step(work):
            raise Exhausted

    def lookup(self, form: Form, span: Span, quoted: bool = False) -> list[Value]:
        """The values of a parameter: several for arrays and "$@", none if empty, unknown if unset. quoted: values are
        not split into words, which is the slow part."""
        name = form.name
        if name in ("@", "*"):
            return self.arguments if self.arguments is not None else [(Piece(None, span, exact=False, because="$@"),)]
        if (
            name.isdecimal()
            and name != "0"
            and self.arguments is not None
            and not any_number(self.arguments[: int(name[:6])])
        ):
            return self.arguments[int(name) - 1 : int(name)] if len(name) < 6 else []
        if name == "#" and self.arguments is not None and not any_number(self.arguments):
            return [(Piece(str(len(self.arguments)), span, exact=False),)]
        if not (name[:1].isalpha() or name[:1] == "_"):
            return [(Piece(None, span, exact=False, because=f"${name}"),)]
        variable = self.state.get(name)
        if variable is None:
            self.state.miss(name)
            return [self.unset(name, span)]
        if form.subscript and not form.whole and not form.subscript.lstrip("-").isdecimal():
            form = form._replace(subscript=subscript(self, variable, form.subscript, span))
        share = 100 if quoted else 10
        self.spend(sum(1 + len(piece.text or "") // share for value in variable.items for piece in value))
        return elements(variable, form, span)

    def is_set(self, form: Form) -> bool:
        """Whether a parameter has a value, even an empty one."""
        if form.name in ("@", "*") or form.name.isdecimal():
            return self.arguments is not None and bool(self.lookup(form, Span(NOWHERE, 0, 0)))
        if form.name in self.state.variables:
            return True
        value = self.unset(form.name, None)
        return text_of(value) is not None


_SIMPLE = lazy_pattern(r"\\.|\$([A-Za-z_]\w*|[0-9@*#?!-])", re.DOTALL)
MAX_DEPTH = 40


class Expander(Parameters):
    """Expands nodes of one tree over the state of a script. arguments: the positional parameters, None when not
    known; inside: whether the place is between double quotes, where other quotes are text."""

    def __init__(
        self, state: State, unset: Callable[[str, Span | None], Value], substitute: Callable[[Tree, Node], Value | None]
    ) -> None:
        super().__init__(state, unset)
        self.substitute = substitute
        self.locals: list[Changes] = []
        self.inside = False

    def bits(self, tree: Tree, node: Node, quoted: bool = False) -> Bits:
        """The expansion of a node of any kind that can be a word or part of one."""
        kind = node.type
        self.spend(1)
        if kind == "string":
            with self._quoting(True):
                return self._string(tree, node)
        if kind == "raw_string":
            return [literal(Span(tree.source, node.start_byte + 1, max(node.start_byte + 1, node.end_byte - 1)))]
        if kind == "ansi_c_string":
            return [ansi(tree.span(node))]
        if kind == "concatenation":
            return [bit for child in node.children for bit in self.bits(tree, child, quoted)]
        if kind == "translated_string":
            return [bit for child in node.named_children for bit in self.bits(tree, child, quoted)]
        if kind in EXPANSIONS:
            return self._bounded(tree, node, quoted)
        return self.mixed(
            tree,
            tree.span(node),
            [c for c in node.named_children if c.type in EXPANSIONS or c.type in QUOTES],
            BARE,
            quoted,
        )

    @contextmanager
    def _quoting(self, inside: bool) -> Iterator[None]:
        """The construct that contains a place, while that place is read."""
        before, self.inside = self.inside, inside
        try:
            yield
        finally:
            self.inside = before

    def value(self, tree: Tree, node: Node) -> Value:
        """The expansion as the value of an assignment, without word splitting."""
        return merged(joined(self.bits(tree, node, quoted=True), tree.span(node)))

    def text(self, tree: Tree, node: Node) -> str | None:
        return text_of(self.value(tree, node))

    def mixed(
        self, tree: Tree, span: Span, nodes: Sequence[Node], escape: re.Pattern[str], quoted: bool, loose: bool = False
    ) -> Bits:
        """Literal text containing expansions. loose: blanks in the literal text end a word."""
        found: Bits = []
        at = span.start
        for node in nodes:
            place = tree.span(node)
            found += self._gap(tree, Span(span.source, at, max(at, place.start)), escape, quoted, loose)
            found += self.bits(tree, node, quoted)
            at = max(at, place.end)
        return found + self._gap(tree, Span(span.source, at, max(at, span.end)), escape, quoted, loose)

    def _gap(self, tree: Tree, span: Span, escape: re.Pattern[str], quoted: bool, loose: bool) -> Bits:
        """Literal text, and simple variables that the grammar misses."""
        found: Bits = []
        at = span.start
        for match in _SIMPLE.finditer(span.text) if "$" in span.text else ():
            if match[1] is None:
                continue
            place = Span(span.source, span.start + match.start(), span.start + match.end())
            found += literals(Span(span.source, at, place.start), escape, loose)
            found += self._parameter(tree, tree.root, place, quoted)
            at = place.end
        return found + literals(Span(span.source, at, span.end), escape, loose)

    def _string(self, tree: Tree, node: Node) -> Bits:
        inner = Span(tree.source, node.start_byte + 1, max(node.start_byte + 1, node.end_byte - 1))
        nodes = [child for child in node.named_children if child.type in EXPANSIONS]
        found = self.mixed(tree, inner, nodes, DOUBLE, True)
        only_list = len(nodes) == 1 and tree.span(nodes[0])[1:] == inner[1:] and is_list(inner.text)
        return found if found or only_list else [Bit(Piece("", inner, exact=inner.start == inner.end))]

    def _bounded(self, tree: Tree, node: Node, quoted: bool) -> Bits:
        span = tree.span(node)
        if self.depth > MAX_DEPTH:
            return [Bit(Piece(None, span, exact=False, because="an expansion that is nested too deeply"))]
        self.depth += 1
        try:
            if node.type == "arithmetic_expansion" or is_arithmetic(span.text):
                return [Bit(arithmetic(self, tree, node, span))]
            if node.type in ("simple_expansion", "expansion"):
                return self._parameter(tree, node, span, quoted)
            with self._quoting(False):
                value = self.substitute(tree, node)
            pieces = value if value is not None else (Piece(None, span, exact=False, because=shown(span)),)
            return [Bit(piece, not quoted) for piece in pieces]
        finally:
            self.depth -= 1

    def _parameter(self, tree: Tree, node: Node, span: Span, quoted: bool) -> Bits:
        form = read_form(span.text)
        if form is None:
            return [unknown(span, shown(span), quoted)]
        if form.prefix == "!" and form.whole:
            return indices(self.state.get(form.name), form, span, quoted)
        if form.prefix:
            return [self._prefixed(form, span, quoted)]
        if form.operator and form.operator.lstrip(":") in ("-", "=", "+", "?"):
            return self._conditional(tree, node, form, span, quoted)
        if form.operator == ":" and form.whole and is_array(self.state, form):
            return self._slice(tree, node, form, span, quoted)
        found = self.lookup(form, span, quoted)
        if form.operator and form.whole == "@" and text_of(found[0] if found else ()) is None and form.name == "@":
            return listed(found, span, quoted, form.whole)
        if form.operator:
            found = [(self._transformed(tree, node, form, span, value),) for value in found]
        return listed(found, span, quoted, form.whole)

    def _slice(self, tree: Tree, node: Node, form: Form, span: Span, quoted: bool) -> Bits:
        """${A[@]:offset:length} and ${@:offset:length}: some of the elements."""
        values = self.lookup(form, span)
        if form.name in ("@", "*"):
            if self.arguments is None:
                return listed(values, span, quoted, form.whole)
            values = [(Piece("bash", span, exact=False),), *values]
        operand = text_of(joined(self._operand(tree, node, form, span, True), span))
        chosen = elements_of(self, values, operand, span) if operand is not None else None
        return listed(chosen, span, quoted, form.whole) if chosen is not None else [unknown(span, shown(span), quoted)]

    def _conditional(self, tree: Tree, node: Node, form: Form, span: Span, quoted: bool) -> Bits:
        """${X:-d} and similar forms. A variable that the script does not set counts as unset."""
        name, operator = form.name, form.operator.lstrip(":")
        is_set = is_there = self.is_set(form)
        found = self.lookup(form, span) if is_set else []
        if is_set and form.operator.startswith(":") and all(text_of(value) == "" for value in found):
            is_set = False
        if operator == "+":
            if is_set:
                return self._operand(tree, node, form, span, quoted)
            return (
                []
                if is_there or self.state.get(name) is not None
                else [perhaps(bit) for bit in self._operand(tree, node, form, span, quoted)]
            )
        if is_set:
            return listed(found, span, quoted, form.whole)
        if operator == "?":
            return [unknown(span, f"${name}", quoted)]
        bits = self._operand(tree, node, form, span, quoted)
        # `[ -n "${SLURM_JOB_ID:-}" ]` asks whether a job runs this, ${SLURM_NNODES:-$NNODES} for its nodes
        if (not bits and _OF_A_JOB.fullmatch(name)) or (_COUNT_OF_A_JOB.fullmatch(name) and ":-$" in span.text):
            return [unknown(span, f"${name}", quoted)]
        if operator == "=" and (name[:1].isalpha() or name[:1] == "_"):
            self.state.put(name, Variable((merged(joined(bits, span)),), False, span))
        return bits

    def _operand(self, tree: Tree, node: Node, form: Form, span: Span, quoted: bool) -> Bits:
        place = Span(span.source, span.start + 2 + form.start, span.end - 1)
        quotes = frozenset(("string",)) if self.inside else QUOTES
        nodes = [c for c in node.named_children if c.type in EXPANSIONS | quotes and tree.span(c).start >= place.start]
        nodes += [
            c
            for w in node.named_children
            if w.type == "concatenation"
            for c in w.named_children
            if c.type in EXPANSIONS | quotes
        ]
        nodes.sort(key=lambda c: int(c.start_byte))
        is_pattern = form.operator.lstrip(":") not in ("-", "=", "+", "?")  # a backslash stays in it
        escape = DOUBLE if self.inside or is_pattern else BARE
        return self.mixed(tree, place, nodes, escape, quoted, loose=not quoted)

    def _prefixed(self, form: Form, span: Span, quoted: bool) -> Bit:
        """${#X} and ${!X}."""
        inner = form._replace(prefix="")
        found = self.lookup(inner, span)
        if form.prefix == "#" and form.whole:
            known = self.state.get(form.name) is not None or (form.name in "@*" and self.arguments is not None)
            known = known and not any(map(splits, found))
            return Bit(Piece(str(len(found)), span, exact=False)) if known else unknown(span, f"${form.name}", quoted)
        text = text_of(found[0]) if found else ""
        if text is None or form.prefix not in ("#", "!"):
            return unknown(span, why(found[0]) if found else span.text, quoted)
        if form.prefix == "#":
            return Bit(Piece(str(len(text)), span, exact=False))
        other = self.state.get(text)
        value = other.scalar if other is not None else ()
        known_text = text_of(value) if other is not None else None
        return Bit(
            Piece(known_text, span, exact=False, because="" if known_text is not None else f"${{!{form.name}}}"),
            not quoted,
        )

    def _transformed(self, tree: Tree, node: Node, form: Form, span: Span, value: Value) -> Piece:
        text = text_of(value)
        with self._quoting(False):  # quotes in a pattern are quotes everywhere
            operand = text_of(joined(self._operand(tree, node, form, span, True), span))
        if text is None or operand is None:
            return Piece(None, span, exact=False, because=why(value) or span.text)
        made = substring(text, operand) if form.operator == ":" else transform(text, form.operator, operand)
        return Piece(made, span, exact=False, because="" if made is not None else span.text)

    def document(self, tree: Tree, span: Span, body: Node) -> Value:
        """The text of a here-document, in which blanks separate the elements of an array."""
        nodes = [child for child in body.named_children if child.type in EXPANSIONS]
        with self._quoting(True):
            return joined(self.mixed(tree, span, nodes, HERE, True), span)
