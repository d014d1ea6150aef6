"""The output of commands, if it can be known (`echo`, `printf`, `cat`, `tee`), and its destination."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence

from preflight.loaders.document import Piece
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.command_words import heredoc, words_of
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.state import FILE, Read, Variable
from preflight.loaders.shell.word_splitting import Field, Value, text_of
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

_ECHO = lazy_pattern(r"-[neE]+")
_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)
_FORM = lazy_pattern(r"%(.)|\\(.)", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "a": "\a", "r": "\r"}
_STDOUT = (">", ">>", ">|", "&>", "&>>")
_TOGETHER = ("compound_statement", "subshell", "do_group")
MOST_DEPTH = 8
MOST_ROUNDS = 200


class Streams(NamedTuple):
    """The input and output of a command. text: its stdin; source: the file that it reads; to: its output file; grows:
    appended; away: the output is not passed to a later command. document: its here-document."""

    document: Node | None = None
    text: Read | None = None
    source: Value = ()
    to: Value = ()
    grows: bool = False
    away: bool = False


def path_of(value: Value) -> str:
    """A path as a script names it, with unknown parts as written. "" for a device, and if there is no path."""
    text = "".join(piece.because if piece.text is None else piece.text for piece in value)
    return FILE + os.path.normpath(text) if text and not text.startswith("/dev/") else ""


def streams_of(expander: Expander, tree: Tree, nodes: Sequence[Node], given: Read | None = None) -> Streams:
    """The streams of a command, from its redirections. given: the input from a pipe."""
    found = Streams(text=given)
    for node in (child for around in nodes for child in around.children):
        if node.type == "heredoc_redirect":
            body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
            if body is not None:
                found = found._replace(document=node, text=_of_document(expander, tree, node, body))
            for child in node.named_children:
                found = _redirected(expander, tree, child, found) if child.type == "file_redirect" else found
        elif node.type == "herestring_redirect" and node.named_children:
            found = found._replace(text=_of_string(expander, tree, node.named_children[-1]))
        elif node.type == "file_redirect":
            found = _redirected(expander, tree, node, found)
    return found


def _of_document(expander: Expander, tree: Tree, node: Node, body: Node) -> Read:
    return lambda: heredoc(expander, tree, node, body)


def _of_string(expander: Expander, tree: Tree, node: Node) -> Read:
    return lambda: (*expander.value(tree, node), _line(tree.span(node)))


def _redirected(expander: Expander, tree: Tree, node: Node, found: Streams) -> Streams:
    sign = next((child.type for child in node.children if not child.is_named), "")
    number, target = node.child_by_field_name("descriptor"), node.child_by_field_name("destination")
    which = tree.text(number) if number is not None else ""
    if target is None or target.type == "process_substitution":
        return found
    if sign == "<" and which in ("", "0"):
        return found._replace(source=expander.value(tree, target), text=None)
    if sign in _STDOUT and which in ("", "1"):
        return found._replace(to=expander.value(tree, target), grows=sign.endswith(">>"), away=True)
    return found._replace(away=True) if sign == ">&" and which in ("", "1") else found


class Printer:
    """Determines the output of statements. content: of a file that the script has written, by its path."""

    def __init__(self, expander: Expander) -> None:
        self.expander = expander
        self.depth = 0

    def content(self, path: str) -> Value | None:
        """The text of a file that the script has written."""
        variable = self.expander.state.written.get(path)
        return variable.scalar if variable is not None else None

    def printed(self, tree: Tree, node: Node, given: Read | None = None, whole: bool = True) -> Value | None:
        """The output of a statement for the next command of a pipeline; None if unknown. whole: including the commands
        on the line of its here-document."""
        if self.depth >= MOST_DEPTH:
            return None
        self.depth += 1
        try:
            return self._printed(tree, node, given, whole)
        finally:
            self.depth -= 1

    def _printed(self, tree: Tree, node: Node, given: Read | None, whole: bool) -> Value | None:
        if node.type == "command":
            streams = streams_of(self.expander, tree, [node], given)
            return () if streams.away else self.of_words(words_of(self.expander, tree, node), streams)
        if node.type == "redirected_statement":
            return self._of_redirected(tree, node, given, whole)
        if node.type == "pipeline":
            value: Value | None = None
            for child in node.named_children:
                value = self.printed(tree, child, given)
                given = _known(value)
            return value
        parts = _parts(tree, node)
        values = [self.printed(tree, part) for part in parts] if parts is not None else [None]
        known = [value for value in values if value is not None]
        return tuple(piece for value in known for piece in value) if len(known) == len(values) else None

    def _of_redirected(self, tree: Tree, node: Node, given: Read | None, whole: bool) -> Value | None:
        body = node.child_by_field_name("body")
        if body is None:
            return None
        nodes = [body, node] if body.type == "command" else [node]
        streams = streams_of(self.expander, tree, nodes, given)
        if streams.away:
            return ()
        if body.type == "command":
            value = self.of_words(words_of(self.expander, tree, body), streams)
        else:
            value = self.printed(tree, body, streams.text)
        further = streams.document.named_children if whole and streams.document is not None else ()
        for child in (child for child in further if child.type == "pipeline"):
            value = self.printed(tree, child, _known(value))
        return value

    def of_words(self, words: list[Field], streams: Streams) -> Value | None:
        """The output of a simple command."""
        name = text_of(words[0].pieces) if words else None
        if name == "echo":
            return _echo(words)
        if name == "printf":
            return _printf(words[1:])
        if name == "cat" and len(words) > 1:
            values = [self._file(field, streams) for field in words[1:]]
            return None if None in values else tuple(piece for value in values for piece in value or ())
        if name in ("cat", "tee"):
            if streams.source:
                return self.content(path_of(streams.source))
            return streams.text() if streams.text is not None else None
        return () if name in (":", "true", "set") else None

    def _file(self, field: Field, streams: Streams) -> Value | None:
        text = text_of(field.pieces)
        if text == "-":
            return streams.text() if streams.text is not None else None
        return self.content(path_of(tuple(field.pieces)))


def _known(value: Value | None) -> Read | None:
    return None if value is None else lambda: value


def _parts(tree: Tree, node: Node) -> list[Node] | None:
    """Statements that print one after the other."""
    if node.type in _TOGETHER and not tree.text(node).startswith("(("):
        return [child for child in node.named_children if child.type != "comment"]
    if node.type == "list" and all(child.is_named or child.type == "&&" for child in node.children):
        return list(node.named_children)
    return None


def _line(place: Span) -> Piece:
    return Piece("\n", place, exact=False)


def _echo(words: list[Field]) -> Value:
    place = words[0].pieces[0].span
    flags, at = "", 1
    while at < len(words) and _ECHO.fullmatch(text_of(words[at].pieces) or ""):
        flags, at = flags + (text_of(words[at].pieces) or "")[1:], at + 1
    pieces: list[Piece] = []
    for field in words[at:]:
        pieces += [Piece(" ", place, exact=False), *field.pieces] if pieces else field.pieces
    if "e" in flags:
        pieces = [part for piece in _whole(pieces) for part in _decoded(piece)]
    return tuple(pieces) if "n" in flags else (*pieces, _line(place))


def _whole(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces that do not end inside an escape: an escaped backslash in quotes counts by itself."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1].text if found else None
        if before is not None and piece.text is not None and (len(before) - len(before.rstrip("\\"))) % 2:
            found[-1] = found[-1]._replace(text=before + piece.text, exact=False)
        else:
            found.append(piece)
    return found


def _decoded(piece: Piece) -> list[Piece]:
    """A piece with its escapes as read by `echo -e` and `printf`; unknown if one of them is unsupported."""
    text, found, at = piece.text, list[Piece](), 0
    for match in _ESCAPE.finditer(text) if text is not None else ():
        if match[1] not in _SIGNS:
            return [piece._replace(text=None, because=match[0], exact=False)]
        found += [piece.cut(at, match.start())] if match.start() > at else []
        found.append(piece._replace(text=_SIGNS[match[1]], exact=False))
        at = match.end()
    return [*found, piece.cut(at, len(text))] if text is not None and at < len(text) else found or [piece]


def _printf(words: list[Field]) -> Value | None:
    """The format, repeated as long as there are words: %s, %d and %b consume one each."""
    if words and text_of(words[0].pieces) == "--":
        words = words[1:]
    if not words or text_of(words[0].pieces) is None or (text_of(words[0].pieces) or "").startswith("-v"):
        return None
    form = _form(words[0])
    if form is None:
        return None
    given, found, rounds = list(words[1:]), list[Piece](), 0
    takes = any(isinstance(part, str) for part in form)
    while rounds < MOST_ROUNDS and (not rounds or (given and takes)):
        rounds += 1
        for part in form:
            if isinstance(part, Piece):
                found.append(part)
            elif given:
                pieces = given.pop(0).pieces
                found += [p for piece in _whole(pieces) for p in _decoded(piece)] if part == "b" else pieces
    return tuple(found)


def _form(field: Field) -> list[Piece | str] | None:
    """The parts of a format: text, and the letter for each word; None for other formats."""
    found: list[Piece | str] = []
    for piece in _whole(field.pieces):
        text, at = piece.text or "", 0
        for match in _FORM.finditer(text):
            if match[1] not in (None, "%", "s", "d", "b") or (match[2] is not None and match[2] not in _SIGNS):
                return None
            found += [piece.cut(at, match.start())] if match.start() > at else []
            at = match.end()
            if match[1] in ("s", "d", "b"):
                found.append(match[1])
            else:
                found.append(piece._replace(text=_SIGNS[match[2]] if match[2] else "%", exact=False))
        found += [piece.cut(at, len(text))] if at < len(text) else []
    return found


SETS = lazy_pattern(r"^printf\s+-v\s")
_PLAIN = lazy_pattern(r"(?:[^%\\]|%s)*")


def print_to_variable(expander: Expander, tree: Tree, node: Node) -> None:
    """The variable receives the output; unknown if it is more than texts inserted for %s."""
    texts = [text_of(field.pieces) for field in words_of(expander, tree, node)]
    name = texts[2] if len(texts) > 2 else None
    if name is None or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return
    form, given = texts[3] if len(texts) > 3 else None, [text for text in texts[4:] if text is not None]
    made = None
    if form is not None and len(given) == len(texts) - 4 == form.count("%s") and _PLAIN.fullmatch(form):
        made = "".join(a + b for a, b in zip(form.split("%s"), [*given, ""], strict=True))
    place = tree.span(node)
    expander.state.put(name, Variable(((Piece(made, place, exact=False, because=f"${name}"),),), False, place))
