"""The interfaces between the parts of the resolver; following a script is mutually recursive, imports are not."""

from __future__ import annotations

from collections.abc import Callable

from preflight.loaders.shell.state import State
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Value
from preflight.source.hints import Protocol
from preflight.source.text import Span

Read = Callable[[], Value | None]
"""The known stdin of a command, expanded only on demand."""


class Expands(Protocol):
    """Evaluates expansions; arithmetic asks it for the variables in an expression."""

    state: State
    unset: Callable[[str, Span | None], Value]
    depth: int

    def value(self, tree: Tree, node: Node) -> Value: ...


class RunsCommands(Protocol):
    """Determines the effect of a single command."""

    def command(self, tree: Tree, node: Node, around: Node | None = None, given: Read | None = None) -> None: ...
    def redirected(self, tree: Tree, node: Node, given: Read | None) -> None: ...
    def printed(self, tree: Tree, node: Node, given: Read | None, whole: bool = True) -> Read: ...
