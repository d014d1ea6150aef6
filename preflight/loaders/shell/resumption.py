"""How a script finds the checkpoint that it resumes from: the name of the file, the folder, the options with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from preflight.loaders.document import Problem
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.command_effects import Commands
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span

_TRACKER = lazy_pattern(r"(?<![\w.-])(?:latest|last)[_-]?check[_-]?point\w{0,3}[_-]iter\w{0,12}\.txt(?![\w.-])")
_NAME_OF_TRACKER = "latest_checkpointed_iteration.txt"
"""The file in which Megatron-LM writes the iteration of the last checkpoint."""
_LOADS = lazy_pattern(r"--load[ =][\"']?([^\s\"'()]{1,200})")
_DROPS = lazy_pattern(r"--(?:finetune|no-load-optim)(?![\w-])")
_FOLDER = lazy_pattern(r"-[fes][ \t]+[\"']?(\$\{?\w{1,100}\}?)[\"']?/[\"']?latest_checkpointed_iteration")
_NAME = lazy_pattern(r"\$\{?(\w{1,100})\}?")


def resumption(tree: Tree, nodes: Iterable[Node], commands: Commands) -> Iterator[Problem]:
    """Mistakes around the file with the last iteration."""
    yield from _tracker(tree.source)
    if _NAME_OF_TRACKER in tree.source.text and "--load" in tree.source.text:
        yield from _resumed(tree, nodes, commands)


def _elsewhere(tree: Tree, node: Node, load: re.Match[str], asks: str, commands: Commands) -> Problem | None:
    """A checkpoint that is looked for in one folder and loaded from another."""
    asked, loaded = _FOLDER.search(asks), _NAME.fullmatch(load[1])
    if asked is None or loaded is None:
        return None
    one, other = (_value(name, commands) for name in (_NAME.fullmatch(asked[1]), loaded))
    if not one or not other or one == other:
        return None
    start = tree.span(node).start + load.start(1)
    message = Message("the checkpoint is looked for in {asked}, but loaded from {loaded}", asked=one, loaded=other)
    return Problem("resumed-elsewhere", message, Span(tree.source, start, start + len(load[1])))


def _value(name: re.Match[str] | None, commands: Commands) -> str:
    """The text of a variable that is set once; empty if it is unknown."""
    variable = commands.state.variables.get(name[1]) if name is not None else None
    if variable is None or variable.sometimes or variable.array or len(variable.items) != 1:
        return ""
    texts = [piece.text for piece in variable.items[0]]
    return "" if None in texts else "".join(map(str, texts)).rstrip("/")


def _tracker(source: Source) -> Iterator[Problem]:
    """Names of Megatron-LM's tracker file that are not spelt as it writes them."""
    for match in _TRACKER.finditer(source.text):
        line = source.text[source.text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if match[0] != _NAME_OF_TRACKER and not line.lstrip().startswith("#"):
            template = "{name} is never written; the file with the last iteration is {right}"
            message = Message(template, name=match[0], right=_NAME_OF_TRACKER)
            span = Span(source, match.start(), match.end())
            yield Problem("tracker-misspelt", message, span, (), (f"write {_NAME_OF_TRACKER}", span, _NAME_OF_TRACKER))


def _resumed(tree: Tree, nodes: Iterable[Node], commands: Commands) -> Iterator[Problem]:
    """Options that drop the state of a run where a script has found the checkpoint that it resumes from."""
    for node in nodes:
        parts = node.children if node.type == "if_statement" else ()
        asks = [tree.text(one) for one in parts if one.type in ("test_command", "negated_command")]
        if len(asks) != 1 or _NAME_OF_TRACKER not in asks[0] or "!" in asks[0] or re.search(r"-z |[|&=]", asks[0]):
            continue
        for one in (one for one in parts if one.type == "variable_assignment"):
            load, drops = _LOADS.search(tree.text(one)), _DROPS.search(tree.text(one))
            if load is None:
                continue
            own = load[1] in asks[0]
            if not own and (problem := _elsewhere(tree, one, load, asks[0], commands)) is not None:
                yield problem
            if drops is None or not own:
                continue
            start = tree.span(one).start + drops.start()
            template = "{option} is given although the script has found its own checkpoint, so each restart {loses}"
            loses = Message("begins at iteration 0" if drops[0] == "--finetune" else "loses the optimizer state")
            message = Message(template, option=drops[0], loses=loses)
            yield Problem("resumed-without-state", message, Span(tree.source, start, start + len(drops[0])))
