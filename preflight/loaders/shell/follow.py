"""Follows the statements of a script without running anything: both ways where a condition is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from preflight.document import Piece
from preflight.loaders.shell import conditions
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.fields import Value, fields, text_of
from preflight.loaders.shell.parameters import glob
from preflight.loaders.shell.state import Changes, Variable, bounded
from preflight.loaders.shell.syntax import Node, Tree

if TYPE_CHECKING:
    from preflight.loaders.shell.commands import Commands

MAX_DEPTH = 60
MAX_ROUNDS = 16
_ASSIGNMENTS = ("variable_assignment", "variable_assignments")
_BLOCKS = ("program", "do_group", "ERROR", "else_clause")
_SKIPPED = frozenset(["comment", "heredoc_redirect", "heredoc_body", "file_redirect", "herestring_redirect", "heredoc_end", "heredoc_start"])


class Stop:
    """Where following has come to an end: nowhere (""), or at exit, return, break or continue."""

    def __init__(self) -> None:
        self.at = ""

    def reached(self, *kinds: str) -> None:
        """The end of what these kinds leave."""
        if self.at in kinds:
            self.at = ""


class Follower:
    """Walks statements. commands: what single commands do."""

    def __init__(self, expander: Expander, commands: Commands) -> None:
        self.expander, self.state, self.commands = expander, expander.state, commands
        self.stop = Stop()
        self.functions: dict[str, tuple[Tree, Node]] = {}
        self.depth = 0
        self.dry = 0
        self.exhausted = False

    def block(self, tree: Tree, nodes: Sequence[Node]) -> None:
        """Statements one after another, up to an exit."""
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
                    self.assign(tree, child)
            elif kind == "command":
                self.commands.command(tree, node, None)
            elif kind == "declaration_command":
                self.commands.declare(tree, node)
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
            self._if(tree, node)
        elif kind == "for_statement":
            self._for(tree, node)
        elif kind in ("while_statement", "c_style_for_statement"):
            self._while(tree, node)
        elif kind == "case_statement":
            self._case(tree, node)
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self.functions[tree.text(name)] = (tree, body)
        elif kind == "pipeline":
            for child in node.named_children:
                self._apart(tree, [child])
        elif kind == "subshell":
            self._apart(tree, node.named_children)
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
            return
        for child in node.named_children:
            if child.type in ("postfix_expression", "unary_expression", "binary_expression", "variable_assignment"):
                name = next((c for c in child.children if c.type in ("variable_name", "word")), None)
                signs = [tree.text(c) for c in child.children if not c.is_named]
                if name is not None and any(sign.endswith(("++", "--")) or (sign.endswith("=") and sign not in ("==", "<=", ">=", "!=")) for sign in signs):
                    self.forget(tree, name)

    def forget(self, tree: Tree, node: Node) -> None:
        """A variable gets a value that is not computed here."""
        name, span = tree.text(node), tree.span(node)
        self.state.put(name, Variable(((Piece(None, span, exact=False, because=f"${name}"),),), False, span))

    def assign(self, tree: Tree, node: Node, exported: bool = False, local: bool = False) -> None:
        """NAME=value, NAME+=value, NAME=( … ), NAME[i]=value."""
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if target is None or node.type != "variable_assignment":
            return
        appends = any(child.type == "+=" for child in node.children)
        name = tree.text(target).partition("[")[0]
        old = self.state.get(name)
        exported = exported or (old is not None and old.exported)
        place = tree.span(target)
        if target.type == "subscript":
            self.forget(tree, target.named_children[0])
        elif value is not None and value.type == "array":
            items, keys = self._array(tree, value)
            before = old.items if appends and old is not None else ()
            self.state.put(name, Variable((*before, *items), True, place, exported, keys))
        else:
            made = self.expander.value(tree, value) if value is not None else (Piece("", place._replace(start=place.end + 1, end=place.end + 1)),)
            if appends and old is not None and old.array:
                self.state.put(name, old._replace(items=(old.scalar + made, *old.items[1:])))
                return
            before_value = (old.scalar if old is not None else self.expander.unset(name, place)) if appends else ()
            self.state.put(name, Variable((bounded((*before_value, *made)),), False, place, exported))

    def _array(self, tree: Tree, node: Node) -> tuple[tuple[Value, ...], tuple[str, ...]]:
        items: list[Value] = []
        keys: list[str] = []
        for child in node.named_children:
            if child.type == "comment":
                continue
            text = tree.text(child)
            if child.type == "concatenation" and text.startswith("[") and "]=" in text:
                keys.append(text[1 : text.index("]=")].strip("\"'"))
                value = self.expander.value(tree, child)
                items.append(tuple(value))
                continue
            for field in fields(self.expander.bits(tree, child)):
                items.append(tuple(field.pieces) if not field.loose else tuple(p._replace(exact=False) for p in field.pieces))
        return tuple(items), tuple(keys)

    def _redirected(self, tree: Tree, node: Node) -> None:
        body = node.child_by_field_name("body")
        document = next((child for child in node.children if child.type == "heredoc_redirect"), None)
        if document is not None:
            extra = [c for c in document.named_children if c.type in ("command", "pipeline", "list", "redirected_statement")]
        if body is not None and body.type == "command":
            self.commands.command(tree, body, document)
        elif body is not None:
            self.statement(tree, body)
        if document is not None:
            self.block(tree, extra)

    def _apart(self, tree: Tree, nodes: Sequence[Node]) -> None:
        """A subshell: what it sets is lost."""
        with self.state.frame() as changes:
            self.block(tree, nodes)
        self.state.undo(changes)
        self.stop.reached("exit", "return", "break", "continue")

    def status(self, tree: Tree, node: Node, testing: bool = False) -> bool | None:
        """Run a statement for its outcome. An ordinary command is taken to succeed, unless the script asks (testing)."""
        kind = node.type
        if kind == "test_command":
            return conditions.test(self.expander, tree, node)
        if kind == "compound_statement" and tree.text(node).startswith("(("):
            self._braces(tree, node)
            return conditions.arithmetic(self.expander, tree, node)
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
        left, sign, right = node.children
        value = self.status(tree, left, testing)
        if self.stop.at:
            return None
        certain = left.type in ("test_command", "list", "compound_statement", "negated_command") or _constant(tree, left)
        stops = sign.type == "||"
        if value is None or (value is stops and not certain):
            because = f"the condition {tree.text(left)[:60].strip()}"
            self.either(tree, [[right], []], because, conditions.asked_for(tree.text(left)))
            return None
        return value if value is stops else self.status(tree, right, testing)

    def either(self, tree: Tree, branches: Sequence[Sequence[Node]], because: str, defaults: frozenset[str] = frozenset()) -> None:
        """Follow each of several branches of which one is taken."""
        unset = frozenset(name for name in defaults if name not in self.state.variables)
        ended: list[Changes] = []
        stops = []
        for nodes in branches:
            with self.state.frame() as changes:
                self.block(tree, nodes)
            new = self.state.undo(changes)
            if self.stop.at in ("exit", "return"):
                stops.append(self.stop.at)
            else:
                ended.append(new)
            self.stop.at = ""
        if not ended:
            self.stop.at = stops[0] if stops else ""
        elif len(ended) == 1:
            for name, variable in ended[0].items():
                self.state.put(name, variable)
        else:
            self.state.merge(ended, because, unset)

    def _if(self, tree: Tree, node: Node) -> None:
        possible: list[list[Node]] = []
        because, texts = "", ""
        for tests, body in _branches(node):
            value: bool | None = True
            for test in tests:
                value = self.status(tree, test, testing=True)
            if value is False:
                continue
            possible.append(body)
            if value:
                break
            texts += " ".join(tree.text(test) for test in tests)
            because = because or f"the condition {texts[:60]}"
        else:
            possible.append([])
        if len(possible) == 1:
            self.block(tree, possible[0])
        else:
            self.either(tree, possible, because, conditions.asked_for(texts))

    def _case(self, tree: Tree, node: Node) -> None:
        subject = node.child_by_field_name("value")
        text = self.expander.text(tree, subject) if subject is not None else None
        possible: list[list[Node]] = []
        for item in (child for child in node.named_children if child.type == "case_item"):
            patterns = [child for index, child in enumerate(item.children) if item.field_name_for_child(index) == "value"]
            body = [c for c in item.named_children if c not in patterns]
            matched = [self._matches(tree, text, pattern) for pattern in patterns]
            if any(m is True for m in matched):
                possible.append(body)
                break
            if any(m is None for m in matched):
                possible.append(body)
        else:
            possible.append([])
        if len(possible) == 1:
            self.block(tree, possible[0])
        else:
            self.either(tree, possible, f"case {tree.text(subject)}" if subject is not None else "case")

    def _matches(self, tree: Tree, text: str | None, pattern: Node) -> bool | None:
        wanted = self.expander.text(tree, pattern)
        if wanted == "*" and tree.text(pattern) == "*":
            return True
        found = glob(wanted) if wanted is not None else None
        return None if text is None or found is None or len(text) > 200 else bool(found.fullmatch(text))

    def _for(self, tree: Tree, node: Node) -> None:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        listed = [child for index, child in enumerate(node.children) if node.field_name_for_child(index) == "value"]
        items = [field for child in listed for field in fields(self.expander.bits(tree, child))]
        known = listed and len(items) <= MAX_ROUNDS and all(text_of(field.pieces) is not None for field in items)
        if not known or tree.text(node).startswith("select"):
            self.forget(tree, name)
            self._repeat(tree, body)
            return
        for field in items:
            self.state.put(tree.text(name), Variable((tuple(field.pieces),), False, tree.span(name)))
            self.statement(tree, body)
            self.stop.reached("continue")
            if self.stop.at:
                break
        self.stop.reached("break")

    def _while(self, tree: Tree, node: Node) -> None:
        body = node.child_by_field_name("body")
        test = next((c for index, c in enumerate(node.children) if node.field_name_for_child(index) == "condition" and c.is_named), None)
        if body is None:
            return
        start = node.child_by_field_name("initializer")
        for name in start.named_children[:1] if start is not None else []:
            self.forget(tree, name)
        value = self.status(tree, test) if test is not None and node.type == "while_statement" and test.type == "command" else None
        until = tree.text(node).startswith("until")
        if value is not None and tree.text(test).strip() in ("true", "false", ":") and value is until:
            return
        self._repeat(tree, body)

    def _repeat(self, tree: Tree, body: Node) -> None:
        """A body that runs an unknown number of times: what it changes is unknown from its start on."""
        if not self.dry:
            self.dry += 1
            with self.state.frame() as changes:
                self.statement(tree, body)
            new = self.state.undo(changes)
            self.dry -= 1
            self.stop.at = ""
            for name, variable in new.items():
                before = changes[name]
                if variable is not None and before is not None and variable.items != before.items:
                    unknown = Piece(None, variable.place, exact=False, because=f"${name}, which a loop changes")
                    self.state.put(name, before._replace(items=((unknown,),), array=False))
        self.either(tree, [[body], []], "a loop")
        self.stop.reached("break", "continue")


def _constant(tree: Tree, node: Node) -> bool:
    return bool(node.type == "command" and tree.text(node).split(None, 1)[:1] in (["true"], [":"], ["false"]))


def _branches(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """Tests and body of each branch of an if; no tests for else."""
    found: list[tuple[list[Node], list[Node]]] = []
    tests: list[Node] = []
    body: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type == "then":
            in_body = True
        elif child.type in ("elif_clause", "else_clause"):
            if child.type == "elif_clause":
                found += _branches(child)
            else:
                found.append(([], [c for c in child.named_children]))
        elif child.is_named and child.type != "comment":
            (body if in_body else tests).append(child)
    return [(tests, body), *found]
