"""Commands that a variable may hold one of: what each branch of a script assigned, followed one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from preflight.loaders.document import Launch
from preflight.loaders.shell.state import State, Variable
from preflight.source.pattern import lazy_pattern

_NAME = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
T = TypeVar("T")


def in_each(state: State, text: str, read: Callable[[], T]) -> Iterator[T]:
    """What reading a text gives under each of the commands that its first variable of several may hold;
    nothing where it has none."""
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
    """Each launch once: what differs in a profiler in front alone is one."""
    kept: dict[object, T] = {}
    for item in found:
        one = launch(item)
        kept.setdefault((one.entry.span, tuple(word.span for word in one.words), one.world), item)
    return list(kept.values())
