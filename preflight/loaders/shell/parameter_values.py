"""The values of parameters: variables, arrays, positional ones; what a script has not set is asked for outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from preflight.loaders.document import Piece
from preflight.loaders.shell.expansion_forms import (
    NOWHERE,
    Form,
    any_number,
    elements,
)
from preflight.loaders.shell.slices import subscript
from preflight.loaders.shell.state import State
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Value, text_of
from preflight.source.budget import may_step
from preflight.source.text import Span

MAX_WORK = 60_000


class Exhausted(Exception):
    """A script takes more work than any that people write."""


class Parameters(ABC):
    """The parameters of a script over its state. arguments: the positional ones, None when not known."""

    def __init__(self, state: State, unset: Callable[[str, Span | None], Value]) -> None:
        self.state, self.unset = state, unset
        self.arguments: list[Value] | None = None
        self.depth = self.work = 0

    @abstractmethod
    def value(self, tree: Tree, node: Node) -> Value:
        """The expansion of a node."""

    def spend(self, work: int) -> None:
        """Count work. Raises Exhausted."""
        self.work += work
        if self.work > MAX_WORK or not may_step(work):
            raise Exhausted

    def lookup(self, form: Form, span: Span, quoted: bool = False) -> list[Value]:
        """The values of a parameter: several for arrays and "$@", none for empty ones;
        unknown ones for what is not set. quoted: no word of them is split, which is what takes long."""
        name = form.name
        if name in ("@", "*"):
            return self.arguments if self.arguments is not None else [(Piece(None, span, exact=False, because="$@"),)]
        if (
            name.isdecimal()
            and name != "0"
            and self.arguments is not None
            and not any_number(self.arguments[: int(name[:6])])
        ):
            return self.arguments[int(name) - 1 : int(name)] if len(name) < 6 else []
        if name == "#" and self.arguments is not None and not any_number(self.arguments):
            return [(Piece(str(len(self.arguments)), span, exact=False),)]
        if not (name[:1].isalpha() or name[:1] == "_"):
            return [(Piece(None, span, exact=False, because=f"${name}"),)]
        variable = self.state.get(name)
        if variable is None:
            self.state.miss(name)
            return [self.unset(name, span)]
        if form.subscript and not form.whole and not form.subscript.lstrip("-").isdecimal():
            form = form._replace(subscript=subscript(self, variable, form.subscript, span))
        share = 100 if quoted else 10
        self.spend(sum(1 + len(piece.text or "") // share for value in variable.items for piece in value))
        return elements(variable, form, span)

    def is_set(self, form: Form) -> bool:
        """Whether a parameter has a value, be it empty."""
        if form.name in ("@", "*") or form.name.isdecimal():
            return self.arguments is not None and bool(self.lookup(form, Span(NOWHERE, 0, 0)))
        if form.name in self.state.variables:
            return True
        value = self.unset(form.name, None)
        return text_of(value) is not None
