"""Edits of Python programs: a literal assigned by a recipe is replaced; nothing else is edited."""

from __future__ import annotations

from preflight.loaders.document import Document
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Splice


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """Raises CannotEdit for anything but replacing a literal."""
    return [_splice(document, edit) for edit in edits]


def _splice(document: Document, edit: Edit) -> Splice:
    node = document.tree.get(*edit.key) if document.tree is not None and edit.action == "set" else None
    if node is None or node.kind != "scalar" or node.style:
        raise CannotEdit("only literals of a Python program are edited")
    if edit.value is not None and not isinstance(edit.value, bool | int | float | str):
        raise CannotEdit("only a number, a string, True, False or None can be written into a Python program")
    return node.span, repr(edit.value)
