"""A command line given as a list of words, as a Document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from preflight.loaders.document import Document, Launch, Word
from preflight.loaders.launchers import take_apart
from preflight.source.source_file import InputError, Source, Span


def load_command(argv: Sequence[str], name: str = "command line") -> Document:
    """A Document of one command, whose source is the command in shell notation. Raises InputError if it is empty."""
    if not argv:
        raise InputError("no command after --", name)
    quoted = [shlex.quote(word) for word in argv]
    source = Source(" ".join(quoted), name)
    words, at = [], 0
    for word, text in zip(argv, quoted, strict=True):
        inner = int(text == f"'{word}'")
        words.append(
            Word(
                word,
                Span(source, at + inner, at + len(text) - inner),
                editable=text == "'" * inner + word + "'" * inner,
            )
        )
        at += len(text) + 1
    taken = take_apart(words)
    if taken is None:
        return Document(source, "command", launch=Launch("", (), words[0], tuple(words[1:])))
    return Document(source, "command", launch=taken.launch, problems=taken.problems)


def load_commands(source: Source) -> tuple[Document, ...]:
    """The launches of a command in shell notation: its own, or those of the script that it runs. Raises InputError if
    the quoting is broken."""
    try:
        document = load_command(shlex.split(source.text), source.name)
    except ValueError as error:
        raise InputError(f"is not a command: {error}", source.name) from None
    if document.launch is not None and document.launch.launcher not in ("", "bash"):
        return (document,)
    from preflight.loaders.shell import load_script

    launches = [
        one
        for one in load_script(Source(source.text, source.name, path=Path.cwd() / source.name))
        if one.launch is not None
    ]
    followed = [one for one in launches if one.launch is not None and one.launch.launcher != "bash"]
    return tuple(followed) if len(followed) > 1 or (followed and _elsewhere(followed[0], document)) else (document,)


def _elsewhere(found: Document, typed: Document) -> bool:
    """Whether a launch is in a script or a text that the command runs, instead of the command itself."""
    assert found.launch is not None and typed.launch is not None
    return found.launch.entry.text != typed.launch.entry.text
