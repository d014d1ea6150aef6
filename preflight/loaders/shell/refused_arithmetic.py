"""Values of a launch that bash does not compute, because a variable in their arithmetic is not an integer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from preflight.loaders.document import Piece, Problem, Word
from preflight.loaders.shell.arithmetic import NoInteger
from preflight.loaders.shell.bash_parser import parse
from preflight.loaders.shell.command_effects import Commands
from preflight.loaders.shell.launches import Found
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span

_OTHER_SHELL = lazy_pattern(r"#![^\n]{0,80}(?:zsh|ksh)")
"""Shells that count in fractions."""
_COUNTED = lazy_pattern(
    r"--(?:[\w-]{0,60}[-_])?(?:iters|samples|interval|size|length|layers|heads|tokens|steps|epochs)|--num[-_]\w{1,40}|--seed"
)
"""Options that take an integer: without a value the parser refuses them."""
_PLAIN = lazy_pattern(r"\"?\$\{?([A-Za-z_]\w*)(\[@\])?\}?\"?")


def refused_arithmetic(found: Found, commands: Commands) -> Iterator[Problem]:
    """Variables such as 100B, 1e9 and 0.5 in arithmetic on which the launch depends."""
    source = found.statement.source
    if commands.state.foreign or _OTHER_SHELL.match(source.text):
        return
    told: set[int] = set()
    words = (*found.taken.launch.launcher_words, *found.taken.launch.words)
    for before, word in pairwise((*words[:1], *words)):
        for one in word.pieces or (word,):
            because = one.because
            if one.text is not None or not isinstance(because, NoInteger) or because.place.start in told:
                continue
            if not _is_typed(one, found) and not _is_lost(one, before, word):
                continue
            told.add(because.place.start)
            message = Message(
                "bash computes only with integers and rejects {value}, the value of {name}",
                value=str(because),
                name=because.name,
            )
            yield Problem("arithmetic-refused", message, because.place, (one.span,))


def _is_typed(one: Piece | Word, found: Found) -> bool:
    """Whether the expansion is part of the launch itself, which bash then does not execute."""
    inside = found.statement
    return not one.uses and one.span.source is inside.source and inside.start <= one.span.start < inside.end


def _is_lost(one: Piece | Word, before: Word, word: Word) -> bool:
    """Whether an option gets no value, because the only assignment of the variable fails."""
    flag, value = word.parts
    option = flag if value is not None else before
    if not one.uses or one.span.source is not one.uses[0].source or _COUNTED.fullmatch(option.text or "") is None:
        return False
    if len(word.pieces) > (0 if value is None else 2) or not all(_PLAIN.fullmatch(use.text) for use in one.uses):
        return False
    name = _PLAIN.fullmatch(one.uses[0].text)
    text = one.span.source.text
    return name is not None and len(re.findall(rf"(?<![\w$-]){name[1]}\+?=", text)) == 1 and _always_runs(one.span)


_ALWAYS = frozenset(
    "program variable_assignment variable_assignments declaration_command string concatenation array word "
    "arithmetic_expansion expansion simple_expansion".split()
)


def _always_runs(span: Span) -> bool:
    """Whether an assignment is in no branch, loop, function or list of commands."""
    node = parse(span.source).root.descendant_for_byte_range(span.start, span.end - 1)
    while node is not None:
        if node.type not in _ALWAYS:
            return False
        node = node.parent
    return True
