"""Variables that are set under one name and used under another, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from preflight.loaders.document import Problem
from preflight.loaders.shell.commands import Commands
from preflight.loaders.shell.syntax import Tree, ancestors
from preflight.source.message import Message
from preflight.source.spelling import slips
from preflight.source.text import Span

_SIZE = re.compile(
    r"(?:TP|PP|CP|EP|VPP|ETP|TENSOR|PIPELINE|CONTEXT|EXPERT|MODEL)(?:_(?:MODEL_)?(?:PARALLEL|SIZE|PARALLEL_SIZE|NUM|"
    r"DEGREE))?"
    r"|(?:GLOBAL|MICRO)_BATCH(?:_SIZE)?|[GM]BS|SEQ_LEN(?:GTH)?"
)
"""Names of variables that hold a size of the layout or of the batch."""
_LAYOUT = re.compile(r"(?:TP|PP|CP|EP|VPP|ETP|TENSOR|PIPELINE|CONTEXT|EXPERT|MODEL).*")
_NAME = re.compile(r"\$\{?(\w+)")
_MOST = 20
_OTHER_WAY = re.compile(r"(?<![A-Z])(?:SAVE|LOAD)(?![A-Z])")
_BLANKS = re.compile(
    r"(?m)^[ \t]*([A-Z][A-Z0-9_]*)(?:[ \t]+=[ \t]*(?=[^\s=])|=[ \t]+(?=(?:\d+|\"[^\"\n]*\")[ \t]*(?:#.*)?$))"
)
_INERT = frozenset(["comment", "string", "raw_string", "heredoc_body", "ansi_c_string", "test_command"])


def meant_variable(name: str, commands: Commands, used: set[str]) -> str:
    """The variable of the script that another name is a slip of; "" where none is, or several are."""
    known = [other for other, variable in commands.state.variables.items() if variable.items and not variable.array]
    if commands.state.foreign:
        return ""
    found = slips(name, known, 0.8)
    if len(found) != 1:
        return _unused_sibling(name, known, used)
    close = name.lower() == found[0].lower() or abs(len(name) - len(found[0])) <= 1
    return found[0] if found[0] not in used or (close and len(name) > 4) else ""


def _unused_sibling(name: str, known: Sequence[str], used: set[str]) -> str:
    """The only variable that is set, never read, and named for the same thing: TOKENIZER_MODEL for TOKENIZER_PATH."""
    first, *more = name.split("_")
    same = [other for other in known if other not in used and other.startswith(f"{first}_")]
    return same[0] if len(same) == 1 and more and len(first) > 3 else ""


def misspelt_variable(name: str, meant: str, flag: str, span: Span) -> Problem:
    """A name that nothing sets beside one that is set. span: the place of its use."""
    message = Message(
        "${name} is not set, so {flag} gets no value; did you mean ${meant}", name=name, flag=flag, meant=meant
    )
    at = _NAME.search(span.text)
    fix = None
    if at is not None and at[1] == name:
        place = span._replace(start=span.start + at.start(1), end=span.start + at.end(1))
        fix = (f"write ${meant}", place, meant)
    return Problem("misspelt-variable", message, span, (), fix, (flag,))


def unused_sizes(commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Sizes of the layout or the batch that a script sets and nothing reads. A degree of 1 changes nothing."""
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
            message = Message("{name}={value} is never used: no option takes it", name=name, value=value)
            yield Problem("unused-size", message, variable.place)


def unused_paths(commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Folders to save to or to load from that a script sets and nothing reads, though it reads the other one."""
    if commands.state.foreign:
        return
    for name, variable in commands.state.variables.items():
        other = _OTHER_WAY.sub(lambda word: "LOAD" if word[0] == "SAVE" else "SAVE", name)
        if name in used or other == name or other not in used or other not in commands.state.variables:
            continue
        uses = len(re.findall(rf"\$\{{?{other}\b", commands.files.source.text))
        if uses < 2 and "LOAD" in name:
            continue  # a run from the beginning
        if variable.exported or variable.sometimes or variable.array or not variable.items:
            continue
        message = Message("{name} is never used: no option takes it, while ${other} is passed", name=name, other=other)
        yield Problem("unused-path", message, variable.place)


def blanks_at_equals(tree: Tree, commands: Commands, used: set[str]) -> Iterator[Problem]:
    """Assignments with a blank before the equals sign: bash takes the name for a command, and sets nothing."""
    for match in islice(_BLANKS.finditer(tree.source.text), _MOST):
        name, span = match[1], Span(tree.source, match.start(1), match.end())
        node = tree.root.descendant_for_byte_range(span.start, span.end)
        inert = node is not None and any(a.type in _INERT for a in ancestors(node))
        known = commands.state.variables.get(name)
        empty = known is None or not any(piece.text for value in known.items for piece in value)
        if name in used and empty and not inert:
            rest = tree.source.text[match.end() :].split(None, 1)
            word = name if "=" not in span.text.split()[0] else rest[0] if rest else ""
            template = "with a blank at the = {name} gets no value: bash runs {word} as a command"
            message = Message(template, name=name, word=word)
            yield Problem("blanks-at-equals", message, span, (), ("delete the blanks", span, f"{name}="), (name,))
