"""Faults of a script as a script, noted for the rules that report them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from preflight.document import Problem, Word
from preflight.loaders.shell.commands import Commands, Found
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.syntax import Tree, ancestors
from preflight.source import Span
from preflight.spelling import nearest

_TRAILING = re.compile(r"\\([ \t]+)(?=\r?\n)")
_REFERENCE = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*)")
_BARE = re.compile(r"(?<![\\$])\$(?:([A-Za-z_]\w*)(?!\[)|\{([A-Za-z_]\w*)\})")
_PLACEHOLDER = re.compile(r"<[^<>]+>|(?:your|path)[_-][\w./-]*|/?(?:path|PATH)[_/]to[_/].*|[xX]{3,}", re.IGNORECASE)
_GIVEN = re.compile(
    r"(?:MASTER_|LOCAL_|WORLD_SIZE|NODE|RANK|SLURM|VC_|MA_|PET_|OMPI_|PMI|HF_|WANDB|CUDA|NCCL|HCCL|ASCEND)\w*|HOME|USER|PWD|HOSTNAME|PATH|TMPDIR|NNODES|RANDOM|SECONDS|U?E?UID|PPID|\w*PATH"
)
_FLAG = re.compile(r"(?<![\w-])--[\w.-]+")
_SPREADS = re.compile(
    r"\b(?:srun|mpirun|mpiexec|orterun|prun|aprun|jsrun|yhrun|flux|ssh|pdsh|pssh|prsh|dsh|clush|parallel|ansible|ray|xargs)\b"
    r"|SLURM_(?:PROCID|NODEID|LOCALID)|\$\{?[A-Z_]*RANK\b"
)
"""What starts a command on other nodes, or tells one of several apart."""
_SAID = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_INERT = frozenset(["comment", "string", "raw_string", "heredoc_body", "ansi_c_string"])


def faults(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Faults of the script as a whole."""
    yield from _carriage_returns(tree)
    trailing = list(_trailing_blanks(tree))
    yield from trailing
    ends = {tree.source.position(problem.span.start).line for problem in trailing}
    for span in map(commands.texts.span, commands.broken):
        if span.source is tree.source and span.line - 1 not in ends:
            yield _lost(tree, span)
    if commands.found:
        yield from _unused(tree, commands)
        yield from _not_exported(tree, commands)
    if tree.cut or commands.follower.exhausted:
        yield Problem("script-not-followed", "the script is too involved to be followed to its end", tree.source.span(0))


def launch_faults(found: Found, commands: Commands) -> Iterator[Problem]:
    """Faults of one launch."""
    unused = [name for name, _ in groups(commands) if name not in _referenced(commands)]
    stops = "; with set -u the script stops here" if commands.nounset else ""
    for name, span in found.settled.groups:
        near = nearest(_stem(name), [_stem(other) for other in unused])
        meant = next((other for other in unused if near and _stem(other) == near), "")
        hint = f"; did you mean {meant}, which is never used" if meant else ""
        when = "defined only further down" if commands.state.late(name, span) else "never defined"
        yield Problem("undefined-group", f"${name} is {when}, so it expands to nothing{hint}{stops}", span)
    for name, flag, span in found.settled.unset:
        if not _GIVEN.fullmatch(name):
            when = "set only further down" if commands.state.late(name, span) else "not set in this script"
            message = f"${name} is {when}; unless the environment sets it, {flag} gets no value{stops}"
            yield Problem("unset-variable", message, span)
    yield from _first_words(found.statement, commands)
    yield from _on_one_node(found, commands)
    for word in (*found.taken.launch.launcher_words, *found.taken.launch.words):
        yield from _placeholder(word)
    yield from _split_values(found.taken.launch.words)


def _stem(name: str) -> str:
    return re.sub(r"_?(ARGS?|OPTS?|PARAMS?|FLAGS?|OPTIONS?)$", "", name.upper()) or name


def _carriage_returns(tree: Tree) -> Iterator[Problem]:
    text = tree.source.text
    if (at := text.find("\r\n")) >= 0:
        count = text.count("\r\n")
        message = f"{count} line{'s' * (count > 1)} end in CRLF; bash takes the carriage return for a part of the last word"
        yield Problem(
            "carriage-return", message, Span(tree.source, at, at + 1), (), ("write LF line ends", tree.source.span(0, len(text)), text.replace("\r\n", "\n"))
        )


def _trailing_blanks(tree: Tree) -> Iterator[Problem]:
    for match in islice(_TRAILING.finditer(tree.source.text), 100):
        node = tree.root.descendant_for_byte_range(match.start(), match.start() + 1)
        if node is not None and any(a.type in _INERT for a in ancestors(node)):
            continue
        below = tree.source.text[match.end() :].lstrip("\r\n").lstrip(" \t")
        if below.startswith(("-", "$", '"', "'")):
            span = Span(tree.source, match.start(1), match.end(1))
            message = "the blanks after this backslash end the command, and what follows is not part of it"
            keys = (*_FLAG.findall(tree.source.line(span.line))[-1:], *_FLAG.findall(_continued(below)))
            yield Problem("blank-after-backslash", message, span._replace(start=match.start()), (), ("delete the blanks", span, ""), keys)


def _continued(text: str) -> str:
    """A text up to the first line that does not end in a backslash."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(line)
        if not line.rstrip().endswith("\\"):
            break
    return "\n".join(lines)


def _lost(tree: Tree, span: Span) -> Problem:
    """An option that begins a command; the fix continues the line above, where that is part of a command."""
    flag = span.text.split(None, 1)[0]
    above = tree.source.line(span.line - 1) if span.line > 1 else ""
    end = tree.source.starts[span.line - 2] + len(above) if above else 0
    fix = None
    if above.strip() and not re.search(r"[|&;#>\\]", above):
        fix = ("continue the line above", Span(tree.source, end, end), " \\")
    message = f"{flag} begins a command of its own here, because nothing continues the line above"
    return Problem("lost-options", message, span._replace(end=span.start + len(flag)), (), fix, tuple(_FLAG.findall(span.text)))


def groups(commands: Commands) -> Iterator[tuple[str, Variable]]:
    """Variables that hold options."""
    for name, variable in commands.state.variables.items():
        if variable.holds_options and not variable.exported:
            yield name, variable


def _first_words(statement: Span, commands: Commands) -> Iterator[Problem]:
    """Arrays of options of which a launch takes the first word only, for their name stands there without [@]."""
    for match in _BARE.finditer(statement.text):
        name = match[1] or match[2]
        variable = commands.state.variables.get(name)
        if variable is None or not variable.array or len(variable.items) < 2 or not variable.holds_options or variable.place.start > statement.start:
            continue
        flags = [f for value in variable.items[1:] for piece in value for f in re.findall(r"--[\w.-]+", piece.text or "")]
        if flags:
            span = statement._replace(start=statement.start + match.start(), end=statement.start + match.end())
            message = f"${name} is only the first word of an array: {_unreached(flags)}"
            yield Problem("array-first-word", message, span, (variable.place,), ("take the whole array", span, f"${{{name}[@]}}"), tuple(flags))


def _unreached(flags: Sequence[str]) -> str:
    return f"{_shown(flags)} {'reach' if len(flags) > 1 else 'reaches'} no launch"


def _shown(flags: Sequence[str]) -> str:
    return ", ".join(flags[:3]) + (", …" if len(flags) > 3 else "")


def _referenced(commands: Commands) -> set[str]:
    sources = [commands.files.source, *commands.files.opened.values()]
    return {name for source in sources for name in _REFERENCE.findall(source.text)}


def _unused(tree: Tree, commands: Commands) -> Iterator[Problem]:
    if commands.state.foreign or "${!" in tree.source.text:
        return
    used = _referenced(commands)
    for name, variable in groups(commands):
        if name in used or variable.place.source is not tree.source:
            continue
        flags = [f for value in variable.items for piece in value for f in re.findall(r"--[\w.-]+", piece.text or "")]
        yield Problem("unused-group", f"{name} is never used: {_unreached(flags)}", variable.place)


def _not_exported(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Variables that only a child process would read, assigned without export. The rule knows which names matter."""
    used = _referenced(commands)
    for name, variable in commands.state.variables.items():
        unseen = name.isupper() and not variable.exported and not variable.sometimes and name not in used
        if unseen and variable.items and not variable.array and variable.place.source is tree.source:
            place = variable.place
            alone = re.fullmatch(r"[ \t]*\w+=(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)[ \t]*(?:#.*)?", tree.source.line(place.line))
            fix = ("export it", place._replace(end=place.start), "export ") if alone else None
            yield Problem("not-exported", f"{name} is assigned but not exported, so the launched processes do not see it", place, (), fix, (name,))


def _on_one_node(found: Found, commands: Commands) -> Iterator[Problem]:
    """A launcher for several nodes that a batch job starts on the first alone. Whatever hints at another way to start it counts."""
    launch, nodes = found.taken.launch, commands.asked.nodes
    wanted = launch.nodes
    if nodes is None or nodes.span is None or wanted is None or found.taken.fronts or "torch" not in launch.launcher:
        return
    if not isinstance(nodes.value, int) or not isinstance(wanted.value, int) or min(nodes.value, wanted.value) < 2 or wanted.assumed:
        return
    texts = [source.text for source in (commands.files.source, *commands.files.opened.values())]
    given = [word.because for word in launch.launcher_words if word.text is None]
    if commands.state.foreign or commands.prefix or given or any(_SPREADS.search(_SAID.sub("", text)) for text in texts):
        return
    message = f"sbatch runs this script on one of its {nodes.value} nodes, and nothing starts torchrun on the others: it waits for them"
    yield Problem("launcher-on-one-node", message, launch.launcher_words[0].span, (nodes.span,))


def _placeholder(word: Word) -> Iterator[Problem]:
    flag, value = word.parts
    shown = (value or flag).text
    because = (value or flag).because
    if because.startswith("the placeholder"):
        yield Problem("placeholder-value", f"{because} was never filled in", (value or flag).span, (value or flag).uses)
    elif shown is not None and _PLACEHOLDER.fullmatch(shown):
        yield Problem("placeholder-value", f"the placeholder {shown!r} was never filled in", (value or flag).span, (value or flag).uses)


def _split_values(words: tuple[Word, ...]) -> Iterator[Problem]:
    """A path with a blank in it, assigned in quotes and expanded without."""
    for one, other in pairwise(words):
        if one.text is None or other.text is None or not one.uses or one.uses != other.uses or one.span.source is not other.span.source:
            continue
        source = one.span.source
        quote = source.text[one.span.start - 1 : one.span.start]
        between = source.text[one.span.end : other.span.start]
        whole = quote in ("'", '"') and bool(between) and not between.strip(" ") and source.text[other.span.end : other.span.end + 1] == quote
        if whole and one.text.startswith("/") and re.fullmatch(r"[A-Za-z_][\w./-]*", other.text):
            name = source.text[: one.span.start - 1].rpartition("\n")[2].strip().rpartition(" ")[2].rstrip("=")
            message = f"{one.text} {other.text} falls into two words where ${name} stands without quotes"
            yield Problem("value-splits", message, one.span._replace(end=other.span.end), one.uses)
