"""Conditions, branches and loops of a script: one path if the outcome is known, otherwise every path."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Piece
from preflight.loaders.shell.arithmetic import arithmetic as computed
from preflight.loaders.shell.assignments import forget, words_at
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.expansion_forms import glob, has_known_keys
from preflight.loaders.shell.misread_tests import misread
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.word_splitting import text_of
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.typing_without_import import Protocol


class Stops(Protocol):
    """The end of a path, and the statement that it leaves."""

    at: str

    def reached(self, *kinds: str) -> None: ...


class Follows(Protocol):
    """Walks statements; branches and loops call it back for theirs. dry: in a trial run that records no launches."""

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


_NUMBERS = {"-eq": 0, "-ne": 0, "-lt": 0, "-le": 0, "-gt": 0, "-ge": 0}
_EMPTY = lazy_pattern(
    r"-z\s+\"?\$\{?([A-Za-z_]\w*)(?::?[-+])?\}?\"?"
    r"|\"?\$\{?([A-Za-z_]\w*)(?::?-)?\}?\"?\s*={1,2}\s*\"\"|!\s*-v\s+([A-Za-z_]\w*)"
)
MAX_DEPTH = 40


def test(expander: Expander, tree: Tree, node: Node, depth: int = 0) -> bool | None:
    """The outcome of a test node."""
    kind = node.type
    if depth > MAX_DEPTH:
        return None
    if kind in ("test_command", "parenthesized_expression"):
        if tree.text(node).startswith("(("):
            return arithmetic(expander, tree, node)
        if kind == "test_command" and (read := misread(tree.text(node))) is not None:
            return read.outcome
        inner = node.named_children
        return test(expander, tree, inner[0], depth + 1) if len(inner) == 1 else None
    if kind == "unary_expression":
        return _unary(expander, tree, node, depth)
    if kind == "binary_expression":
        return _binary(expander, tree, node, depth)
    if kind == "negation_expression":
        value = test(expander, tree, node.named_children[0], depth + 1) if node.named_children else None
        return None if value is None else not value
    text = expander.text(tree, node)
    return bool(text) if text is not None else None


def arithmetic(expander: Expander, tree: Tree, node: Node) -> bool | None:
    """Whether (( … )) is not zero; its assignments are kept."""
    piece = computed(expander, tree, node, tree.span(node), once=True)
    return piece.text != "0" if piece.text is not None else None


def asked_for(text: str) -> frozenset[str]:
    """Variables that a condition tests for being empty or unset: [ -z "$X" ]."""
    return frozenset(name for match in _EMPTY.finditer(text) for name in match.groups() if name)


def _unary(expander: Expander, tree: Tree, node: Node, depth: int) -> bool | None:
    operator = node.children[0]
    sign = tree.text(operator).strip()
    operand = node.named_children[-1]
    if sign == "!":
        value = test(expander, tree, operand, depth + 1)
        return None if value is None else not value
    if sign == "-v":
        return _is_set(expander, tree, operand)
    if sign not in ("-z", "-n"):
        return None
    text = expander.text(tree, operand)
    return None if text is None else (not text) == (sign == "-z")


_ELEMENT = lazy_pattern(r"(\w+)\[(.+)\]")


def _is_set(expander: Expander, tree: Tree, operand: Node) -> bool | None:
    """Whether a variable is set, or a key of an associative array; None if its caller may set it."""
    if tree.text(operand).strip("\"'") in expander.state.variables:
        return True
    element = _ELEMENT.fullmatch(expander.text(tree, operand) or "")
    array = expander.state.get(element[1]) if element is not None else None
    if element is None or array is None or not has_known_keys(array):
        return None
    return element[2] in array.keys


_DECIDES = ((("||", "-o"), True), (("&&", "-a"), False))
"""The operators between comparisons, the weakest first, each with the outcome of one side that decides."""


def _binary(expander: Expander, tree: Tree, node: Node, depth: int) -> bool | None:
    """The outcome of operands with operators between them: the grammar joins those of `=` and `||` in any order."""
    return _joined(expander, tree, _flat(node, depth), depth)


def _flat(node: Node, depth: int) -> list[Node]:
    if node.type != "binary_expression" or len(node.children) != 3 or depth > MAX_DEPTH:
        return [node]
    left, sign, right = node.children
    return [*_flat(left, depth + 1), sign, *_flat(right, depth + 1)]


def _joined(expander: Expander, tree: Tree, parts: list[Node], depth: int) -> bool | None:
    for signs, decisive in _DECIDES:
        places = [at for at, part in enumerate(parts) if at % 2 and tree.text(part).strip() in signs]
        if not places:
            continue
        spans = zip([-1, *places], [*places, len(parts)], strict=True)
        found = [_joined(expander, tree, parts[start + 1 : end], depth) for start, end in spans]
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    if len(parts) == 1 and parts[0].type != "binary_expression":
        return test(expander, tree, parts[0], depth + 1)
    return _compared(expander, tree, *parts) if len(parts) == 3 else None


def _compared(expander: Expander, tree: Tree, left: Node, operator: Node, right: Node) -> bool | None:
    sign = tree.text(operator).strip()
    if any(side.type.endswith("_expression") for side in (left, right)):
        return None
    a, b = expander.text(tree, left), expander.text(tree, right)
    if a is None or b is None:
        return None
    if sign in _NUMBERS:
        return _compare(a, sign, b)
    if sign in ("=", "==", "!="):
        equal = a == b
        if not equal and re.search(r"[*?\[\]()\\]", b):
            pattern = glob(b) if tree.text(right)[:1] not in "\"'" else None
            if pattern is None:
                return None if tree.text(right)[:1] not in "\"'" else sign == "!="
            if len(a) > 200:
                return None
            equal = bool(pattern.fullmatch(a))
        return equal == (sign != "!=")
    if sign in ("<", ">"):
        return (a < b) == (sign == "<") if a != b else False
    return None


def _compare(a: str, sign: str, b: str) -> bool | None:
    if not (re.fullmatch(r"\s*-?\d{1,18}\s*", a) and re.fullmatch(r"\s*-?\d{1,18}\s*", b)):
        return None
    x, y = int(a), int(b)
    return {"-eq": x == y, "-ne": x != y, "-lt": x < y, "-le": x <= y, "-gt": x > y, "-ge": x >= y}[sign]


_ARGUMENT = lazy_pattern(r'"?\$(?:[1-9]|\{[1-9]\})"?')


def follow_if(follower: Follows, tree: Tree, node: Node) -> None:
    """Follow an if with its elif and else branches."""
    possible: list[list[Node]] = []
    because, texts = "", ""
    needed: set[str] = set()
    for tests, body in _branches(node):
        value: bool | None = True
        for test in tests:
            value = follower.status(tree, test, testing=True)
        if value is False:
            continue
        guarded = _guarded(tree, tests, body)
        if value and guarded:
            needed |= guarded
            continue
        needed |= guarded if value is None else set()
        possible.append(body)
        if value:
            break
        texts += " ".join(tree.text(test) for test in tests)
        because = because or f"the condition {texts[:60]}"
    else:
        possible.append([])
    for name in sorted(name for name in needed if _is_for_the_caller(follower.state.variables.get(name))):
        unknown = Piece(None, tree.span(node), exact=False, because=f"${name}")
        follower.state.put(name, Variable(((unknown,),), False, tree.span(node)))
    if len(possible) == 1:
        follower.block(tree, possible[0])
    else:
        follower.either(tree, possible, because, asked_for(texts))


def _is_for_the_caller(variable: Variable | None) -> bool:
    """Whether a script leaves a variable to its caller: it does not set it, or only to other variables, all empty."""
    if variable is None:
        return True
    text, end = variable.place.source.text, variable.place.end
    return text_of(variable.scalar) == "" and text[end : end + 3].lstrip("=\"'").startswith("$")


def _guarded(tree: Tree, tests: list[Node], body: list[Node]) -> frozenset[str]:
    """The variables without which a script fails: its caller sets them."""
    last = tree.text(body[-1]).split() if body else []
    ends = last[:1] == ["exit"] and last[1:] != ["0"]
    return asked_for(" ".join(tree.text(test) for test in tests)) if ends else frozenset()


def follow_case(follower: Follows, tree: Tree, node: Node) -> None:
    """Follow a case."""
    subject = node.child_by_field_name("value")
    text = follower.expander.text(tree, subject) if subject is not None else None
    possible: list[list[Node]] = []
    by_default = False
    for item in (child for child in node.named_children if child.type == "case_item"):
        patterns = item.children_by_field_name("value")
        values = {child.id for child in patterns}
        body = [child for child in item.named_children if child.id not in values]
        matched = [_matches(follower, tree, text, pattern) for pattern in patterns]
        if any(m is True for m in matched):
            possible.append(body)
            by_default = text is None
            break
        if any(m is None for m in matched):
            possible.append(body)
    else:
        possible.append([])
    if len(possible) == 1:
        follower.block(tree, possible[0])
    else:
        because = f"case {tree.text(subject)}" if subject is not None else "case"
        default = (
            possible[-1] if subject is not None and by_default and _ARGUMENT.fullmatch(tree.text(subject)) else None
        )
        follower.either(tree, possible, because, default=default)


def _matches(follower: Follows, tree: Tree, text: str | None, pattern: Node) -> bool | None:
    wanted = follower.expander.text(tree, pattern)
    if wanted == "*" and tree.text(pattern) == "*":
        return True
    found = glob(wanted) if wanted is not None else None
    return None if text is None or found is None or len(text) > 200 else bool(found.fullmatch(text))


def _branches(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """The tests and the body of each branch of an if; no tests for else."""
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


MAX_ROUNDS = 16
_OVER_ARGUMENTS = lazy_pattern(r"getopts\b|\$#|\$\{#\}|\$\{?1\b")
"""A condition that tests whether arguments are left."""


def follow_for(follower: Follows, tree: Tree, node: Node) -> None:
    """Follow a for or select loop."""
    name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    if name is None or body is None:
        return
    listed = node.children_by_field_name("value")
    items = [field for child in listed for field in words_at(follower.expander, tree, child)]
    if follower.expander.arguments is None and (not listed or any(_is_arguments(tree.text(child)) for child in listed)):
        _leave_out(follower, tree, body)
        return
    known = listed and len(items) <= MAX_ROUNDS and all(text_of(field.pieces) is not None for field in items)
    if not known or tree.text(node).startswith("select"):
        forget(follower.expander, tree, name)
        _repeat(follower, tree, body)
        return
    for field in items:
        follower.state.put(tree.text(name), Variable((tuple(field.pieces),), False, tree.span(name)))
        follower.statement(tree, body)
        follower.stop.reached("continue")
        if follower.stop.at:
            break
    follower.stop.reached("break")


def follow_while(follower: Follows, tree: Tree, node: Node) -> None:
    """Follow a while, until or for (( … )) loop."""
    body = node.child_by_field_name("body")
    test = next((child for child in node.children_by_field_name("condition") if child.is_named), None)
    if body is None:
        return
    if follower.expander.arguments is None and test is not None and _OVER_ARGUMENTS.search(tree.text(test)):
        _leave_out(follower, tree, body)
        return
    start = node.child_by_field_name("initializer")
    for name in start.named_children[:1] if start is not None else []:
        forget(follower.expander, tree, name)
    value = (
        follower.status(tree, test)
        if test is not None and node.type == "while_statement" and test.type == "command"
        else None
    )
    until = tree.text(node).startswith("until")
    if value is not None and tree.text(test).strip() in ("true", "false", ":") and value is until:
        return
    _repeat(follower, tree, body)


def _is_arguments(text: str) -> bool:
    return text.strip('"') in ("$@", "$*", "${@}", "${*}")


def _leave_out(follower: Follows, tree: Tree, body: Node) -> None:
    """Skip a loop over the arguments of the script, which are assumed to be empty: the caller states the variables that
    only it sets."""
    known = set(follower.state.ever)
    follower.dry += 1
    with follower.state.frame() as changes:
        follower.statement(tree, body)
    follower.state.undo(changes)
    follower.dry -= 1
    follower.stop.at = ""
    follower.state.by_caller |= follower.state.ever - known


def _repeat(follower: Follows, tree: Tree, body: Node) -> None:
    """Follow a body that runs an unknown number of times: the variables that it changes are unknown from its start
    on."""
    if not follower.dry:
        follower.dry += 1
        with follower.state.frame() as changes:
            follower.statement(tree, body)
        new = follower.state.undo(changes)
        follower.dry -= 1
        follower.stop.at = ""
        for name, variable in new.items():
            before = changes[name]
            if variable is not None and before is not None and variable.items != before.items:
                unknown = Piece(None, variable.place, exact=False, because=f"${name}, which a loop changes")
                follower.state.put(name, before._replace(items=((unknown,),), array=False))
    follower.either(tree, [[body], []], "a loop")
    follower.stop.reached("break", "continue")
