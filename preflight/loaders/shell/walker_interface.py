"""What branches and loops need of the walker they hand their statements back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.state import State
from preflight.loaders.shell.syntax import Node, Tree


class Stops(Protocol):
    """Where following has come to an end, and which statement that end leaves."""

    at: str

    def reached(self, *kinds: str) -> None: ...


class Follows(Protocol):
    """Walks statements; branches and loops hand theirs back to it. dry: inside a trial run that leaves no launches."""

    expander: Expander
    state: State
    dry: int

    @property
    def stop(self) -> Stops: ...

    def block(self, tree: Tree, nodes: Sequence[Node]) -> None: ...
    def statement(self, tree: Tree, node: Node) -> None: ...
    def status(self, tree: Tree, node: Node, testing: bool = False) -> bool | None: ...
    def either(
        self,
        tree: Tree,
        branches: Sequence[Sequence[Node]],
        because: str,
        defaults: frozenset[str] = frozenset(),
        default: Sequence[Node] | None = None,
    ) -> None: ...
