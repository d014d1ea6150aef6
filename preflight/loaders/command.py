"""A command line given as a list of words, as a Document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from preflight.document import Document, Launch, Word
from preflight.loaders.launchers import take_apart
from preflight.source import InputError, Source, Span


def load_command(argv: Sequence[str], name: str = "command line") -> Document:
    """A Document of one command; its source is the command as a shell would take it. Raises InputError when it is empty."""
    if not argv:
        raise InputError("no command is given after --", name)
    quoted = [shlex.quote(word) for word in argv]
    source = Source(" ".join(quoted), name)
    words, at = [], 0
    for word, text in zip(argv, quoted, strict=True):
        inner = int(text == f"'{word}'")
        words.append(Word(word, Span(source, at + inner, at + len(text) - inner), editable=text == "'" * inner + word + "'" * inner))
        at += len(text) + 1
    taken = take_apart(words)
    if taken is None:
        return Document(source, "command", launch=Launch("", (), words[0], tuple(words[1:])))
    return Document(source, "command", launch=taken.launch, problems=taken.problems)


def reload_command(source: Source) -> Document:
    """The Document of a command whose text was edited. Raises InputError when the quoting is broken."""
    try:
        return load_command(shlex.split(source.text), source.name)
    except ValueError as error:
        raise InputError(f"is not a command: {error}", source.name) from None
