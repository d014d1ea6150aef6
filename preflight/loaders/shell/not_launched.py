"""Scripts that bash accepts and that end before their launch: by their own exit, or inside a here-document."""

from __future__ import annotations

import re

from preflight.loaders.document import Document, Launch, Problem
from preflight.loaders.shell.commands import Commands
from preflight.loaders.shell.syntax import Node, Tree, ancestors, unclosed_document
from preflight.source.finding import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.text import Source, Span

RULE = "script-ends-before-launch"
_NAMES = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
_SUM, _IN_SUM = lazy_pattern(r"\(\((.{0,200}?)\)\)"), lazy_pattern(r"(?<![\w$])[A-Za-z_]\w*")
_OUTSIDE = lazy_pattern(r"\$[0-9@*#?!]|\$\((?!\()|\$\{[0-9@*#!]|`|(?<!\S)-[a-zA-Z] |\$\{\w+:?[-+=?]")
"""What a condition requires from the caller of the script, or from the machine."""
_LITERAL = lazy_pattern(r"\w+=(?P<value>\"[^\"$`\n]*\"|'[^'\n]*'|[^\s$`\"';|&()]*)(?=[ \t]*(?:[\n;#]|\Z))")


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
    if None in places:
        return None
    place, name = places[0], next(iter(names))
    assert place is not None
    template = "the script ends with exit {code} before its launch, because {name} is {value}"
    value = place.text.strip("\"'")
    return Problem(RULE, Message(template, code=code, name=name, value=repr(value)), place, (tree.span(node),))


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


def _set_here(name: str, tree: Tree, commands: Commands) -> Span | None:
    """Where a script sets a variable to plain text, which nothing outside replaces."""
    variable = commands.state.variables.get(name)
    if variable is None or name in commands.state.held or variable.array or variable.sometimes:
        return None
    place = variable.place
    found = _LITERAL.match(place.source.text, place.start) if place.source is tree.source else None
    return Span(place.source, found.start("value"), found.end("value")) if found is not None else None
