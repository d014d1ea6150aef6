"""Edits of the launches in a Kubernetes manifest as splices: in the script inside a scalar, or among the items of a
command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from preflight.loaders import shell_edit
from preflight.loaders.command_edit import occurrences
from preflight.loaders.document import Document, Word
from preflight.loaders.manifest import part_of
from preflight.loaders.scripts_in_yaml import Inline, outer
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Span, Splice


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """The text changes that carry out edits. Raises CannotEdit."""
    return [splice for edit in edits for splice in _splices(document, edit)]


def _splices(document: Document, edit: Edit) -> list[Splice]:
    if edit.action == "splice" and edit.span is not None:
        return [(edit.span, str(edit.value))]
    assert document.launch is not None
    _, script, inner = part_of(document)
    if script is not None and inner is not None:
        return [
            _placed(script, span, text) for span, text in shell_edit.splices(inner, (edit._replace(run=inner.run),))
        ]
    flag = str(edit.key[0])
    if not flag.startswith("-"):
        return [_variable(document, flag, edit)]
    return _items(document, flag, edit)


def _placed(script: Inline, span: Span, text: str) -> Splice:
    """A change of a script inside a scalar, with its indentation, and spelled as its scalar allows."""
    place, node = outer(script.text, span), script.node
    if place is None or (node.style == '"' and re.search(r'["\\]', text)) or (node.style == "'" and "'" in text):
        raise CannotEdit("the text of the script differs from its spelling in the manifest")
    if "\n" not in text:
        return place, text
    if node.style != "|":
        raise CannotEdit("the script is not on separate lines in the manifest")
    first = next((line for line in node.span.text.split("\n")[1:] if line.strip()), "")
    before = script.text.source.text.lstrip("\n")
    indent = first[: len(first) - len(first.lstrip()) - (len(before) - len(before.lstrip(" ")))]
    return place, text.replace("\n", f"\n{indent}")


def _variable(document: Document, name: str, edit: Edit) -> Splice:
    assert document.launch is not None
    word = document.launch.environment.get(name)
    if edit.action != "set" or word is None or not word.editable:
        raise CannotEdit(f"{name} is not written in the manifest")
    return word.span, str(edit.value)


def _items(document: Document, flag: str, edit: Edit) -> list[Splice]:
    """A change of a command that is a list of words."""
    assert document.launch is not None
    groups = occurrences(document.launch.words, flag)
    texts = (
        []
        if edit.value is None or edit.value is True
        else [str(v) for v in (edit.value if isinstance(edit.value, (list, tuple)) else [edit.value])]
    )
    if edit.action == "set" and not groups:
        return [_added(document.launch.words or (document.launch.entry,), [flag, *texts])]
    if not groups:
        raise CannotEdit(f"{flag} is missing")
    if edit.action == "rename":
        return [(_own(document, group[0].parts[0]).span, str(edit.value)) for group in groups]
    if edit.action == "remove":
        return [_removed(document, group) for group in groups]
    first, inline = groups[-1][0].parts
    values = [inline] if inline is not None else list(groups[-1][1:])
    if len(values) != len(texts):
        raise CannotEdit(f"{first.text} has {len(values)} values")
    return [(_own(document, word).span, _bare(text)) for word, text in zip(values, texts, strict=True)]


def _own(document: Document, word: Word) -> Word:
    if not word.editable or word.span.source is not document.source:
        raise CannotEdit(f"{word.text or word.because} differs from its spelling in the manifest")
    return word


def _bare(text: str) -> str:
    """The replacement of a value, with or without the existing quotes."""
    if not re.fullmatch(r"[\w@%+=:,./-]+", text):
        raise CannotEdit(f"{text!r} needs its own quotes")
    return text


def _whole(word: Word) -> Span:
    """An item with its quotes."""
    text, start, end = word.span.source.text, word.span.start, word.span.end
    quoted = start and text[start - 1] in "'\"" and text[end : end + 1] == text[start - 1]
    return Span(word.span.source, start - 1, end + 1) if quoted else word.span


def _added(words: Sequence[Word], texts: Sequence[str]) -> Splice:
    """New items after the last one."""
    span = _whole(words[-1])
    written, source = [text if text.startswith("--") else json.dumps(text) for text in texts], span.source
    before = source.line(span.line)[: span.column - 1]
    end = Span(source, span.end, span.end)
    if re.fullmatch(r"[ \t]*-[ \t]+", before) and not source.text[span.end :].partition("\n")[0].strip():
        return end, "".join(f"\n{before}{text}" for text in written)
    if re.search(r"(?:\[|,)[ \t]*$", before) and re.match(r"\s*[,\]]", source.text[span.end :]):
        return end, "".join(f", {text if text.startswith('--') else json.dumps(text)}" for text in texts)
    raise CannotEdit("there is no place for another item")


def _removed(document: Document, words: Sequence[Word]) -> Splice:
    """Items removed: their lines, or they and the preceding comma."""
    first, last = (_whole(_own(document, word)) for word in (words[0], words[-1]))
    source, text = document.source, document.source.text
    lines = [source.line(_whole(word).line).strip() for word in words]
    if all(re.fullmatch(r"-[ \t]+\S+", line) for line in lines):
        return Span(
            source,
            source.starts[first.line - 1],
            source.starts[last.line] if last.line < len(source.starts) else len(text),
        ), ""
    comma = re.search(r",\s*$", text[: first.start])
    if comma is None or not re.match(r"\s*[,\]]", text[last.end :]):
        raise CannotEdit("the items are not adjacent")
    return Span(source, comma.start(), last.end), ""
