"""Expands words: quotes, variables, ${…}, $((…)); what cannot be known becomes an unknown piece that says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from preflight.loaders.document import Piece
from preflight.loaders.shell.expansion_forms import (
    BARE,
    DOUBLE,
    EXPANSIONS,
    HERE,
    QUOTES,
    Form,
    ansi,
    indices,
    is_arithmetic,
    is_list,
    listed,
    literal,
    literals,
    perhaps,
    read_form,
    shown,
    unknown,
)
from preflight.loaders.shell.numbers import arithmetic
from preflight.loaders.shell.parameter_values import Parameters
from preflight.loaders.shell.parameters import substring, transform
from preflight.loaders.shell.slices import elements_of, is_array
from preflight.loaders.shell.state import Changes, State, Variable
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Bit, Bits, Value, joined, merged, text_of, why
from preflight.source.text import Span

_SIMPLE = re.compile(r"\\.|\$([A-Za-z_]\w*|[0-9@*#?!-])", re.DOTALL)
MAX_DEPTH = 40


class Expander(Parameters):
    """Expands nodes of one tree over the state of a script. arguments: the positional parameters, None when not
    known."""

    def __init__(
        self, state: State, unset: Callable[[str, Span | None], Value], substitute: Callable[[Tree, Node], Value | None]
    ) -> None:
        super().__init__(state, unset)
        self.substitute = substitute
        self.locals: list[Changes] = []

    def bits(self, tree: Tree, node: Node, quoted: bool = False) -> Bits:
        """The expansion of a node of any kind that can be a word or part of one."""
        kind = node.type
        self.spend(1)
        if kind == "string":
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

    def value(self, tree: Tree, node: Node) -> Value:
        """The expansion as the value of an assignment: nothing is cut into words."""
        return merged(joined(self.bits(tree, node, quoted=True), tree.span(node)))

    def text(self, tree: Tree, node: Node) -> str | None:
        return text_of(self.value(tree, node))

    def mixed(
        self, tree: Tree, span: Span, nodes: Sequence[Node], escape: re.Pattern[str], quoted: bool, loose: bool = False
    ) -> Bits:
        """Literal text with expansions in it. loose: blanks in the literal text end a word."""
        found: Bits = []
        at = span.start
        for node in nodes:
            place = tree.span(node)
            found += self._gap(tree, Span(span.source, at, max(at, place.start)), escape, quoted, loose)
            found += self.bits(tree, node, quoted)
            at = max(at, place.end)
        return found + self._gap(tree, Span(span.source, at, max(at, span.end)), escape, quoted, loose)

    def _gap(self, tree: Tree, span: Span, escape: re.Pattern[str], quoted: bool, loose: bool) -> Bits:
        """Literal text, and simple variables that the grammar has not seen."""
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
            return [Bit(Piece(None, span, exact=False, because="an expansion nested too deep"))]
        self.depth += 1
        try:
            if node.type == "arithmetic_expansion" or is_arithmetic(span.text):
                return [Bit(arithmetic(self, tree, node, span))]
            if node.type in ("simple_expansion", "expansion"):
                return self._parameter(tree, node, span, quoted)
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
        """${X:-d} and kin. What is not set in the script is taken as not set."""
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
        if operator == "=" and (name[:1].isalpha() or name[:1] == "_"):
            self.state.put(name, Variable((merged(joined(bits, span)),), False, span))
        return bits

    def _operand(self, tree: Tree, node: Node, form: Form, span: Span, quoted: bool) -> Bits:
        place = Span(span.source, span.start + 2 + form.start, span.end - 1)
        nodes = [
            c
            for c in node.named_children
            if (c.type in EXPANSIONS or (c.type in QUOTES and not quoted)) and tree.span(c).start >= place.start
        ]
        nodes += [
            c
            for w in node.named_children
            if w.type == "concatenation"
            for c in w.named_children
            if c.type in EXPANSIONS or c.type in QUOTES
        ]
        nodes.sort(key=lambda c: int(c.start_byte))
        strings = quoted and bool(nodes == []) and place.text[:1] == '"' == place.text[-1:] and len(place.text) > 1
        if strings:
            place = Span(place.source, place.start + 1, place.end - 1)
        return self.mixed(tree, place, nodes, DOUBLE if quoted else BARE, quoted, loose=not quoted)

    def _prefixed(self, form: Form, span: Span, quoted: bool) -> Bit:
        """${#X} and ${!X}."""
        inner = form._replace(prefix="")
        found = self.lookup(inner, span)
        if form.prefix == "#" and form.whole:
            known = self.state.get(form.name) is not None or (form.name in "@*" and self.arguments is not None)
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
        operand = text_of(joined(self._operand(tree, node, form, span, True), span))
        if text is None or operand is None:
            return Piece(None, span, exact=False, because=why(value) or span.text)
        made = substring(text, operand) if form.operator == ":" else transform(text, form.operator, operand)
        return Piece(made, span, exact=False, because="" if made is not None else span.text)

    def document(self, tree: Tree, span: Span, body: Node) -> list[Bit]:
        """A here-document's text."""
        nodes = [child for child in body.named_children if child.type in EXPANSIONS]
        return [bit for bit in self.mixed(tree, span, nodes, HERE, True) if isinstance(bit, Bit)]
