"""Mistakes that bash accepts: words that reach the launch unchanged, tests that never hold, unread pipes, checkpoints
removed before they are loaded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from preflight.loaders.document import Count, Problem, Word
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors
from preflight.loaders.shell.command_effects import Commands
from preflight.loaders.shell.cut_commands_and_unused_variables import meant_variable, referenced
from preflight.loaders.shell.launches import Found
from preflight.loaders.shell.misread_tests import misread_test
from preflight.loaders.shell.refused_arithmetic import refused_arithmetic
from preflight.loaders.shell.resumption import resumption
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span

_MOST = 20
_LONGEST_LINE = 2_000
_NODES = 20_000
"""Maximum number of examined nodes of a script."""
_DOTTED = lazy_pattern(r"(?<!\\)\$\{(?:oc\.|[A-Za-z_]\w*\.)[\w.]*(?![\w.])(?::([A-Za-z_]\w*)(?!\w))?[^{}\n]*\}")
"""An interpolation of OmegaConf, which bash treats as an expansion."""
_LITERAL = frozenset(["raw_string", "comment", "ansi_c_string"])
_DEAF = frozenset("hostname echo date pwd export uname whoami nproc basename dirname seq".split())
"""Commands that read no input."""
_UNEXPANDED = lazy_pattern(r"\$(?:\{[A-Za-z_]\w*\}|[A-Z][A-Z0-9_]+\b)")
_PLAIN_NAME = lazy_pattern(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_FROM_OUTSIDE = lazy_pattern(
    r"(?:MASTER_|LOCAL_|WORLD_SIZE|NODE|RANK|SLURM|VC_|MA_|PET_|OMPI_|PMI|HF_|WANDB|CUDA|NCCL|HCCL|ASCEND|BASH|CONDA)\w*"
    r"|HOME|USER|PWD|HOSTNAME|PATH|TMPDIR|RANDOM|SECONDS|U?E?UID|PPID|LINENO|IFS|OSTYPE|\w*PATH|SHELL|TERM|CI\w*"
)
_MOST_UNSET = 64
"""Unset variables of a script that are looked at: each is searched in the whole text."""
_NOUNSET = lazy_pattern(r"(?m)^[ \t]*set[ \t]+(?:-\w*u|(?:-\w+[ \t]+)*-\w*o[ \t]+nounset)")
_MAY_SET = lazy_pattern(r"(?m)^[^#\n]*(?<![\w./-])(?:source|\.|eval|module|ml|conda|mamba|micromamba|spack)[ \t]+\S")
"""Commands that may set any name."""
_EXPANSIONS = ("simple_expansion", "expansion")
_ASSIGNED = lazy_pattern(r"(?P<indent>[ \t]*)(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)(?P<add>\+?)=(?P<value>.*)")
_APART = ("function_definition", "test_command", "expansion", "heredoc_body", "arithmetic_expansion", "for_statement")


def slips(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Mistakes in a script as a whole."""
    text = tree.source.text
    if "${oc." in text or ("${" in text and _DOTTED.search(text)):
        yield from _bad_substitutions(tree)
    if "+=" in text or "}" in text or "$" in text:
        yield from islice(_begun_again(tree), _MOST)
    nodes = list(islice(_walk(tree.root), _NODES)) if "|" in text or "[" in text or commands.nounset else []
    yield from _idle_devices(tree, commands)
    if ".txt" in text and "iter" in text:
        yield from islice(resumption(tree, nodes, commands), _MOST)
    yield from islice((p for node in nodes if node.type == "pipeline" for p in _unread(tree, node)), _MOST)
    misread = (misread_test(tree, node) for node in nodes if node.type == "test_command")
    yield from islice((problem for problem in misread if problem is not None), _MOST)
    if not commands.state.foreign and not commands.calls:
        tests = [inner for node in nodes if node.type == "test_command" for inner in _walk(node)]
        yield from islice(_never_set(tree, tests, commands, set(), tested=True), _MOST)
        if commands.nounset and (strict := _NOUNSET.search(text)) and not _MAY_SET.search(text):
            below = [node for node in nodes if node.type in _EXPANSIONS and tree.span(node).start > strict.end()]
            told = {name for found in commands.found for name, *_ in found.settled.unset}
            yield from islice(_never_set(tree, filter(_runs, below), commands, told), _MOST)


def launch_slips(found: Found, commands: Commands) -> Iterator[Problem]:
    """Mistakes in the arguments of a launch."""
    words = found.taken.launch.words
    for flag, value in pairwise((*words, *words[-1:])):
        at, own = flag.parts
        if (at.text or "").startswith("--"):
            yield from _unexpanded(own or value, at.text or "")
    yield from _removed(found, commands)
    if "$((" in found.statement.source.text or "$[" in found.statement.source.text:
        yield from refused_arithmetic(found, commands)
    yield from islice(rank_faults(found, commands), _MOST)


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.named_children)


def _bad_substitutions(tree: Tree) -> Iterator[Problem]:
    for match in islice(_DOTTED.finditer(tree.source.text), _MOST):
        node = tree.root.descendant_for_byte_range(match.start(), match.start() + 1)
        if node is not None and any(a.type in _LITERAL for a in ancestors(node)):
            continue
        if tree.source.line(tree.source.position(match.start()).line).lstrip().startswith("#"):
            continue
        template = (
            "bash cannot expand {text}: it prints `bad substitution`, and the word that contains it stays empty{hint}"
        )
        hint = Message("; write the variable as ${{{name}}}", name=match[1]) if match[1] else ""
        span = Span(tree.source, match.start(), match.end())
        yield Problem("bad-substitution", Message(template, text=match[0], hint=hint), span)


def _begun_again(tree: Tree) -> Iterator[Problem]:
    """A list that is assigned again directly after an item was added to it: the item is lost."""
    source, before, start = tree.source, None, 0
    for line in source.text.splitlines(keepends=True):
        at, start = start, start + len(line)
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _ASSIGNED.match(line)
        if match is None or len(text) > _LONGEST_LINE:
            before = None
            continue
        name, value = match["name"], match["value"].lstrip("\"'")
        own = f"${{{name}}}" in value or f"${name} " in value or value.rstrip("\"'").endswith(f"${name}")
        adds = bool(match["add"]) or (own and value.startswith((f"${{{name}}}", f"${name}")))
        lost = before == (match["indent"], match["name"]) and not own and not adds
        if lost and value[:1].strip("(#") and "$(" not in value and "`" not in value:
            added = Span(source, at + match.start("name"), at + match.end("name"))
            node = tree.root.descendant_for_byte_range(added.start, added.start + 1)
            if node is None or not any(one.type in ("heredoc_body", "string", "raw_string") for one in ancestors(node)):
                template = "{name} is assigned again, so the item that the line above adds is lost"
                yield Problem("list-begun-again", Message(template, name=name), added)
        before = (match["indent"], match["name"]) if adds else None


def _unread(tree: Tree, node: Node) -> Iterator[Problem]:
    """The commands of a pipeline that receive input and do not read it."""
    for before, child in pairwise(node.named_children):
        if child.type != "command" or before.type == "comment":
            continue
        first = tree.text(child).split(None, 1)
        if first and first[0] in _DEAF and "$(" not in tree.text(child) and "`" not in tree.text(child):
            source = tree.text(before).split(None, 1)[:1]
            if source in (["yes"], [":"], ["true"], ["sleep"]):
                continue
            message = Message(
                "{command} does not read its input, so the output of the command before it is lost", command=first[0]
            )
            yield Problem("unread-pipe", message, tree.span(child))


def _never_set(
    tree: Tree, nodes: Iterable[Node], commands: Commands, told: set[str], *, tested: bool = False
) -> Iterator[Problem]:
    """Names that are never set, in tests or after `set -u`: misspellings of a name that is set, and those at which `set
    -u` ends the script."""
    used = referenced(commands)
    for node in nodes:
        if node.type not in _EXPANSIONS:
            continue
        match = _PLAIN_NAME.fullmatch(tree.text(node))
        name = (match[1] or match[2]) if match else ""
        known = name in commands.state.ever or name in commands.given or name in commands.environment
        if not name or name in told or known or name.isdecimal() or _FROM_OUTSIDE.fullmatch(name):
            continue
        if len(told) >= _MOST_UNSET:
            return
        told.add(name)
        guarded = re.search(
            rf"\$\{{{name}:?[-+=?]|-v {name}\b|\b(?:read|for|local|export|declare)\b[^\n]{{0,400}}\b{name}\b",
            tree.source.text,
        )
        span = tree.span(node)
        if guarded or _is_assigned(name, tree.source.text):
            continue
        if tested and (meant := meant_variable(name, span, commands, used)) and _is_set_apart(meant, tree, node):
            yield _misspelt(tree, span, name, meant, commands)
        elif commands.nounset:
            template = (
                "${name} is not set in this script; because of set -u, the script stops here unless the environment "
                "sets it"
            )
            yield Problem("unset-variable", Message(template, name=name), span)


def _runs(node: Node) -> bool:
    """Whether a name is expanded on the way through the script: not in a function that may never be called."""
    return node.parent is not None and not any(one.type in _APART for one in ancestors(node.parent))


def _is_assigned(name: str, text: str) -> bool:
    """Whether a script assigns a name anywhere, even in a branch that is not taken."""
    assigned = rf"(?<![\w$-]){name}(?:\[[^]\n]*\])?\+?=(?!=)"
    filled = rf"\b(?:printf -v|mapfile|readarray|getopts)\b[^\n]{{0,400}}\b{name}\b"
    return re.search(f"{assigned}|{filled}", text) is not None


def _is_set_apart(name: str, tree: Tree, node: Node) -> bool:
    """Whether a script sets a name apart from the branches of a test: what only these set, the test does not mean."""
    whole = next((one for one in ancestors(node) if one.type == "if_statement"), None)
    if whole is None:
        return True
    span, text = tree.span(whole), tree.source.text
    return not _is_assigned(name, span.text) or _is_assigned(name, text[: span.start] + text[span.end :])


def _misspelt(tree: Tree, test: Span, name: str, meant: str, commands: Commands) -> Problem:
    """One of two names is a misspelling: the one that is set, if a part of its name occurs nowhere else in the
    script."""
    variable = commands.state.variables.get(meant)
    set_at = variable.place if variable is not None and variable.place.source is tree.source else None
    parts, others = meant.split("_"), name.split("_")
    odd = [(one, other) for one, other in zip(parts, others, strict=False) if one != other]
    if set_at is None or len(parts) != len(others) or len(odd) != 1:
        template = (
            "this test reads ${name}, which is not set, instead of ${meant}, which is set; did you mean ${meant}?"
        )
        return Problem("misspelt-in-test", Message(template, name=name, meant=meant), test)
    elsewhere = re.sub(rf"\b(?:{re.escape(name)}|{re.escape(meant)})\b", "", tree.source.text)
    one, other = (re.search(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", elsewhere) for part in odd[0])
    if one is None and other is not None:
        template = "{meant} is never read, because this test reads ${name}, which is not set; did you mean {meant}?"
        return Problem("misspelt-in-test", Message(template, name=name, meant=meant), set_at, (test,))
    template = "this test reads ${name}, which is not set, instead of ${meant}, which is set; did you mean ${meant}?"
    return Problem("misspelt-in-test", Message(template, name=name, meant=meant), test)


def _unexpanded(word: Word, flag: str) -> Iterator[Problem]:
    """A value that contains the name of a variable as text, because single quotes prevented its expansion."""
    match = _UNEXPANDED.search(word.text or "")
    if match is None or (word.text or "").startswith("-"):
        return
    source, start = word.span.source.text, word.span.start
    quoted = source[start - 1 : start] == "'" or source[start : start + 1] == "'" or f"'{word.text}'" in source
    if quoted:
        template = "{flag} gets the literal text {text}, because bash does not expand it in single quotes"
        message = Message(template, flag=flag, text=match[0])
        yield Problem("unexpanded-variable", message, word.span, word.uses, _in_double_quotes(word))


def _in_double_quotes(word: Word) -> tuple[str, Span, str] | None:
    """The same text in double quotes, if nothing else in it has a special meaning there."""
    span, text = word.span, word.span.source.text
    if text[span.start : span.start + 1] != "'":
        span = span._replace(start=span.start - 1, end=span.end + 1)
    if span.text != f"'{word.text}'" or re.search(r"[\"`\\!]|\$\(", word.text or ""):
        return None
    return "use double quotes", span, f'"{word.text}"'


def _removed(found: Found, commands: Commands) -> Iterator[Problem]:
    """A folder that the script removes before a launch loads from it."""
    words = found.taken.launch.words
    loads = [v or other for one, other in pairwise((*words, *words[-1:])) for f, v in [one.parts] if f.text == "--load"]
    for load in loads:
        path = posixpath.normpath(load.text) if load.text else ""
        for span, removed in commands.removed if path else ():
            before = span.source is found.statement.source and span.start < found.statement.start
            if before and (path == removed or path.startswith(f"{removed}/")):
                message = Message("{path} is removed before --load reads it, so the run starts from scratch", path=path)
                yield Problem("removed-before-load", message, span, (load.span,))
            elif before and (folder := _started_in(path, removed, found)):
                template = (
                    "{removed}, which contains {path} if the script starts in {folder}, is removed before "
                    "--load reads it, so the run starts from scratch"
                )
                message = Message(template, removed=removed, path=path, folder=folder)
                yield Problem("removed-before-load", message, span, (load.span,))


def _started_in(path: str, removed: str, found: Found) -> str:
    """The checkout in which a relative folder is part of an absolute path; "" if nothing shows that the script starts
    there: its program must be in the working directory, and another path of the script must have the same name."""
    folder, mark, _ = f"{path}/".partition(f"/{removed}/")
    name = posixpath.basename(folder)
    relative = (
        not removed.startswith((".", "/"))
        and path.startswith("/")
        and "/" not in (found.taken.launch.entry.text or "/")
    )
    others = re.findall(rf"(/[\w./-]*/{re.escape(name)})(?![\w-])", found.statement.source.text) if name else []
    return folder if mark and relative and set(others) - {folder} else ""


_GIVEN = lazy_pattern(r"(?<![\w])(WORLD_SIZE|LOCAL_RANK|RANK)=[\\\"']{0,3}\$\{?(SLURM_\w{1,40})\}?(?=[\s\"';\\]|\Z)")
_OWN_TASKS = lazy_pattern(r"srun(?:[^\n|;\\]|\\(?:\r?\n)?){0,400}(?:[ \t]-n|--ntasks|[ \t]-N|--nodes)")
"""A step with its own number of tasks."""
_NODE_COUNTS = frozenset("SLURM_NNODES SLURM_JOB_NUM_NODES".split())
_LAUNCHERS = lazy_pattern(r"torchrun|torch\.distributed|accelerate|deepspeed|msrun")
_MOST_DEVICES = 16
"""The most devices of a node, if the job does not request a number."""
_WORLD = "{name} is the number of nodes, {value}, but {tasks} processes are started"
_LOCAL = "LOCAL_RANK is set to the rank in the whole job, so on the second node it is above the number of devices"
_IDLE = "one task per node starts one process, so only one of {devices} devices of each node is used"
_RANK = "RANK is set to {name}, which several processes share"


def _starts_itself(source: Source, commands: Commands) -> bool:
    """Whether srun starts every process of a script, with the tasks that the job requests."""
    text = source.text
    if "SLURM_" not in text or "srun" not in text or _LAUNCHERS.search(text) or _OWN_TASKS.search(text):
        return False
    return not commands.files.opened and not commands.state.foreign  # another script may start the processes


def _idle_devices(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """One process on each node, which has several devices."""
    asked = commands.asked
    devices, one = _number(asked.per_node), asked.tasks_per_node
    if _number(one) != 1 or devices is None or devices < 2 or one is None or one.span is None:
        return
    if "PROCID" in tree.source.text and _starts_itself(tree.source, commands):
        yield Problem("devices-without-process", Message(_IDLE, devices=devices), one.span)


def rank_faults(found: Found, commands: Commands) -> Iterator[Problem]:
    """Ranks and sizes of the job that are set to another number of Slurm, where srun starts every process itself."""
    source, launch, asked = found.statement.source, found.taken.launch, commands.asked
    entry = posixpath.basename(launch.entry.text or "")
    if (
        not entry.startswith("pretrain_")
        or tuple(found.taken.fronts) != ("srun",)
        or source is not commands.files.source
    ):
        return
    nodes, tasks = _number(asked.nodes), _number(launch.world[0]) if launch.world else None
    if nodes is None or tasks is None or tasks <= nodes or not _starts_itself(source, commands):
        return
    text = re.sub(r"(?m)^[ \t]*#.*$", lambda line: " " * len(line[0]), source.text)
    for match in _GIVEN.finditer(text):
        name, variable = match[1], match[2]
        value = launch.environment.get(name)
        single = len(re.findall(rf"(?<![\w$-]){name}\+?=", text)) == 1
        if value is None or value.maybe or not single or not _comes_from(value, variable):
            continue
        if name == "WORLD_SIZE" and variable in _NODE_COUNTS:
            message = Message(_WORLD, name=name, value=nodes, tasks=tasks)
        elif name == "LOCAL_RANK" and variable == "SLURM_PROCID" and nodes > 1:
            if tasks <= (_number(asked.per_node) or _MOST_DEVICES):
                continue
            message = Message(_LOCAL)
        elif name == "RANK" and (variable == "SLURM_NODEID" or (variable == "SLURM_LOCALID" and nodes > 1)):
            message = Message(_RANK, name=variable)
        else:
            continue
        yield Problem("rank-of-another-kind", message, Span(source, match.start(2), match.end(2)))


def _comes_from(value: Word, variable: str) -> bool:
    """Whether a value of the environment of a launch is that of a variable of Slurm."""
    spellings = (f"${variable}", f"${{{variable}}}")
    return value.because in spellings or (value.text is not None and any(use.text in spellings for use in value.uses))


def _number(count: Count | None) -> int | None:
    return count.value if count is not None and isinstance(count.value, int) and not count.assumed else None
