"""Faults of a script as a whole, recorded for the rules that report them."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from preflight.loaders.document import Problem
from preflight.loaders.shell.bash_parser import Tree, ancestors
from preflight.loaders.shell.command_effects import Commands
from preflight.loaders.shell.launches import chains
from preflight.loaders.shell.state import OPTION, Variable
from preflight.loaders.shell.word_splitting import text_of
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span
from preflight.source.spelling import slips
from preflight.source.typing_without_import import Any

_SIZE = lazy_pattern(
    r"(?:TP|PP|CP|EP|VPP|ETP|TENSOR|PIPELINE|CONTEXT|EXPERT|MODEL)(?:_(?:MODEL_)?(?:PARALLEL|SIZE|PARALLEL_SIZE|NUM|"
    r"DEGREE))?"
    r"|(?:GLOBAL|MICRO)_BATCH(?:_SIZE)?|[GM]BS|SEQ_LEN(?:GTH)?"
)
"""Names of variables that hold a size of the layout or of the batch."""
_LAYOUT = lazy_pattern(r"(?:TP|PP|CP|EP|VPP|ETP|TENSOR|PIPELINE|CONTEXT|EXPERT|MODEL).*")
_NAME = lazy_pattern(r"\$\{?(\w+)")
_MOST = 20
LONGEST_LINE = 200
_OTHER_WAY = lazy_pattern(r"(?<![A-Z])(?:SAVE|LOAD)(?![A-Z])")
_BLANKS_AROUND_SIGN = lazy_pattern(
    r"(?m)^[ \t]*((?:export|readonly|local|declare)[ \t]+)?([A-Z][A-Z0-9_]*)"
    r"(?:[ \t]+=[ \t]*(?=[^\s=])|=[ \t]+(?=(?:\d+|\"[^\"\n]*\")[ \t]*(?:#.*)?$))"
)
_NO_ASSIGNMENT = frozenset(["comment", "string", "raw_string", "heredoc_body", "ansi_c_string", "test_command"])


def meant_variable(name: str, span: Span, commands: Commands, used: set[str]) -> str:
    """The variable of which a name is a misspelling; "" if there is none, or several. span: the place of its use."""
    meant = _similar_variable(name, commands, used)
    return "" if meant and _is_value_of(meant, span) else meant


def _is_value_of(name: str, span: Span) -> bool:
    """Whether a use is inside the value that a variable is assigned: SEQ_LENGTH=${SEQ_LEN}."""
    line = span.source.text[max(0, span.start - LONGEST_LINE) : span.start].rpartition("\n")[2]
    return re.search(rf"(?:^|[\s;]){re.escape(name)}=(?:[\"'][^\"']*|[^\s;\"']*)$", line) is not None


def _similar_variable(name: str, commands: Commands, used: set[str]) -> str:
    known = [other for other, variable in commands.state.variables.items() if variable.items and not variable.array]
    if commands.state.foreign:
        return ""
    found = slips(name, known, 0.8) or tuple(other for other in known if _abbreviated(name, other))
    if len(found) != 1:
        return _unused_sibling(name, known, used)
    slip = len(name) > 4 and (_one_slip(name, found[0]) or _abbreviated(name, found[0]))
    return found[0] if found[0] not in used or slip else ""


def _abbreviated(name: str, known: str) -> bool:
    """Whether two names differ in only one word, which one of them abbreviates: SEQ_LENGTH and SEQ_LEN."""
    parts, others = name.upper().split("_"), known.upper().split("_")
    odd = [tuple(sorted(pair, key=len)) for pair in zip(parts, others, strict=False) if pair[0] != pair[1]]
    same = len(parts) == len(others) > 1 and len(odd) == 1
    return same and len(odd[0][0]) > 2 and odd[0][1].startswith(odd[0][0]) and odd[0][1].isalpha()


def _one_slip(name: str, known: str) -> bool:
    """Whether two names differ by a typing error in one word: EVAL_INTERVAL and LOG_INTERVAL are different names."""
    parts, others = name.upper().split("_"), known.upper().split("_")
    odd = [(one, other) for one, other in zip(parts, others, strict=False) if one != other]
    if len(parts) != len(others):
        return abs(len(name) - len(known)) <= 1
    return not odd or (len(odd) == 1 and abs(len(odd[0][0]) - len(odd[0][1])) <= 1 and _near(*odd[0]))


def _near(one: str, other: str) -> bool:
    """Whether two words differ by one added, missing or replaced letter, or by two swapped letters."""
    if sorted(one) == sorted(other):
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < len(long):
        return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    return sum(a != b for a, b in zip(one, other, strict=True)) == 1 and len(one) > 2


def _unused_sibling(name: str, known: Sequence[str], used: set[str]) -> str:
    """The only unread variable with a related name: TOKENIZER_MODEL for TOKENIZER_PATH."""
    first, *more = name.split("_")
    same = [other for other in known if other not in used and other.startswith(f"{first}_")]
    return same[0] if len(same) == 1 and more and len(first) > 3 else ""


def misspelt_variable(name: str, meant: str, flag: str, span: Span) -> Problem:
    """An unset variable with a name similar to a set one. span: the place of its use."""
    message = Message(
        "${name} is not set, so {flag} gets no value; did you mean ${meant}?", name=name, flag=flag, meant=meant
    )
    at = _NAME.search(span.text)
    fix = None
    if at is not None and at[1] == name:
        place = span._replace(start=span.start + at.start(1), end=span.start + at.end(1))
        fix = (f"write ${meant}", place, meant)
    return Problem("misspelt-variable", message, span, (), fix, (flag,))


def unused_sizes(commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Sizes of the layout or the batch that a script sets and never reads. A degree of 1 is harmless."""
    if commands.state.foreign:
        return
    found = (item for item in commands.state.variables.items() if _SIZE.fullmatch(item[0]) and item[0] not in used)
    for name, variable in islice(found, _MOST):
        texts = [piece.text or "" for value in variable.items for piece in value]
        value = "".join(texts)
        layout = _LAYOUT.fullmatch(name) is not None
        if variable.exported or variable.sometimes or variable.array or not value.isdecimal():
            continue
        if int(value) > 1 or not layout:
            message = Message("{name}={value} has no effect, because no option uses it", name=name, value=value)
            yield Problem("unused-size-variable", message, variable.place)


def unused_paths(commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Save or load folders that a script sets and never reads, although it reads the other one."""
    if commands.state.foreign:
        return
    for name, variable in commands.state.variables.items():
        other = _OTHER_WAY.sub(lambda word: "LOAD" if word[0] == "SAVE" else "SAVE", name)
        if name in used or other == name or other not in used or other not in commands.state.variables:
            continue
        uses = len(re.findall(rf"\$\{{?{other}\b", commands.files.source.text))
        if uses < 2 and "LOAD" in name:
            continue  # the run starts from the beginning
        if variable.exported or variable.sometimes or variable.array or not variable.items:
            continue
        if all(piece.text == "" and not piece.because for value in variable.items for piece in value):
            continue  # no folder can be passed
        if (folder := _folder(variable)) is not None and folder == _folder(commands.state.variables[other]):
            continue  # the same folder is passed
        message = Message(
            ("{name} has no effect, because no option uses it; ${other} is passed instead"), name=name, other=other
        )
        yield Problem("unused-path", message, variable.place)


def _folder(variable: Variable) -> str | None:
    """The one path that a variable contains, None if it is unknown."""
    pieces = [piece.text for value in variable.items for piece in value]
    return None if variable.sometimes or None in pieces else "".join(map(str, pieces)).rstrip("/")


_TAKEN_FOR_A_COMMAND = "because of the space next to =, {name} gets no value, and bash runs {word} as a command"
_TAKEN_FOR_NAMES = "because of the space next to =, {name} gets no value, and {word} treats what follows as names"


def blanks_at_equals(tree: Tree, commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Assignments with a blank before the equals sign: bash runs the name as a command and sets nothing."""
    for match in islice(_BLANKS_AROUND_SIGN.finditer(tree.source.text), _MOST):
        name, span = match[2], Span(tree.source, match.start(2), match.end())
        node = tree.root.descendant_for_byte_range(span.start, span.end)
        inert = node is not None and any(a.type in _NO_ASSIGNMENT for a in ancestors(node))
        known = commands.state.variables.get(name)
        empty = known is None or not any(piece.text for value in known.items for piece in value)
        if name in used and empty and not inert:
            rest = tree.source.text[match.end() :].split(None, 1)
            word = name if "=" not in span.text.split()[0] else rest[0] if rest else ""
            template = "because of the space next to =, {name} gets no value, and bash runs {word} as a command"
            if match[1]:
                word, template = (
                    match[1].strip(),
                    "because of the space next to =, {name} gets no value, and {word} treats what follows as names",
                )
            flags = re.findall(rf"(--[\w-]+)[ \t=]+[\"']?\$\{{?{name}\b", tree.source.text)
            keys = (name, *dict.fromkeys(flags[:_MOST]))
            message = Message(template, name=name, word=word)
            yield Problem("blanks-at-equals", message, span, (), ("delete the spaces", span, f"{name}="), keys)


_TRAILING = lazy_pattern(r"\\([ \t]+)(?:(#[^\n]*)|(?=\r?\n))")
_REFERENCE = lazy_pattern(r"\$\{?[#!]?([A-Za-z_]\w*)")
_FLAG = lazy_pattern(r"(?<![\w-])--[\w.-]+")
_TYPED = lazy_pattern(r"(?<![\w-])--[\w.-]+|(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+(?==)")
"""Options, and keys of settings with a dot."""
_GROUP_LINE = lazy_pattern(
    r"(?m)^([ \t]*)(\"?\$\{?)(\w+(?:ARGS?|OPTS?|PARAMS?|FLAGS?|OPTIONS?))((?:\[@\])?\}?\"?)([ \t]*\\?)$"
)
"""A line of a command that is a group of options and nothing else."""
LOST = "lost-continuation"
MOST_BROKEN = 200
MOST_LINES = 10
"""Additional lines without a continuation that a finding shows."""
_BELOW = 10_000
"""Maximum characters that are searched below a broken line for the rest of its command."""
_CRLF = lazy_pattern(r"^(?![ \t]*(?:#|echo\b|\r?$))[^\n]*\r\n", re.MULTILINE)
"""A line on which a carriage return matters."""
_CRLF_STRICT = lazy_pattern(r"^(?![ \t]*(?:#|echo\b))[^\n]*\r\n", re.MULTILINE)
"""The same under `set -e`: an empty line is a command that is not found."""
_STOPS = lazy_pattern(r"^[ \t]*set[ \t]+-[a-z]*e", re.MULTILINE)
_PIPE = lazy_pattern(r"^[ \t]*(\|\|?|&&)(?=[ \t]|$)", re.MULTILINE)
_INDENT = lazy_pattern(r"\n[ \t]+")
_BLANKS = "the spaces after this backslash end the command, so what follows is not part of it"
_COMMENTED = "the space and the comment after this backslash end the command, so what follows is not part of it"
_COMMENT_ENDS = "this comment ends the command above it, so {word} and what follows are not passed to it"
_NOT_REACHED = "no backslash continues the line above, so {word} and what follows are not passed to its command"
_BASH_STOPS = "no backslash continues the line above, so bash stops at {word}"
_BEGINS = "{flag} runs as a separate command, because no backslash continues the line above"
_INERT = frozenset(["comment", "string", "raw_string", "heredoc_body", "ansi_c_string"])


def faults(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Faults of the script as a whole."""
    yield from carriage_returns(tree.source)
    trailing = list(_trailing_blanks(tree))
    yield from trailing
    yield from _lost_pipes(tree, trailing)
    ends = {tree.source.position(problem.span.start).line for problem in trailing}
    for first, *more in chains(commands.launches.broken)[:MOST_BROKEN]:
        span = commands.texts.span(first.place)
        if span.source is tree.source and span.line - 1 not in ends:
            more_spans = tuple(commands.texts.span(one.place) for one in more)
            lost = _lost(tree, span, first.joined, more_spans)
            yield lost._replace(keys=_left_out(lost, tree, commands)) if lost.kind == LOST else lost
    if commands.found:
        yield from _unused(tree, commands)
        yield from _not_exported(tree, commands)
    if tree.cut or commands.follower.exhausted:
        yield Problem("script-not-followed", "the script is too complex to be followed to its end", tree.source.span(0))


def carriage_returns(source: Source) -> Iterator[Problem]:
    """Carriage returns that change the executed commands: on an empty line or in a comment they have no effect, after
    an echo they are printed."""
    text = source.text
    strict = _STOPS.search(text) is not None
    first = (_CRLF_STRICT if strict else _CRLF).search(text) if "\r\n" in text else None
    if first is not None:
        at = first.end() - 2
        count = text.count("\r\n")
        message = Message.plural(
            count,
            "{count} line ends in CRLF, and bash reads the carriage return as part of the last word",
            "{count} lines end in CRLF, and bash reads the carriage return as part of the last word",
            count=count,
        )
        yield Problem(
            "carriage-return",
            message,
            Span(source, at, at + 1),
            (),
            ("write LF line ends", source.span(0, len(text)), text.replace("\r\n", "\n")),
        )


def _trailing_blanks(tree: Tree) -> Iterator[Problem]:
    for match in islice(_TRAILING.finditer(tree.source.text), 100):
        node = tree.root.descendant_for_byte_range(match.start(), match.start() + 1)
        if node is not None and any(a.type in _INERT or _splits_away(a, tree) for a in ancestors(node)):
            continue
        below = tree.source.text[match.end() : match.end() + _BELOW].lstrip("\r\n").lstrip(" \t")
        if below.startswith(("-", "$", '"', "'", "|")) or OPTION.match(below):
            span = Span(tree.source, match.start(1), match.end(1))
            message = _COMMENTED if match[2] else _BLANKS
            keys = (*_FLAG.findall(tree.source.line(span.line))[-1:], *_FLAG.findall(_continued(below)))
            fix = None if match[2] else ("delete the spaces", span, "")
            yield Problem("blank-after-backslash", message, span._replace(start=match.start()), (), fix, keys)


def _lost_pipes(tree: Tree, trailing: Sequence[Problem]) -> Iterator[Problem]:
    """Lines that begin with | or && although the line above is not continued: bash stops there."""
    if "\n|" not in (text := _INDENT.sub("\n", tree.source.text)) and "\n&&" not in text:
        return
    told = {problem.span.line for problem in trailing}
    for match in islice(_PIPE.finditer(tree.source.text), 100):
        span = Span(tree.source, match.start(1), match.end(1))
        above = tree.source.line(span.line - 1) if span.line > 1 else ""
        node = tree.root.descendant_for_byte_range(span.start, span.end)
        goes_on = above.endswith(("\\", "|", "&&")) and not above.lstrip().startswith("#")
        if goes_on or span.line - 1 in told or any(a.type in _INERT for a in ancestors(node)):
            continue
        yield _lost(tree, Span(tree.source, span.start, span.end), True)


def _splits_away(node: Any, tree: Tree) -> bool:
    """Whether a node is an array that is only expanded without quotes, so that a blank element disappears."""
    if node.type != "array" or node.parent is None or node.parent.type != "variable_assignment":
        return False
    name = (node.parent.text or b"").decode().partition("=")[0].rstrip("+")
    uses = re.findall(r"(.?)\$\{" + re.escape(name) + r"\[[@*]\]\}", tree.source.text)
    return bool(uses) and not any(before == '"' for before in uses)


def _continued(text: str) -> str:
    """A text up to the first line that does not end with a backslash."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(line)
        if not line.rstrip().endswith("\\"):
            break
    return "\n".join(lines)


def _lost(tree: Tree, span: Span, joined: bool, more: tuple[Span, ...] = ()) -> Problem:
    """Words that begin a separate command; the fix continues the line above if that is part of a command."""
    first = span.text.split(None, 1)[0]
    above = tree.source.line(span.line - 1) if span.line > 1 else ""
    end = tree.source.starts[span.line - 2] + len(above) if above else 0
    if joined and above.lstrip().startswith("#"):
        comment = Span(tree.source, end - len(above.lstrip()), end)
        return Problem(LOST, Message(_COMMENT_ENDS, word=first), comment, (span, *more))
    fix = None
    if above.strip() and not re.search(r"[|&;#>\\]", above):
        fix = ("continue the line above", Span(tree.source, end, end), " \\")
    place = span._replace(end=span.start + len(first))
    if joined:
        message = Message(_BASH_STOPS if first in ("|", "||", "&&") else _NOT_REACHED, word=first)
        return Problem(LOST, message, place, more[:MOST_LINES], fix)
    return Problem("lost-options", Message(_BEGINS, flag=first), place, (), fix, tuple(_FLAG.findall(span.text)))


def _left_out(lost: Problem, tree: Tree, commands: Commands) -> tuple[str, ...]:
    """The options that the rest of a command would pass on, also those of groups; a comment may contain some."""
    start = tree.source.starts[lost.span.line - 1]
    text = _continued(tree.source.text[start : start + _BELOW])
    if lost.related and lost.related[0].source is tree.source and lost.span.start < lost.related[0].start:
        text += _continued(tree.source.text[lost.related[0].start : lost.related[0].start + _BELOW])
    variables = (commands.state.variables.get(name) for name in _REFERENCE.findall(text)[:MOST_BROKEN])
    held = [piece.text or "" for v in variables if v is not None and v.holds_options for i in v.items for piece in i]
    return tuple(dict.fromkeys(_FLAG.findall(" ".join([text, *held]))))


def groups(commands: Commands) -> Iterator[tuple[str, Variable]]:
    """Variables that hold options."""
    for name, variable in commands.state.variables.items():
        if variable.holds_options and not variable.exported:
            yield name, variable


def first_three(flags: Sequence[str]) -> tuple[str, ...]:
    """Options as a message lists them."""
    return (*flags[:3], "…") if len(flags) > 3 else tuple(flags)


def referenced(commands: Commands) -> set[str]:
    """Variables that the script and what it sources read."""
    return set().union(*map(_names, (commands.files.source, *commands.files.opened.values())))


@lru_cache(maxsize=16)
def _names(source: Source) -> frozenset[str]:
    """The variables that a text expands."""
    return frozenset(_REFERENCE.findall(source.text))


_LAUNCHER = frozenset(("nproc_per_node", "nnodes", "node_rank", "master_addr", "master_port", "rdzv_endpoint"))


def _unused(tree: Tree, commands: Commands) -> Iterator[Problem]:
    if commands.state.foreign or "${!" in tree.source.text:
        return
    used = referenced(commands)

    unread = (*unused_sizes(commands, used), *unused_paths(commands, used))
    yield from (problem for problem in unread if problem.span.source is tree.source)
    yield from blanks_at_equals(tree, commands, used)
    for name, variable in groups(commands):
        if name in used or variable.place.source is not tree.source:
            continue
        flags = [f for value in variable.items for piece in value for f in _TYPED.findall(piece.text or "")]
        message = Message.plural(
            max(len(flags), 1),
            "{name} is defined but never passed to the training command: {flags} has no effect",
            "{name} is defined but never passed to the training command: {flags} have no effect",
            name=name,
            flags=first_three(flags),
        )
        yield Problem(
            *("unused-option-variable", message, variable.place, ()),
            *(None if of_launcher(flags) else _passed(name, variable, tree), tuple(flags)),
        )


def of_launcher(flags: Iterable[str]) -> bool:
    """Whether options are those of a launcher or of another program that starts processes: a script refuses them."""
    return any(flag.lstrip("-").replace("-", "_") in _LAUNCHER for flag in flags)


@lru_cache(maxsize=4)
def _group_lines(source: Source) -> tuple[re.Match[str], ...]:
    """The lines of a command that are an option group and continue below, last one first."""
    return tuple(reversed([line for line in _GROUP_LINE.finditer(source.text) if line[5].endswith("\\")]))


def _passed(name: str, variable: Variable, tree: Tree) -> tuple[str, Span, str] | None:
    """Pass a group next to another one that a launch takes on a separate line; None if there is no such line."""
    last = next((line for line in _group_lines(tree.source) if line[3] != name), None)
    if last is None or last.start() <= variable.place.start or variable.array != ("[@]" in last[4]):
        return None
    starts = tree.source.starts
    below = bisect(starts, last.end())
    after = starts[below] if below < len(starts) else len(tree.source.text)
    new = f"{last[1]}{last[2]}{name}{last[4]}{last[5]}\n"
    return Message("pass {name} to the launch", name=f"${name}"), Span(tree.source, after, after), new


_SETTING = r"[A-Z_][A-Z0-9_]{0,80}=\S{0,200}"
_SETTINGS = lazy_pattern(rf"\s{{0,20}}{_SETTING}(?:\s{{1,20}}{_SETTING}){{0,40}}\s{{0,20}}")
"""Variables with their values, as before a command."""


def _not_exported(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Variables for child processes that are assigned without export. The rule knows which names matter."""
    used = referenced(commands)
    for name, variable in commands.state.variables.items():
        unseen = name.isupper() and not variable.exported and not variable.sometimes and name not in used
        if unseen and variable.items and not variable.array and variable.place.source is tree.source:
            place = variable.place
            if _SETTINGS.fullmatch(text_of(variable.scalar) or ""):
                continue  # NCCL_ENV="NCCL_DEBUG=INFO NCCL_IB_DISABLE=0" is a list for `env`, no variable of NCCL
            alone = re.fullmatch(
                r"[ \t]*\w+=(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)(?:[ \t]*|[ \t]+#.*)", tree.source.line(place.line)
            )
            fix = ("export it", place._replace(end=place.start), "export ") if alone else None
            message = Message("{name} is assigned but not exported, so the launched processes do not see it", name=name)
            yield Problem("not-exported", message, place, (), fix, (name,))
