"""Assignments: plain, appending, of arrays and of their elements."""

from __future__ import annotations

import re

from preflight.loaders.document import Piece
from preflight.loaders.shell.alternatives import in_each
from preflight.loaders.shell.braces import words_at
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.expansion_forms import BARE, EXPANSIONS, QUOTES
from preflight.loaders.shell.state import Variable, bounded
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import UNREAD, Field, Value, fields, joined, merged, text_of, word
from preflight.source.pattern import lazy_pattern
from preflight.source.text import Span

_KEY = lazy_pattern(r"\[([^\]]+)\]=")


def assign(expander: Expander, tree: Tree, node: Node, exported: bool = False) -> None:
    """NAME=value, NAME+=value, NAME=( … ), NAME[i]=value."""
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None or node.type != "variable_assignment":
        return
    appends = any(child.type == "+=" for child in node.children)
    name = tree.text(target).partition("[")[0]
    old = expander.state.get(name)
    exported, sometimes = exported or (old is not None and old.exported), old is not None and old.sometimes
    place = tree.span(target)
    if appends and old is not None:
        expander.spend((len(old.items) + len(old.scalar)) // 100)  # all of it is copied
    if target.type == "subscript":
        forget(expander, tree, target.named_children[0])
    elif value is not None and value.type == "array":
        items, keys = _array(expander, tree, value)
        unread = ((Piece(None, place, exact=False, because=f"${name}{UNREAD}"),),) if expander.state.foreign else ()
        before = (old.items if old is not None else unread) if appends else ()
        expander.state.put(name, Variable((*before, *items), True, place, exported, keys, sometimes))
    else:
        made = expander.value(tree, value) if value is not None else (Piece("", place._replace(start=place.end + 1, end=place.end + 1)),)
        if appends and old is not None and old.array:
            expander.state.put(name, old._replace(items=(old.scalar + made, *old.items[1:])))
            return
        before_value = (old.scalar if old is not None else expander.unset(name, place)) if appends else ()
        others = _others(expander, tree, value, old.others if appends and old is not None else (), made)
        expander.state.put(name, Variable((bounded((*before_value, *made)),), False, place, exported, (), sometimes, others))


def _others(expander: Expander, tree: Tree, node: Node | None, before: tuple[Value, ...], made: Value) -> tuple[Value, ...]:
    """The commands that a variable may hold after an assignment: to those before it the new text is added; else those that the text is made of."""
    if before or node is None:
        return tuple(bounded((*value, *made)) for value in before)
    return tuple(bounded(value) for value in in_each(expander.state, tree.text(node), lambda: expander.value(tree, node)))


def _array(expander: Expander, tree: Tree, node: Node) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    items: list[Value] = []
    keys: list[str] = []
    for child in node.named_children:
        if child.type == "comment":
            continue
        if (key := _KEY.match(tree.text(child))) is not None:
            keys.append(key[1].strip("\"'"))
            place = Span(tree.source, child.start_byte + key.end(), child.end_byte)
            nodes = [c for c in child.named_children if (c.type in EXPANSIONS or c.type in QUOTES) and c.start_byte >= place.start]
            items.append(merged(joined(expander.mixed(tree, place, nodes, BARE, True), place)))
            continue
        for field in words_at(expander, tree, child):
            items.append(tuple(field.pieces) if not field.loose else tuple(p._replace(exact=False) for p in field.pieces))
    return tuple(items), tuple(keys)


def forget(expander: Expander, tree: Tree, node: Node) -> None:
    """A variable gets a value that is not computed here."""
    name, span = tree.text(node), tree.span(node)
    expander.state.put(name, Variable(((Piece(None, span, exact=False, because=f"${name}"),),), False, span))


def declare(expander: Expander, tree: Tree, node: Node) -> None:
    """export, declare, local, readonly with their assignments."""
    keyword = tree.text(node.children[0])
    if keyword in ("local", "declare", "typeset") and expander.locals:
        _shadow(expander, tree, node)
    exported = keyword == "export" or any(c.type == "word" and re.match(r"-\w*x", tree.text(c)) for c in node.named_children)
    for child in node.named_children:
        if child.type == "variable_assignment":
            assign(expander, tree, child, exported)
        elif child.type == "variable_name" and exported:
            old = expander.state.get(tree.text(child))
            if old is not None:
                expander.state.put(tree.text(child), old._replace(exported=True))
        elif child.type in ("concatenation", "string", "simple_expansion", "expansion"):
            for field in fields(expander.bits(tree, child)):
                _export(expander, field, exported)


def _shadow(expander: Expander, tree: Tree, node: Node) -> None:
    """Names of a function's own: when it ends they are again what they were."""
    for child in node.named_children:
        named = child.child_by_field_name("name") if child.type == "variable_assignment" else child
        if named is not None and named.type == "variable_name":
            name = tree.text(named)
            expander.locals[-1].setdefault(name, expander.state.get(name))


def _export(expander: Expander, field: Field, exported: bool) -> None:
    """export "NAME=value", where the grammar sees a word."""
    text = text_of(field.pieces)
    name, equals, value = (text or "").partition("=")
    if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
        whole = word(field, field.pieces[0].span)
        piece = Piece(value, whole.span, whole.uses, exact=False)
        expander.state.put(name, Variable(((piece,),), False, whole.span, exported))
