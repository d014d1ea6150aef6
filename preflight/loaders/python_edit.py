"""Edits of Python programs: none are made."""

from __future__ import annotations

from preflight.loaders.document import Document
from preflight.loaders.yaml_edit import CannotEdit, Splice
from preflight.source.finding import Edit


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """Raises CannotEdit: a program is not edited."""
    raise CannotEdit("a Python program is not edited")
