"""Tests in [ ] and [[ ]] that bash reads differently than intended, because of a missing blank or a redirection."""

from __future__ import annotations

from preflight.loaders.document import Problem
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

MOST_CHARACTERS = 300
_OPERAND = r"(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|\$\w{1,80}|\$\{\w{1,80}\}|[\w./-]{1,200})"
_NO_OPENING = lazy_pattern(r"(\[\[?)[^\s\[]")
_NO_CLOSING = lazy_pattern(r"\[\s[^\n]*[^\s\]\\](\])")
_ONE_WORD = lazy_pattern(rf"\[\[?\s+(!\s+)?({_OPERAND}(==?|!=){_OPERAND}?)\s+\]\]?")
_REDIRECTED = lazy_pattern(rf"\[\s+({_OPERAND})\s+([<>])\s+({_OPERAND})\s+\]")
_FLAG = lazy_pattern(r"(?<![\w-])--[\w.-]+")
_NUMERIC = {"<": "-lt", ">": "-gt"}
_FIRST = "without a space after {bracket}, this test never holds, because bash runs {word} as a command"
_LAST = "without a space before ], this test never holds, because [ has no closing ]"
_HOLDS = "without spaces around {sign}, this test always holds, because {word} is a single word that is not empty"
_FAILS = "without spaces around {sign}, this test never holds, because {word} is a single word that is not empty"
_WRITES = "[ ] reads {sign} as a redirection, so this test compares nothing and writes the file {word}"
_READS = "[ ] reads {sign} as a redirection, so this test compares nothing and reads the file {word}"


class Misread(NamedTuple):
    """A test that bash reads differently. outcome: its result, None if it depends on values; at: the faulty part; fix:
    the text to insert, or to replace the part with."""

    outcome: bool | None
    message: Message
    at: tuple[int, int]
    title: str
    fix: tuple[tuple[int, int], str]


def misread(text: str) -> Misread | None:
    """How bash reads the text of a test, if that is not what was intended."""
    if len(text) > MOST_CHARACTERS or "\n" in text or text.startswith("(("):
        return None
    if (match := _NO_OPENING.match(text)) is not None:
        end, word = match.end(1), text.split(None, 1)[0]
        message = Message(_FIRST, bracket=match[1], word=word)
        return Misread(False, message, (0, len(word)), Message("insert a space"), ((end, end), " "))
    if (match := _NO_CLOSING.fullmatch(text)) is not None:
        at = match.start(1)
        return Misread(False, Message(_LAST), (at, at + 1), Message("insert a space"), ((at, at), " "))
    if (match := _ONE_WORD.fullmatch(text)) is not None and "$" in match[2]:
        template = _FAILS if match[1] else _HOLDS
        message = Message(template, sign=match[3], word=match[2])
        return Misread(not match[1], message, match.span(2), Message("insert spaces"), (match.span(3), f" {match[3]} "))
    if (match := _REDIRECTED.fullmatch(text)) is not None and "$" in match[1] + match[3]:
        sign = match[2]
        message = Message(_WRITES if sign == ">" else _READS, sign=sign, word=match[3])
        fix = (match.span(2), _NUMERIC[sign])
        return Misread(None, message, match.span(2), f"write {_NUMERIC[sign]}", fix)
    return None


def misread_test(tree: Tree, node: Node) -> Problem | None:
    """A test command that bash reads differently than intended."""
    found = misread(tree.text(node))
    if found is None:
        return None
    whole = tree.span(node)
    place = whole._replace(start=whole.start + found.at[0], end=whole.start + found.at[1])
    (start, end), text = found.fix
    edit = Span(whole.source, whole.start + start, whole.start + end)
    guarded = next((one for one in ancestors(node) if one.type in ("if_statement", "list")), node)
    keys = tuple(dict.fromkeys(_FLAG.findall(tree.text(guarded))))
    return Problem("misread-test", found.message, place, (), (found.title, edit, text), keys)
