"""A script with another branch of a `case` or an `if` taken: for each branch, the text with only that branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from preflight.loaders.shell.bash_parser import Node, Tree, parse
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source

MOST = 12
"""Maximum number of branches of one script that are followed."""
MOST_CHARACTERS = 40_000
"""Maximum size of a script whose branches are followed."""
_BRANCHES = lazy_pattern(r"\b(?:esac|elif|else)\b")
_SUBJECT = lazy_pattern(r'"?\$(?:\{?\w+(?::?-[\w.-]*)?\}?)"?')
_CHOICE = lazy_pattern(r"[\w.-]+")
_TEST = lazy_pattern(r"(?:\[\[?|test)\s")
_COMPARES = lazy_pattern(r"\s(?:==?|!=|-eq|-ne|-gt|-lt|-ge|-le)\s")
_INPUT = ("while_statement", "for_statement", "function_definition")
"""Commands around a case that reads options one by one, or is called with separate words."""


class Branch(NamedTuple):
    """A branch that a caller may choose. where: the choice; text: the script with only this branch."""

    where: str
    text: str


def other_branches(source: Source) -> tuple[Branch, ...]:
    """The script for each value that its branches test, one choice at a time."""
    if len(source.text) > MOST_CHARACTERS or not (
        "esac" in source.text or "elif" in source.text or "else" in source.text
    ):
        return ()
    try:
        tree = parse(source)
    except (InputError, RecursionError):
        return ()
    return tuple(islice(_branches(tree, source.text), MOST))


def _branches(tree: Tree, text: str) -> Iterator[Branch]:
    for node in _choices(tree.root):
        yield from _of_case(tree, text, node) if node.type == "case_statement" else _of_if(tree, text, node)


def _choices(node: Node) -> Iterator[Node]:
    """The cases and ifs of a script that set variables, outer ones first."""
    for child in node.named_children:
        if child.type in _INPUT:
            continue
        if child.type in ("case_statement", "if_statement") and _sets(child):
            yield child
        if child.type in ("case_statement", "case_item", "if_statement", "elif_clause", "else_clause", "list"):
            yield from _choices(child)


def _sets(node: Node) -> bool:
    return any(child.type == "variable_assignment" or _sets(child) for child in node.named_children)


def _of_case(tree: Tree, text: str, node: Node) -> Iterator[Branch]:
    """The branches of a case over a variable or an argument."""
    subject = node.child_by_field_name("value")
    if subject is None or not _SUBJECT.fullmatch(tree.text(subject)):
        return
    place, name = tree.span(subject), tree.text(subject).strip('"')
    for item in (child for child in node.named_children if child.type == "case_item"):
        words = (tree.text(pattern).strip("\"'") for pattern in item.children_by_field_name("value"))
        word = next((word for word in words if _CHOICE.fullmatch(word)), None)
        if word is not None:
            yield Branch(f"{name} is {word}", text[: place.start] + word + text[place.end :])


def _of_if(tree: Tree, text: str, node: Node) -> Iterator[Branch]:
    """The branches of an if whose tests compare variables."""
    tests = list(_tests(node))
    if not all(len(test) == 1 and _compares(tree.text(test[0]).strip()) for test in tests):
        return
    for taken in range(len(tests) + 1):
        where = tree.text(tests[taken][0]) if taken < len(tests) else f"not {tree.text(tests[-1][0])}"
        yield Branch(where, _with(tree, text, [test[0] for test in tests], taken))


def _compares(test: str) -> bool:
    """Whether a test compares a variable with a value."""
    return _TEST.match(test) is not None and _COMPARES.search(test.partition("$")[2]) is not None


def _tests(node: Node) -> Iterator[tuple[Node, ...]]:
    """The tests of an if and of each elif."""
    test: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type == "then":
            yield tuple(test)
            in_body = True
        elif child.type == "elif_clause":
            yield from _tests(child)
        elif child.is_named and not in_body and child.type != "comment":
            test.append(child)


def _with(tree: Tree, text: str, tests: Sequence[Node], taken: int) -> str:
    """The text in which only one of the tests holds; none if the number is too large."""
    for number, test in reversed(list(enumerate(tests))):
        place = tree.span(test)
        text = text[: place.start] + ("true" if number == taken else "false") + text[place.end :]
    return text
