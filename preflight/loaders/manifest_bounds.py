"""How far the containers of a manifest are followed: a command takes milliseconds, a file has room for thousands."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.loaders.document import Document, Node, Problem
from preflight.loaders.shell.parameter_values import MAX_WORK
from preflight.source.record import replace
from preflight.source.text import Span

MOST_COMMANDS = 1_000
"""Containers whose command is read."""
MOST_LAUNCHES = 100
MOST_SCRIPT = 64_000
"""Characters of all inline scripts together: the largest published config or script has 17,000."""
NOT_FOLLOWED = "the manifest has more commands than are followed: the ones from here on are not checked"


class Following:
    """What was followed so far. work: of the inline scripts together; stopped: the first command that is left out."""

    def __init__(self) -> None:
        self.commands = self.launches = self.characters = self.work = 0
        self.stopped: Span | None = None

    def admits(self, nodes: Sequence[Node]) -> bool:
        """Whether a command of these words is followed. The first that is not ends it."""
        if self.stopped is None:
            self.commands += 1
            full = self.commands > MOST_COMMANDS or self.launches >= MOST_LAUNCHES
            self.stopped = nodes[0].span if full and nodes else None
        return self.stopped is None

    def admits_script(self, node: Node) -> bool:
        """The same of an inline script, which takes more than a command."""
        if self.stopped is None:
            self.characters += len(str(node.value))
            full = self.characters > MOST_SCRIPT or self.work > MAX_WORK or self.launches >= MOST_LAUNCHES
            self.stopped = node.span if full else None
        return self.stopped is None

    def noted(self, document: Document) -> Document:
        """A launch of the manifest, with a note where something is left out."""
        if self.stopped is None:
            return document
        problem = Problem("script-not-followed", NOT_FOLLOWED, self.stopped)
        return replace(document, problems=(*document.problems, problem))
