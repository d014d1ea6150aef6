"""Edits of recipes: a literal becomes another one where it is assigned; nothing is added to a program."""

from __future__ import annotations

from preflight.dialects.doors.dotted import DottedWriter
from preflight.run.arguments import REMOVE
from preflight.source.finding import Edit, Key


class RecipeWriter(DottedWriter):
    """Makes the edits of a recipe."""

    def at(self, path: Key, value: object) -> tuple[Edit, ...]:
        """The edit at a literal; none where what is assigned is made by code, or stands in another function."""
        document = self.dotted.documents[0]
        node = document.tree.get(*path) if document.tree is not None else None
        plain = isinstance(value, bool | int | float | str) or value is None
        if value is REMOVE or not plain or node is None or node.kind != "scalar" or node.style:
            return ()
        return (Edit("set", path, value, node.span, document.run),)

    def _added(self, key: str, value: object) -> tuple[Edit, ...]:
        return ()
