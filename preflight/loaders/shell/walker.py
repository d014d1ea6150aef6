"""Follows the statements of a script without running anything: both ways if a condition is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from preflight.loaders.shell import control_flow
from preflight.loaders.shell.arithmetic import let
from preflight.loaders.shell.assignments import assign, declare
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.command_words import words_of
from preflight.loaders.shell.control_flow import follow_case, follow_for, follow_if, follow_while
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.state import FILE, Changes, Read, RunsCommands, Variable

MAX_DEPTH = 60
MAX_CONDITION = 2000
"""Maximum characters of a condition that is examined."""
_ASSIGNMENTS = ("variable_assignment", "variable_assignments")
_BLOCKS = ("program", "do_group", "ERROR", "else_clause")
_SKIPPED = frozenset(
    [
        "comment",
        "heredoc_redirect",
        "heredoc_body",
        "file_redirect",
        "herestring_redirect",
        "heredoc_end",
        "heredoc_start",
    ]
)


class Stop:
    """The reason why following ended: none (""), or exit, return, break or continue."""

    def __init__(self) -> None:
        self.at = ""

    def reached(self, *kinds: str) -> None:
        """The end of the constructs that these kinds leave."""
        if self.at in kinds:
            self.at = ""


class Follower:
    """Walks statements. commands: the effects of single commands."""

    def __init__(self, expander: Expander, commands: RunsCommands) -> None:
        self.expander, self.state, self.commands = expander, expander.state, commands
        self.stop = Stop()
        self.functions: dict[str, tuple[Tree, Node]] = {}
        self.depth = 0
        self.dry = 0
        self.exhausted = False

    def block(self, tree: Tree, nodes: Sequence[Node]) -> None:
        """Follow statements one after another, up to an exit."""
        for node in nodes:
            if self.stop.at:
                return
            if node.is_named:
                self.statement(tree, node)

    def statement(self, tree: Tree, node: Node) -> None:
        """Any statement."""
        self.expander.spend(1)
        if self.depth > MAX_DEPTH:
            self.exhausted = True
            return
        kind = node.type
        if kind in _SKIPPED:
            return
        self.depth += 1
        try:
            if kind in _ASSIGNMENTS:
                for child in node.named_children if kind == "variable_assignments" else [node]:
                    assign(self.expander, tree, child)
            elif kind == "command" and tree.text(node).startswith("let "):
                let(self.expander, words_of(self.expander, tree, node)[1:])
            elif kind == "command":
                self.commands.command(tree, node, None)
            elif kind == "declaration_command":
                declare(self.expander, tree, node)
            elif kind in _BLOCKS:
                self.block(tree, node.children)
            else:
                self._compound(tree, node, kind)
        finally:
            self.depth -= 1

    def _compound(self, tree: Tree, node: Node, kind: str) -> None:
        if kind == "list":
            self.status(tree, node)
        elif kind == "redirected_statement":
            self._redirected(tree, node)
        elif kind == "if_statement":
            follow_if(self, tree, node)
        elif kind == "for_statement":
            follow_for(self, tree, node)
        elif kind in ("while_statement", "c_style_for_statement"):
            follow_while(self, tree, node)
        elif kind == "case_statement":
            follow_case(self, tree, node)
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self.functions[tree.text(name)] = (tree, body)
        elif kind == "pipeline":
            self._pipeline(tree, node, None)
        elif kind == "subshell":
            self.apart(tree, node.named_children)
        elif kind == "compound_statement":
            self._braces(tree, node)
        elif kind == "negated_command":
            self.block(tree, node.named_children)
        elif kind == "unset_command":
            for child in node.named_children:
                self.state.put(tree.text(child), Variable((), False, tree.span(child)))

    def _braces(self, tree: Tree, node: Node) -> None:
        if not tree.text(node).startswith("(("):
            self.block(tree, node.children)
        else:
            control_flow.arithmetic(self.expander, tree, node)

    def _redirected(self, tree: Tree, node: Node, given: Read | None = None) -> None:
        body = node.child_by_field_name("body")
        document = next((child for child in node.children if child.type == "heredoc_redirect"), None)
        if body is not None and body.type == "command":
            self.commands.command(tree, body, node, given)
        elif body is not None:
            self.statement(tree, body)
            self.commands.redirected(tree, node, given)
        for child in document.named_children if document is not None else ():
            if child.type == "pipeline":
                self._pipeline(tree, child, self.commands.printed(tree, node, given, whole=False))
            elif child.type in ("command", "list", "redirected_statement"):
                self.statement(tree, child)

    def _pipeline(self, tree: Tree, node: Node, given: Read | None) -> None:
        """Commands that each read the output of the previous one; each is a subshell."""
        for child in node.named_children:
            with self._subshell():
                if child.type == "command":
                    self.expander.spend(1)
                    self.commands.command(tree, child, None, given)
                elif child.type == "redirected_statement":
                    self._redirected(tree, child, given)
                elif child.type == "pipeline":
                    self._pipeline(tree, child, given)
                else:
                    self.statement(tree, child)
            given = self.commands.printed(tree, child, given)

    def apart(self, tree: Tree, nodes: Sequence[Node]) -> None:
        """A subshell: its assignments are lost."""
        with self._subshell():
            self.block(tree, nodes)

    @contextmanager
    def _subshell(self) -> Iterator[None]:
        with self.state.frame() as changes:
            yield
        self.state.undo({name: old for name, old in changes.items() if not name.startswith(FILE)})
        self.stop.reached("exit", "return", "break", "continue")

    def status(self, tree: Tree, node: Node, testing: bool = False) -> bool | None:
        """Run a statement for its outcome. An ordinary command is assumed to succeed, unless it is tested."""
        kind = node.type
        if kind == "test_command":
            return control_flow.test(self.expander, tree, node)
        if kind == "compound_statement" and tree.text(node).startswith("(("):
            return control_flow.arithmetic(self.expander, tree, node)
        if kind == "negated_command" and node.named_children:
            value = self.status(tree, node.named_children[-1], testing)
            return None if value is None or node.named_children[-1].type == "command" else not value
        if kind == "list" and len(node.children) == 3:
            return self._list(tree, node, testing)
        if _constant(tree, node):
            return not tree.text(node).startswith("false")
        self.statement(tree, node)
        return None if testing or (kind == "command" and tree.text(node).startswith("test ")) else True

    def _list(self, tree: Tree, node: Node, testing: bool) -> bool | None:
        """A list of any length: the grammar nests all but its last command in a list on the left, recursively."""
        spine = [node]
        while (left := spine[-1].children[0]).type == "list" and len(left.children) == 3:
            spine.append(left)
        value = self.status(tree, left, testing)
        for one in reversed(spine):
            if self.stop.at:
                return None
            value = self._joined(tree, one, value, testing)
        return value

    def _joined(self, tree: Tree, node: Node, value: bool | None, testing: bool) -> bool | None:
        """The outcome of a list. value: that of its left side."""
        left, sign, right = node.children
        certain = left.type in ("test_command", "list", "compound_statement", "negated_command") or _constant(
            tree, left
        )
        stops = sign.type == "||"
        if value is None and right.type == "test_command":
            return stops if self.status(tree, right, testing) is stops else None
        if value is None or (value is stops and not certain):
            text = tree.source.text[max(left.start_byte, left.end_byte - MAX_CONDITION) : left.end_byte]
            because = f"the condition {text[:60].strip()}"
            self.either(tree, [[right], []], because, control_flow.asked_for(text))
            return None
        return value if value is stops else self.status(tree, right, testing)

    def either(
        self,
        tree: Tree,
        branches: Sequence[Sequence[Node]],
        because: str,
        defaults: frozenset[str] = frozenset(),
        default: Sequence[Node] | None = None,
    ) -> None:
        """Follow each of several branches of which one is taken. default: the branch assumed to be taken, if it
        ends."""
        unset = frozenset(name for name in defaults if name not in self.state.variables)
        ended: list[Changes] = []
        stops = []
        for nodes in branches:
            with self.state.frame() as changes:
                self.block(tree, nodes)
            new = self.state.undo(changes)
            if self.stop.at in ("exit", "return"):
                stops.append(self.stop.at)
            elif nodes is default:
                ended = [new]
                self.stop.at = ""
                break
            else:
                ended.append(new)
            self.stop.at = ""
        if not ended:
            self.stop.at = stops[0] if stops else ""
        elif len(ended) == 1:
            for name, variable in ended[0].items():
                self.state.put(name, variable)
        else:
            self.expander.spend(len(ended) * len(set().union(*ended)) // 100)  # each name is compared in each branch
            self.state.merge(ended, because, unset)


def _constant(tree: Tree, node: Node) -> bool:
    return bool(node.type == "command" and tree.text(node).split(None, 1)[:1] in (["true"], [":"], ["false"]))
