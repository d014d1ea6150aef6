"""Keys of YAML that stand twice in a mapping, noted for the rule that reports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.loaders.document import Entry, Node, Problem
from preflight.source.message import Message

_SAME_VALUE = "the key {key!r} is set here and again on line {line} with the same value; the last one takes effect"
_OTHER_VALUE = (
    "the key {key!r} is set here and again on line {line} with another value ({before}, then {after}); the last "
    "one takes effect"
)
_MORE = "{count} more keys from here on are set again further down; the last one takes effect"
MAX_DUPLICATES = 1000
"""So many are noted one by one."""


def duplicate_keys(found: Sequence[tuple[Entry, Entry]]) -> Iterator[Problem]:
    """Each key with the one that wins: the first ones each, the others by their number."""
    values: dict[int, object] = {}
    for first, winner in found[:MAX_DUPLICATES]:
        same = _known(first.value, values) == _known(winner.value, values)
        yield _duplicate_key(first, winner, same)
    if left := found[MAX_DUPLICATES:]:
        yield Problem("duplicate-key", Message(_MORE, count=len(left)), left[0][0].key.span)


def _known(node: Node, values: dict[int, object]) -> object:
    """The plain value of a node, made once: a thousand duplicates have one winner."""
    if (value := values.get(id(node), values)) is values:
        value = values[id(node)] = node.plain()
    return value


def _duplicate_key(first: Entry, winner: Entry, same: bool) -> Problem:
    message = Message(
        _SAME_VALUE if same else _OTHER_VALUE,
        key=first.key.value,
        line=winner.key.span.line,
        before=_brief(first.value),
        after=_brief(winner.value),
    )
    return Problem("duplicate-key", message, first.key.span, (winner.key.span,), harmless=same)


def _brief(node: Node) -> str:
    if node.kind == "scalar":
        return node.span.text[:30]
    return "a sequence" if node.kind == "sequence" else "a mapping"
