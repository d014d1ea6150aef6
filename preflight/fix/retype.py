"""A launch as it would be with other options, without a text: what is asked before it is worth to write one."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.loaders.command_edit import occurrences
from preflight.loaders.document import Document, Word
from preflight.source.finding import Edit
from preflight.source.record import replace


def retyped(document: Document, edits: Sequence[Edit]) -> Document | None:
    """The document with options set and removed; None where it is no launch, or the edits are of another kind."""
    launch = document.launch
    if launch is None or any(
        edit.action not in ("set", "remove") or len(edit.key) != 1 or edit.run != document.run for edit in edits
    ):
        return None
    words, environment = launch.words, dict(launch.environment)
    for edit in edits:
        name = str(edit.key[0])
        if name.startswith("--"):
            words = _with(words, name, edit, launch.entry)
        elif edit.action == "set":
            environment[name] = _word(str(edit.value), environment.get(name) or launch.entry)
        else:
            return None
    return replace(document, launch=launch._replace(words=words, environment=environment))


def _with(words: tuple[Word, ...], name: str, edit: Edit, entry: Word) -> tuple[Word, ...]:
    """The words without the option, and where it is set, with its new value in its place or behind the others."""
    groups = occurrences(words, name)
    gone = {id(word) for group in groups for word in group}
    near = groups[-1][-1] if groups else entry
    new: tuple[Word, ...] = ()
    if edit.action == "set":
        values = (
            []
            if edit.value is None or edit.value is True
            else edit.value
            if isinstance(edit.value, (list, tuple))
            else [edit.value]
        )
        new = (_word(name, near), *(_word(str(value), near) for value in values))
    if not groups:
        return (*words, *new)
    last = next(at for at, word in enumerate(words) if word is groups[-1][0])
    kept = [word for word in words[:last] if id(word) not in gone]
    return (*kept, *new, *(word for word in words[last:] if id(word) not in gone))


def _word(text: str, near: Word) -> Word:
    return Word(text, near.span, near.uses)
