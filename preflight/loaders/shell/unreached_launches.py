"""Scripts that certainly end before their launch, because of an exit or a here-document."""

from __future__ import annotations

import re
from collections.abc import Iterable

from preflight.loaders.document import Document, Launch, Problem
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors, unclosed_document
from preflight.loaders.shell.command_effects import Commands
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span
from preflight.source.spelling import nearest

RULE = "script-ends-before-launch"
_NAMES = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
_SUM, _IN_SUM = lazy_pattern(r"\(\((.{0,200}?)\)\)"), lazy_pattern(r"(?<![\w$])[A-Za-z_]\w*")
_OUTSIDE = lazy_pattern(r"\$[0-9@*#?!]|\$\((?!\()|\$\{[0-9@*#!]|`|(?<!\S)-[a-zA-Z] |\$\{\w+:?[-+=?]")
"""Values that a condition requires from the caller of the script, or from the machine."""
_LITERAL = lazy_pattern(r"\w+=(?P<value>\"[^\"$`\n]*\"|'[^'\n]*'|[^\s$`\"';|&()]*)(?=[ \t]*(?:[\n;#]|\Z))")
_DEFAULT = lazy_pattern(r"(?P<name>\w+)=\"?\$\{(?P=name):?[-=](?P<value>[\w.+-]+)\}\"?(?=[ \t]*(?:[\n;#]|\Z))")
_SOURCES = lazy_pattern(r"(?m)(?:^|[;&|]|\b(?:then|do|else))[ \t]*(?:source|\.)[ \t]+\S")
_UNSEEN = lazy_pattern(
    r"\b(?:eval|getopts|nocasematch)\b|\b(?:declare|typeset|local)[ \t]+-\w{0,8}[nl]|\bexport[ \t]+\"?\$"
)
_PLAIN = lazy_pattern(r"\w+=[\"']?(?P<value>[\w.+-]+)[\"']?(?=[ \t]*(?:[\n;#]|\Z))")
CLOSE = 0.75
"""The similarity from which a default counts as a misspelling of a branch, and not as a placeholder for the caller's
value."""


def own_exit(tree: Tree, commands: Commands) -> Problem | None:
    """The failing exit that a script certainly takes, for a value that it sets itself."""
    if not commands.ended or commands.exits is None:
        return None
    inside, node, code = commands.exits
    if inside.source is not tree.source or not re.fullmatch(r"[1-9]\d{0,2}", code):
        return None
    around = next((one for one in ancestors(node) if one.type in ("case_statement", "if_statement")), None)
    asked = condition(tree, around) if around is not None else ""
    names = names_in(asked)
    if not names or asks_outside(asked) or _set_unseen(names, tree.source.text[: node.start_byte], commands):
        return None
    places = [set_here(name, tree, commands) for name in names]
    near = ""
    if len(names) == 1 and around is not None:
        slip, near = _slip(next(iter(names)), around, tree, commands)
        places = [slip] if None in places else places
    elif None in places:
        return None
    place, name = places[0], next(iter(names))
    if place is None:
        return None
    hint: str = Message("; did you mean {near}?", near=near) if near else ""
    template = "the script ends with exit {code} before its launch, because {name} is {value}{hint}"
    value = place.text.strip("\"'")
    message = Message(template, code=code, name=name, value=repr(value), hint=hint)
    return Problem(RULE, message, place, (tree.span(node),), (f"write {near}", place, near) if near else None)


def names_in(asked: str) -> tuple[str, ...]:
    """The variables that a condition reads, each once."""
    return tuple(dict.fromkeys([*_NAMES.findall(asked), *_IN_SUM.findall("".join(_SUM.findall(asked)))]))


def asks_outside(asked: str) -> bool:
    """Whether a condition reads something from the caller of the script, or from the machine."""
    return _OUTSIDE.search(asked) is not None


def _set_unseen(names: Iterable[str], before: str, commands: Commands) -> bool:
    """Whether commands that were not followed may set a variable: loops over the caller's words, files that are not
    available, and names or texts that are only known when the script runs."""
    sourced = sum(1 for _ in _SOURCES.finditer(before))
    twice = any(len(re.findall(rf"(?<![\w$-]){name}\+?=", before)) > 1 for name in names)
    return twice or sourced > len(commands.files.opened) or _UNSEEN.search(before) is not None


def swallowed(source: Source) -> tuple[Problem, Source] | None:
    """A here-document whose end marker is indented or followed by blanks, so that it extends to the end of the script;
    with the corrected text, in which every character keeps its position."""
    found = unclosed_document(source.text)
    if found is None:
        return None
    start, word = found
    last = re.compile(rf"(?<=\n)([ \t]+){re.escape(word)}[ \t]*(?=\n|\Z)|(?<=\n){re.escape(word)}[ \t]+(?=\n|\Z)")
    end = last.search(source.text, start)
    if end is None:
        return None
    template = (
        "the spaces next to {word} keep this line from ending the here-document that starts on line {line}, so what "
        "follows, including the launch, is part of the here-document"
    )
    message = Message(template, line=source.position(start).line, word=word)
    at = end.start() + len(end[0]) - len(end[0].lstrip())
    fix = (f"write {word} alone on its line", Span(source, end.start(), end.end()), word)
    blanks = len(end[0]) - len(word)
    meant = source.text[: end.start() - 1] + " " * blanks + "\n" + word + source.text[end.end() :]
    return Problem(RULE, message, Span(source, at, at + len(word)), (), fix), source.changed(meant)


def not_launched(source: Source, launch: Launch, problem: Problem, also: tuple[Source, ...]) -> Document:
    """The document of a launch that is never reached: nothing else is reported about it."""
    bare = Launch("", (), launch.entry, (), open=True)
    return Document(source, "script", launch=bare, problems=(problem,), also=also, meant=launch)


def condition(tree: Tree, around: Node) -> str:
    """The condition of a case or an if."""
    if around.type == "case_statement":
        value = around.child_by_field_name("value")
        return tree.text(value) if value is not None else ""
    tests = []
    for child in around.children:
        if child.type == "then":
            break
        tests.append(tree.text(child))
    return " ".join(tests)


def _slip(name: str, around: Node, tree: Tree, commands: Commands) -> tuple[Span | None, str]:
    """The place where a script gives a variable a value, or a default, that matches no branch of a case, and the
    intended branch."""
    variable = commands.state.variables.get(name)
    if around.type != "case_statement" or variable is None or name in commands.state.held:
        return None, ""
    if variable.array or variable.sometimes:
        return None, ""
    place, text = variable.place, variable.place.source.text
    found = _DEFAULT.match(text, place.start) or _PLAIN.match(text, place.start)
    if found is None or place.source is not tree.source:
        return None, ""
    items = (child for child in around.named_children if child.type == "case_item")
    words = [tree.text(one).strip("\"'") for item in items for one in item.children_by_field_name("value")]
    cased = (word for word in words if word.casefold() == found["value"].casefold())
    near = next(cased, None) or nearest(found["value"], [word for word in words if word.strip("*?")], CLOSE)
    return (Span(place.source, found.start("value"), found.end("value")), near) if near else (None, "")


def set_here(name: str, tree: Tree, commands: Commands) -> Span | None:
    """The place where a script sets a variable to plain text that cannot be overridden from outside."""
    variable = commands.state.variables.get(name)
    if variable is None or name in commands.state.held or variable.array or variable.sometimes:
        return None
    place = variable.place
    found = _LITERAL.match(place.source.text, place.start) if place.source is tree.source else None
    return Span(place.source, found.start("value"), found.end("value")) if found is not None else None
