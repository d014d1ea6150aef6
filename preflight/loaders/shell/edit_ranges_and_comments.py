"""Places in the text of a script: quotes, continued lines, comments and the statements below them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from preflight.loaders.document import Comment, Word
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors, parse
from preflight.source.source_file import CannotEdit, Source, Span, Splice


@lru_cache(maxsize=4)
def _tree(source: Source) -> Tree:
    return parse(source)


def _around(source: Source, offset: int) -> str:
    """The kind of node that determines the lines: "string", "raw_string", "array" or "command"."""
    node = _tree(source).root.descendant_for_byte_range(offset, offset + 1)
    for ancestor in ancestors(node) if node is not None else ():
        if ancestor.type in ("string", "raw_string", "array", "heredoc_body") and ancestor.start_byte < offset:
            return str(ancestor.type)
    return "command"


def context(source: Source, offset: int) -> str:
    """The quote around a place: `"`, `'` or nothing."""
    kind = _around(source, offset)
    return {"string": '"', "raw_string": "'", "heredoc_body": '"'}.get(kind, "")


def quoted(text: str, quote: str, expands: bool) -> str:
    """A value in the notation for these quotes. expands: it is later expanded without quotes, so it cannot contain
    blanks."""
    if not re.search(r"[^\w@%+=:,./-]", text, re.ASCII) and text:
        return text
    if quote == "'" and "'" in text:
        raise CannotEdit(f"{text!r} cannot be in single quotes")
    if expands and (not text or re.search(r"[\s*?\[\]]", text)):
        raise CannotEdit(f"{text!r} would be split into words where it is expanded")
    if quote == '"':
        return re.sub(r'([$`"\\])', r"\\\1", text)
    if quote == "'":
        return text
    import shlex

    return shlex.quote(text)


def splits(word: Word) -> bool:
    """Whether a word is later expanded without quotes, so that blanks would split it."""
    return any(use.source.text[use.start - 1 : use.start] != '"' for use in word.uses)


def site(word: Word, level: Word) -> Span:
    """The place of a word in the text that contains another word: itself, or the variable that contains it."""
    uses, base = word.uses, level.uses
    more = len(uses) - len(base)
    if more < 0 or uses[more:] != base:
        raise CannotEdit(f"{word.text or word.because} comes from elsewhere than {level.text}")
    return word.span if not more else uses[more - 1]


def widened(span: Span) -> Span:
    """A place including its quotes, if they contain nothing else."""
    text = span.source.text
    before, after = text[span.start - 1 : span.start], text[span.end : span.end + 1]
    if before and before == after and before in "\"'" and (span.start < 2 or text[span.start - 2] in " \t\n=("):
        kind = _around(span.source, span.start - 1)
        opener = text[span.start - 2 : span.start - 1]
        if kind in ("array", "command") and opener != "=":
            return Span(span.source, span.start - 1, span.end + 1)
    return span


def removal(source: Source, region: Span) -> Span:
    """The range to delete so that neither an empty line nor a useless backslash remains."""
    text = source.text
    line, last = source.starts[region.line - 1], text.find("\n", region.end)
    last = len(text) if last < 0 else last
    before, after = text[line : region.start], text[region.end : last]
    if before.strip() or after.strip() not in ("", "\\"):
        if before and before[-1] in " \t":
            return Span(source, region.start - (len(before) - len(before.rstrip(" \t"))), region.end)
        return Span(source, region.start, region.end + len(after) - len(after.lstrip(" \t")))
    above = text[:line]
    dangling = re.search(r"[ \t]*\\\r?\n\Z", above)
    if not after.strip() and dangling:
        return Span(source, dangling.start(), region.end)
    return Span(source, line, min(last + 1, len(text)))


class Place:
    """The place after a word, and the style of the next word there."""

    def __init__(self, source: Source, region: Span) -> None:
        self.source, self.region = source, region
        self.kind = _around(source, region.start)
        self.quote = context(source, region.start)

    def after(self, line: str) -> Splice:
        """Insert one or more words, on a separate line if the word here is on one."""
        text, region = self.source.text, self.region
        start = self.source.starts[region.line - 1]
        end = text.find("\n", region.end)
        end = len(text) if end < 0 else end
        before, rest = text[start : region.start], text[region.end : end]
        newline = "\r\n" if text[end - 1 : end] == "\r" else "\n"
        tail = rest.rstrip("\r")
        alone = not before.strip() and (
            tail.strip() in ("", "\\") or (self.kind == "array" and tail.strip().startswith("#"))
        )
        if not alone:
            return self.source.span(region.end), f" {line}"
        at = end - (len(rest) - len(tail))
        if tail.strip() == "\\":
            return self.source.span(at), f"{newline}{before}{line}{tail}"
        continued = re.search(r"\\\r?\n\Z", text[:start]) is not None
        if self.kind == "command" or (self.kind == "string" and continued):
            return self.source.span(region.end), f" \\{newline}{before}{line}"
        return self.source.span(at), f"{newline}{before}{line}"


# fmt: off
_PLAIN = frozenset(
    ["command", "string", "raw_string", "word", "concatenation", "number", "simple_expansion", "expansion",
        "test_command", "variable_name", "heredoc_body"]
)
# fmt: on


def comments(tree: Tree) -> Iterator[Comment]:
    """Every comment, in order."""
    stack: list[tuple[Node, Node | None, bool]] = [(tree.root, None, False)]
    while stack:
        node, following, in_array = stack.pop()
        if node.type == "comment":
            yield _comment(tree.source, node.start_byte, node.end_byte, None if in_array else following)
            continue
        if node.type in _PLAIN:
            continue
        below: list[tuple[Node, Node | None, bool]] = []
        after: Node | None = None
        for child in reversed(node.children):
            if child.is_named:
                below.append((child, after, node.type == "array"))
                after = child if child.type != "comment" else after
        stack.extend(below)


def _comment(source: Source, start: int, end: int, following: Node | None) -> Comment:
    end = start + len(source.text[start:end].rstrip("\r\n"))
    line = source.position(start).line
    begin = source.starts[line - 1]
    if source.text[begin:start].strip():
        return Comment(Span(source, start, end), False, Span(source, begin, end + 1))
    first = source.starts[min(line, len(source.starts) - 1)]
    if following is not None:
        return Comment(Span(source, start, end), True, Span(source, first, max(first, following.end_byte) + 1))
    last = source.starts[line + 1] if line + 1 < len(source.starts) else len(source.text) + 1
    return Comment(Span(source, start, end), True, Span(source, first, last))


def word_removal(word: Word) -> Span | None:
    """The range to delete to remove a literal word; None if it is composed or comes from elsewhere."""
    whole = word.editable and not word.maybe and word.text is not None
    return removal(word.span.source, widened(word.span)) if whole else None
