"""Scripts that bash accepts and that end before their launch: by their own exit, or inside a here-document."""

from __future__ import annotations

import re

from preflight.loaders.document import Document, Launch, Problem
from preflight.loaders.shell.commands import Commands
from preflight.loaders.shell.syntax import Node, Tree, ancestors, unclosed_document
from preflight.source.finding import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.spelling import nearest
from preflight.source.text import Source, Span

RULE = "script-ends-before-launch"
_NAMES = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
_SUM, _IN_SUM = lazy_pattern(r"\(\((.{0,200}?)\)\)"), lazy_pattern(r"(?<![\w$])[A-Za-z_]\w*")
_OUTSIDE = lazy_pattern(r"\$[0-9@*#?!]|\$\((?!\()|\$\{[0-9@*#!]|`|(?<!\S)-[a-zA-Z] |\$\{\w+:?[-+=?]")
"""What a condition requires from the caller of the script, or from the machine."""
_LITERAL = lazy_pattern(r"\w+=(?P<value>\"[^\"$`\n]*\"|'[^'\n]*'|[^\s$`\"';|&()]*)(?=[ \t]*(?:[\n;#]|\Z))")
_DEFAULT = lazy_pattern(r"(?P<name>\w+)=\"?\$\{(?P=name):?[-=](?P<value>[\w.+-]+)\}\"?(?=[ \t]*(?:[\n;#]|\Z))")
CLOSE = 0.75
"""The similarity from which a default is a slip of a branch, and not a mark that the caller has to give a value."""


def own_exit(tree: Tree, commands: Commands) -> Problem | None:
    """The failing exit that a script certainly takes, for a value that it sets itself."""
    if not commands.ended or commands.exits is None:
        return None
    inside, node, code = commands.exits
    if inside.source is not tree.source or not re.fullmatch(r"[1-9]\d{0,2}", code):
        return None
    around = next((one for one in ancestors(node) if one.type in ("case_statement", "if_statement")), None)
    asked = _asked(tree, around) if around is not None else ""
    summed = "".join(_SUM.findall(asked))
    names = dict.fromkeys([*_NAMES.findall(asked), *_IN_SUM.findall(summed)])
    if not names or _OUTSIDE.search(asked):
        return None
    places = [_set_here(name, tree, commands) for name in names]
    near = ""
    if None in places:
        assert around is not None
        place, near = _slip(next(iter(names)), around, tree, commands) if len(names) == 1 else (None, "")
        places = [place]
    place, name = places[0], next(iter(names))
    if place is None:
        return None
    hint: str = Message("; did you mean {near}", near=near) if near else ""
    template = "the script ends with exit {code} before its launch, because {name} is {value}{hint}"
    value = place.text.strip("\"'")
    message = Message(template, code=code, name=name, value=repr(value), hint=hint)
    return Problem(RULE, message, place, (tree.span(node),), (f"write {near}", place, near) if near else None)


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
        "this does not end the here-document of line {line}, because of the blanks next to {word}: what follows, and "
        "the launch in it, is its text"
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
    return Document(source, "script", launch=bare, problems=(problem,), also=also)


def _asked(tree: Tree, around: Node) -> str:
    """The question in a case or an if."""
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
    """Where a script gives a variable a default that no branch of a case takes, and the branch that is meant."""
    variable = commands.state.variables.get(name)
    if around.type != "case_statement" or variable is None or variable.array or variable.sometimes:
        return None, ""
    place = variable.place
    found = _DEFAULT.match(place.source.text, place.start) if place.source is tree.source else None
    if found is None:
        return None, ""
    items = (child for child in around.named_children if child.type == "case_item")
    words = [tree.text(one).strip("\"'") for item in items for one in item.children_by_field_name("value")]
    cased = (word for word in words if word.casefold() == found["value"].casefold())
    near = next(cased, None) or nearest(found["value"], [word for word in words if word.strip("*?")], CLOSE)
    return (Span(place.source, found.start("value"), found.end("value")), near) if near else (None, "")


def _set_here(name: str, tree: Tree, commands: Commands) -> Span | None:
    """Where a script sets a variable to plain text, which nothing outside replaces."""
    variable = commands.state.variables.get(name)
    if variable is None or name in commands.state.held or variable.array or variable.sometimes:
        return None
    place = variable.place
    found = _LITERAL.match(place.source.text, place.start) if place.source is tree.source else None
    return Span(place.source, found.start("value"), found.end("value")) if found is not None else None
