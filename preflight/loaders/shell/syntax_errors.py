"""The place at which bash stops because a script is not valid shell, and the reason, in terms that its author
understands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from preflight.loaders.document import Problem
from preflight.loaders.shell.bash_command_syntax import Block, Commands
from preflight.loaders.shell.bash_delimiters import Refused, TooDeep
from preflight.loaders.shell.bash_parser import UNFILLED, without_placeholders
from preflight.loaders.shell.bash_tokens import REDIRECTIONS
from preflight.loaders.text_limits import MAX_SCRIPT
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.merge_conflict import conflict
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span

SYNTAX, EARLY = "shell-syntax", "script-ends-early"
_SHELL = lazy_pattern(r"#![^\n]*?[/ ](?:ba|da|a|rba)?sh(?:\.exe)?(?=[\s\"']|\Z)")
_TEMPLATE = lazy_pattern(r"\{%[^\n%{}]*%\}|\{#[^\n#{}]*#\}|<%[^\n%<>]*%>|(\{\{[^\n{}]*\}\})")
_CLOSES = {"fi": "if", "done": "do", "esac": "case", "}": "{", ")": "(", "then": "if", "else": "if", "elif": "if"}
_CLOSES |= {"do": "for", ";;": "case", ";&": "case", ";;&": "case", "in": "for"}
_STRING = lazy_pattern(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?:(?<=\s)|^)#[^\n]*", re.DOTALL | re.MULTILINE)
_SWALLOWED = lazy_pattern(r"\\\n[ \t]*(fi|done|esac)(?=[ \t;]*$)", re.MULTILINE)
MOST_TRIED = 5
"""Maximum number of places examined for a cause."""
_JOINS = frozenset(["|", "||", "&&", "|&", ";", "&"])


_CAUSES = frozenset(["lost-continuation", "blank-after-backslash"])


class Refusal(NamedTuple):
    """The place where bash stops. start, end: the place to show. related: the place of an unclosed block. unit: the
    start of the command that bash reads as a whole, none of which runs. readable: the fault is small (a placeholder, or
    a missing line continuation), so the rest of the script is read as intended.
    """

    rule: str
    message: Message
    start: int
    end: int
    related: int | None
    unit: int
    readable: bool = False

    def problem(self, source: Source) -> Problem:
        """The refusal in the form that a rule reports."""
        related = () if self.related is None else (Span(source, self.related, self.related + 1),)
        return Problem(self.rule, self.message, Span(source, self.start, self.end), related)


def has_open_quote(source: Source) -> bool:
    """Whether a text, which may not be a script, opens a quote without closing it."""
    found = refusal(source)
    return found is not None and source.text[found.start : found.end] in ("'", '"') and found.rule == SYNTAX


def refusal(source: Source) -> Refusal | None:
    """The place where bash rejects a script, or a merge conflict, also one inside quotes; None if bash accepts the
    script, or if that is unknown: for another shell, an unrendered template, or too deep nesting."""
    text = source.text
    if len(text) > MAX_SCRIPT or (text.startswith("#!") and _SHELL.match(text) is None):
        return None
    return _refusal(text) if (found := _conflict(text)) is None else found


def _conflict(text: str) -> Refusal | None:
    """A merge conflict in a script that bash rejects, or in the quoted value of a variable."""
    found = conflict(text) if "<<<<<<< " in text else None
    if found is None or (_refusal(text) is None and not _in_value(text, found.start)):
        return None
    return Refusal(SYNTAX, found.message, found.start, found.end, None, 0)


def _in_value(text: str, at: int) -> bool:
    """Whether a place is inside the quotes after `NAME=`."""
    judged = _judged(text[:at])
    return judged is not None and judged[0].fault == "quote" and text[: judged[0].at].endswith("=")


def stops_at_line_ends(source: Source) -> bool:
    """Whether carriage returns at line ends are the reason why bash rejects a script."""
    return "\r\n" in source.text and refusal(source) is None and _judged(source.text) is not None


def with_cause(refused: Refusal, noticed: Iterable[Problem], source: Source) -> Iterator[Problem]:
    """The problem in a script that bash rejects; if a missing line continuation is the cause, that is reported."""
    line, told = source.position(refused.start).line, False
    for problem in noticed:
        own = problem.kind in _CAUSES and problem.span.source is source and line - 1 <= problem.span.line <= line
        if own and not told:
            message = Message("bash rejects this script: {because}", because=problem.message)
            yield problem._replace(kind=SYNTAX, message=message, safe=problem.kind == "blank-after-backslash")
        elif not own:
            yield problem
        told = told or own
    if not told:
        yield refused.problem(source)


@lru_cache(maxsize=8)
def _refusal(text: str) -> Refusal | None:
    found = _judged(text)
    if found is None or "expand_aliases" in text:
        return None
    if _TEMPLATE.search(text) and _judged(_TEMPLATE.sub(_without_template, text)) is None:
        return None
    if "\r\n" in text and _judged(text.replace("\r\n", "\n")) is None:
        return None  # the rule carriage-return reports this
    if (named := _placeholder(text, found[0].at)) is not None:
        return Refusal(*named, found[1].unit, _judged(without_placeholders(text)) is None)
    return _explained(*found)


def _judged(text: str) -> tuple[Refused, Commands] | None:
    """The place where bash stops in a text, with the part read so far; None if it does not stop, or that is unknown."""
    for patterns in (False, True) if "extglob" in text else (False,):
        commands = Commands(text, patterns=patterns)
        try:
            commands.read()
        except (TooDeep, RecursionError):
            return None
        except Refused as refused:
            if commands.tokens.resume:
                return None
            found = refused, commands
        else:
            return None
    return found


def _without_template(found: re.Match[str]) -> str:
    return "x" * len(found[0]) if found[1] else " " * len(found[0])


def _placeholder(text: str, at: int) -> tuple[str, Message, int, int, None] | None:
    """The placeholder on the line at which bash stops, or above it."""
    line = text.rfind("\n", 0, at) + 1
    begin = text.rfind("\n", 0, max(line - 1, 0)) + 1
    for found in UNFILLED.finditer(text, begin):
        start, end = found.span(found.lastindex or 0) if found[2] is None else found.span(2)
        if start > at:
            return None
        if end > line - 1 or at <= end + 1:
            shown = text[start:end]
            message = Message(
                "bash rejects this script: {placeholder} is not filled in, and bash reads `<` and `>` as redirections",
                placeholder=shown,
            )
            return SYNTAX, message, start, end, None
    return None


def _explained(refused: Refused, commands: Commands) -> Refusal:
    text, at = commands.text, refused.at
    if refused.fault in ("condition", "arithmetic"):
        message, start, end = _early(refused, text)
        return Refusal(EARLY, message, start, end, None, commands.unit)
    if refused.fault == "quote":
        return _open_quote(refused, commands)
    if (swallowed := _swallowed(refused, commands)) is not None:
        return swallowed
    because, block = _because(refused, commands)
    message = Message("bash rejects this script: {because}", because=because)
    start, end = _shown(text, at, refused.text)
    joined = refused.text in _JOINS and not text[text.rfind("\n", 0, at) + 1 : at].strip()
    return Refusal(SYNTAX, message, start, end, block.at if block is not None else None, commands.unit, joined)


def _open_quote(refused: Refused, commands: Commands) -> Refusal:
    """A quote or a bracket that is never closed. Quotes are read in pairs: if one is missing earlier, this one is only
    the last, which is visible from a text that ends where another should begin."""
    text, at = commands.text, refused.at
    message, related = Message("bash rejects this script: this `{sign}` is never closed", sign=refused.text), None
    astray = (found for found in _STRING.finditer(text, 0, at) if found[0][:1] == found[0][-1:] == refused.text)
    first = next((found for found in astray if "\n" in found[0] and found[0][-2:-1] == "="), None)
    if first is not None:
        related = first.start()
        message = Message(
            "bash rejects this script: this `{sign}` is never closed, and the one on line {line} is closed only on "
            "line {end}",
            sign=refused.text,
            line=text.count("\n", 0, related) + 1,
            end=text.count("\n", 0, first.end()) + 1,
        )
    return Refusal(SYNTAX, message, at, at + len(refused.text), related, commands.unit)


def _swallowed(refused: Refused, commands: Commands) -> Refusal | None:
    """The end of a block that a preceding backslash turns into a word of the command there."""
    if refused.text.strip() or not commands.opened:
        return None
    block, text = commands.opened[-1], commands.text
    ends = (found for found in _SWALLOWED.finditer(text, block.at) if found[1] == block.wants)
    for found in islice(ends, MOST_TRIED):
        if _judged(f"{text[: found.start()]} {text[found.start() + 1 :]}") is None:
            message = Message(
                "bash rejects this script: the backslash on line {line} makes this `{wants}` a word of the command",
                line=text.count("\n", 0, found.start()) + 1,
                wants=block.wants,
            )
            return Refusal(SYNTAX, message, *found.span(1), block.at, commands.unit)
    return None


def _early(refused: Refused, text: str) -> tuple[Message, int, int]:
    if refused.fault == "arithmetic":
        message = Message("bash ends here without an error code: this `((` has no `))`")
        return message, refused.at, refused.at + max(len(refused.text.rstrip("\n")), 1)
    token = _name(refused.text)
    if token:
        message = Message("bash ends here without an error code: unexpected `{token}` in `[[ ]]`", token=token)
    else:
        message = Message("bash ends here without an error code: the line ends inside `[[ ]]`")
    return message, *_shown(text, refused.at, refused.text)


def _shown(text: str, at: int, token: str) -> tuple[int, int]:
    """The place of a token; for the end of a line, or of the script, the last character before it."""
    if _of_line(token):
        return at, at + len(token)
    before = len(text[:at].rstrip())
    return max(before - 1, 0), before


def _of_line(token: str) -> str:
    """A token; none for the end of a line, after which bash reads the here-documents of the line."""
    return "" if token.startswith("\n") else token.strip()


def _name(token: str) -> str:
    shown = token.strip().split("\n")[0]
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _because(refused: Refused, commands: Commands) -> tuple[Message, Block | None]:
    """Why a token is not valid in its place, and the block that it leaves open."""
    token, before = _of_line(refused.text), commands.tokens.before
    block = commands.opened[-1] if commands.opened else None
    if refused.fault == "array":
        return Message("`{token}` must be quoted in an array", token=_name(token)), None
    if refused.fault == "loop":
        return Message("`for (( ))` takes three parts, with two semicolons between them"), None
    if not token and before in REDIRECTIONS:
        return Message("no file follows `{sign}`", sign=before), None
    if not token and refused.at < len(commands.text):
        return Message("the line ends before the command is complete"), None
    line = commands.text.count("\n", 0, block.at) + 1 if block is not None else 0
    if not token:
        return _at_end(block, line)
    if block is not None and token == block.wants:
        message = Message(
            "no command before this `{token}`, in the `{block}` on line {line}",
            token=token,
            block=block.name,
            line=line,
        )
        return message, block
    if token in _CLOSES:
        return _closing(token, block, line)
    if token == "(":
        return Message("`{token}` must be quoted in a command", token=token), None
    if token in _JOINS:
        return Message("no command before this `{token}`", token=token), None
    if block is not None and block.wants in ("then", "do", "in"):
        message = Message(
            "unexpected `{token}`: the `{block}` on line {line} expects `{wants}`",
            token=_name(token),
            block=block.name,
            line=line,
            wants=block.wants,
        )
        return message, block
    return Message("unexpected `{token}`", token=_name(token)), None


def _at_end(block: Block | None, line: int) -> tuple[Message, Block | None]:
    if block is None:
        return Message("the script ends where a command should follow"), None
    message = Message(
        "the `{block}` on line {line} has no `{wants}`, and the script ends here",
        block=block.name,
        line=line,
        wants=block.wants,
    )
    return message, block


def _closing(token: str, block: Block | None, line: int) -> tuple[Message, Block | None]:
    """A word that belongs to a block, which is not open here or is interrupted by another one."""
    if block is None:
        return Message("this `{token}` has no matching `{block}`", token=token, block=_CLOSES[token]), None
    message = Message(
        "this `{token}` comes before the `{wants}` of the `{block}` on line {line}",
        token=token,
        block=block.name,
        line=line,
        wants=block.wants,
    )
    return message, block
