"""Assignments: plain, appending, of arrays and of their elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from preflight.loaders.document import Launch, Piece
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.expansion_forms import BARE, EXPANSIONS, QUOTES
from preflight.loaders.shell.state import State, Variable, bounded
from preflight.loaders.shell.word_splitting import UNREAD, Field, Value, fields, joined, merged, text_of, word
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span
from preflight.source.typing_without_import import TypeVar

MOST_WORDS = 128
MAX_TEXT = 2000
_PLAIN = lazy_pattern(r"[^\s\"'$`\\<>|&;()]*")
_RANGE = lazy_pattern(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")


class TooMany(Exception):
    """Raised if a word expands to too many words."""


def words_at(expander: Expander, tree: Tree, node: Node) -> list[Field]:
    """The words that a node expands to."""
    text = tree.text(node)
    inside = text.partition("{")[2].rpartition("}")[0]
    listed = "," in inside or ".." in inside
    if not listed or len(text) > MAX_TEXT or not _PLAIN.fullmatch(text):
        return fields(expander.bits(tree, node))
    span = tree.span(node)
    try:
        found = list(_expanded(text))
    except TooMany:
        return [Field([Piece(None, span, exact=False, because=text[:40])], True)]
    expander.spend(len(found))
    if found == [text]:
        return fields(expander.bits(tree, node))
    return [_field(word, span) for word in found if word]


def _field(word: str, span: Span) -> Field:
    return Field([Piece(word, span, exact=False)])


def _expanded(text: str) -> Iterator[str]:
    """Every word. Raises TooMany."""
    waiting, count = [text], 0
    while waiting:
        word = waiting.pop()
        parts = _first_braces(word)
        if parts is None:
            count += 1
            yield word
        else:
            before, inner, after = parts
            waiting += [f"{before}{one}{after}" for one in reversed(inner)]
        if count + len(waiting) > MOST_WORDS:
            raise TooMany


def _first_braces(word: str) -> tuple[str, list[str], str] | None:
    """The text before, in and after the first braces that bash expands."""
    for start in (at for at, sign in enumerate(word) if sign == "{"):
        end, commas = _closing(word, start)
        if end < 0:
            continue
        inner = word[start + 1 : end]
        if commas:
            cuts = [start, *commas, end]
            return word[:start], [word[a + 1 : b] for a, b in pairwise(cuts)], word[end + 1 :]
        if (listed := _range(inner)) is not None:
            return word[:start], listed, word[end + 1 :]
    return None


def _closing(word: str, start: int) -> tuple[int, list[int]]:
    """The end of braces, and the commas that are not in inner braces."""
    depth, commas = 0, list[int]()
    for at in range(start, len(word)):
        depth += {"{": 1, "}": -1}.get(word[at], 0)
        if depth == 0:
            return at, commas
        if word[at] == "," and depth == 1:
            commas.append(at)
    return -1, []


def _range(inner: str) -> list[str] | None:
    """The words of 1..4 or a..d. Raises TooMany."""
    match = _RANGE.fullmatch(inner)
    if match is None or match[1].isalpha() != match[2].isalpha():
        return None
    letters = match[1].isalpha()
    first, last = (ord(match[1]), ord(match[2])) if letters else (int(match[1]), int(match[2]))
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step >= MOST_WORDS:
        raise TooMany
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    width = max(len(match[1]), len(match[2])) if _padded(match[1]) or _padded(match[2]) else 0
    return [chr(n) if letters else f"{n:0{width}d}" for n in numbers]


def _padded(number: str) -> bool:
    return len(number.lstrip("-")) > 1 and number.lstrip("-").startswith("0")


_NAME = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
T = TypeVar("T")


def in_each(state: State, text: str, read: Callable[[], T]) -> Iterator[T]:
    """The results of reading a text for each command that its first variable with alternatives may hold; empty without
    such a variable."""
    found = _several(state, text) if state.several else None
    if found is None:
        return
    name, variable = found
    for value in variable.others:
        with state.frame() as changes:
            state.put(name, variable._replace(items=(value,), others=()))
            made = read()
        state.undo(changes)
        yield made


def _several(state: State, text: str) -> tuple[str, Variable] | None:
    for match in _NAME.finditer(text):
        variable = state.get(match[1])
        if variable is not None and variable.others:
            return match[1], variable
    return None


def distinct(found: Sequence[T], launch: Callable[[T], Launch]) -> list[T]:
    """Launches without duplicates: two that differ only in a leading profiler count as one."""
    kept: dict[object, T] = {}
    for item in found:
        one = launch(item)
        kept.setdefault((one.entry.span, tuple(word.span for word in one.words), one.world), item)
    return list(kept.values())


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
        expander.spend((len(old.items) + len(old.scalar)) // 100)  # the whole array is copied
    if target.type == "subscript":
        forget(expander, tree, target.named_children[0])
    elif value is not None and value.type == "array":
        items, keys = _array(expander, tree, value)
        unread = ((Piece(None, place, exact=False, because=f"${name}{UNREAD}"),),) if expander.state.foreign else ()
        before = (old.items if old is not None else unread) if appends else ()
        items = (*before, *items)
        if appends and old is not None and old.keys and len(items) == len(old.keys) + len(keys):
            table = dict(zip((*old.keys, *keys), items, strict=True))  # a new value takes the place of an old one
            items, keys = tuple(table.values()), tuple(table)
        expander.state.put(name, Variable(items, True, place, exported, keys, sometimes))
    else:
        made = (
            expander.value(tree, value)
            if value is not None
            else (Piece("", place._replace(start=place.end + 1, end=place.end + 1)),)
        )
        if appends and old is not None and old.array:
            expander.state.put(name, old._replace(items=(old.scalar + made, *old.items[1:])))
            return
        if not appends and old is not None and old.array and len(old.items) > 1 and not old.keys:
            expander.state.put(name, old._replace(items=(bounded(made), *old.items[1:]), place=place))
            return  # without an index it sets the first element
        before_value = (old.scalar if old is not None else expander.unset(name, place)) if appends else ()
        others = _others(expander, tree, value, old.others if appends and old is not None else (), made)
        expander.state.put(
            name, Variable((bounded((*before_value, *made)),), False, place, exported, (), sometimes, others)
        )


def _others(
    expander: Expander, tree: Tree, node: Node | None, before: tuple[Value, ...], made: Value
) -> tuple[Value, ...]:
    """The commands that a variable may hold after an assignment: the earlier ones with the new text added, otherwise
    those in the text."""
    if before or node is None:
        return tuple(bounded((*value, *made)) for value in before)
    return tuple(
        bounded(value) for value in in_each(expander.state, tree.text(node), lambda: expander.value(tree, node))
    )


def _array(expander: Expander, tree: Tree, node: Node) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    items: list[Value] = []
    keys: list[str] = []
    for child in node.named_children:
        if child.type == "comment":
            continue
        if (key := _KEY.match(tree.text(child))) is not None:
            keys.append(_key(expander, key[1].strip("\"'")))
            place = Span(tree.source, child.start_byte + key.end(), child.end_byte)
            nodes = [
                c
                for c in child.named_children
                if (c.type in EXPANSIONS or c.type in QUOTES) and c.start_byte >= place.start
            ]
            items.append(merged(joined(expander.mixed(tree, place, nodes, BARE, True), place)))
            continue
        for field in words_at(expander, tree, child):
            items.append(
                tuple(field.pieces) if not field.loose else tuple(p._replace(exact=False) for p in field.pieces)
            )
    return tuple(items), tuple(keys)


def _key(expander: Expander, text: str) -> str:
    """A key of an associative array; that of an unknown variable stays as it is written."""
    known = expander.state.get(text.lstrip("$").strip("{}")) if text.startswith("$") else None
    return (text_of(known.scalar) or text) if known is not None else text


def forget(expander: Expander, tree: Tree, node: Node) -> None:
    """Set a variable to an unknown value."""
    name, span = tree.text(node), tree.span(node)
    expander.state.put(name, Variable(((Piece(None, span, exact=False, because=f"${name}"),),), False, span))


def declare(expander: Expander, tree: Tree, node: Node) -> None:
    """export, declare, local and readonly with assignments."""
    keyword = tree.text(node.children[0])
    if keyword in ("local", "declare", "typeset") and expander.locals:
        _shadow(expander, tree, node)
    exported = keyword == "export" or _has_option(tree, node, "x")
    refers = keyword in ("local", "declare", "typeset") and _has_option(tree, node, "n")
    for child in node.named_children:
        if child.type == "variable_assignment":
            assign(expander, tree, child, exported)
            if refers:
                _refer(expander, tree, child)
        elif child.type == "variable_name" and exported:
            old = expander.state.get(tree.text(child))
            if old is not None:
                expander.state.put(tree.text(child), old._replace(exported=True))
        elif child.type in ("concatenation", "string", "simple_expansion", "expansion"):
            for field in fields(expander.bits(tree, child)):
                _export(expander, field, exported)


def _has_option(tree: Tree, node: Node, letter: str) -> bool:
    options = (tree.text(child) for child in node.named_children if child.type == "word")
    return any(option.startswith("-") and letter in option for option in options)


def _refer(expander: Expander, tree: Tree, node: Node) -> None:
    """`local -n NAME=OTHER`: NAME reads the other variable, as it is here, if it is a table to look things up in."""
    named = node.child_by_field_name("name")
    name = tree.text(named) if named is not None else ""
    reference = expander.state.get(name)
    other = expander.state.get(text_of(reference.scalar) or "") if reference is not None else None
    if other is not None and other.keys:
        expander.state.put(name, other)


def _shadow(expander: Expander, tree: Tree, node: Node) -> None:
    """Local names of a function: they are restored when it ends."""
    for child in node.named_children:
        named = child.child_by_field_name("name") if child.type == "variable_assignment" else child
        if named is not None and named.type == "variable_name":
            name = tree.text(named)
            expander.locals[-1].setdefault(name, expander.state.get(name))


def _export(expander: Expander, field: Field, exported: bool) -> None:
    """export "NAME=value", which is a word in the grammar."""
    text = text_of(field.pieces)
    name, equals, value = (text or "").partition("=")
    if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
        whole = word(field, field.pieces[0].span)
        piece = Piece(value, whole.span, whole.uses, exact=False)
        expander.state.put(name, Variable(((piece,),), False, whole.span, exported))
