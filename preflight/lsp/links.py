"""From a name in a config to what it means: other files, and the variable behind a value of a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types
from pygls import uris

from preflight.dialects import folders
from preflight.loaders.document import Document, walk
from preflight.lsp.buffers import Buffer
from preflight.lsp.hover import typed_at
from preflight.lsp.places import exactly, range_of, uri_of
from preflight.source.text import Span


def links(buffer: Buffer) -> list[types.DocumentLink]:
    """The files that a config or a script names and that exist: a base config, a sourced script, a rank table."""
    if buffer.job is None:
        return []
    documents = [one for one in buffer.job.documents if one.source.name == buffer.source.name]
    return [
        types.DocumentLink(exactly(span), target=uris.from_fs_path(str(path)))
        for document in documents
        for span, name in _names(document)
        if (path := _file(document, name)) is not None
    ]


def _names(document: Document) -> Iterator[tuple[Span, str]]:
    """Texts that may be names of files, with their places."""
    if document.tree is not None:
        for _, node, _ in walk(document.tree):
            if isinstance(node.value, str) and 0 < len(node.value) < 400 and "\n" not in node.value:
                yield node.span, node.value
    if document.launch is not None:
        words = (document.launch.entry, *document.launch.words)
        yield from ((word.span, word.text) for word in words if word.text and len(word.text) < 400)
    for other in document.also:
        name = other.path.name if other.path is not None else ""
        at = document.source.text.find(name) if name else -1
        if at >= 0:
            yield document.source.span(at, at + len(name)), str(other.path)


def _file(document: Document, name: str) -> Path | None:
    if "." not in name or name.startswith("-"):
        return None
    for folder in folders(document):
        try:
            path = (folder / name).resolve()
            if path.is_file():
                return path
        except (OSError, RuntimeError, ValueError):
            continue
    return None


def definition(buffer: Buffer, offset: int) -> types.Location | None:
    """Where the value of an option of a script is typed: in the assignment of its variable, here or in a sourced
    script."""
    job = buffer.job
    found = typed_at(job, buffer, offset) if job is not None else None
    setting = found[1].setting if found is not None else None
    if setting is None:
        return None
    span = setting.span
    if span.path == buffer.source.name and span.start <= offset <= span.end:
        return None
    uri = uri_of(span.source)
    return types.Location(uri, range_of(span)) if uri else None
