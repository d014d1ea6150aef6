"""Faults of launches in a script, and commands that look like one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from preflight.loaders.document import Problem, Word
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors, parse
from preflight.loaders.shell.command_effects import Commands
from preflight.loaders.shell.cut_commands_and_unused_variables import (
    MOST_BROKEN,
    first_three,
    groups,
    meant_variable,
    misspelt_variable,
    referenced,
)
from preflight.loaders.shell.launches import Found
from preflight.loaders.shell.unreached_launches import asks_outside, condition, names_in, set_here
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.resolved_words import Needed, Reason
from preflight.source.source_file import InputError, Source, Span
from preflight.source.spelling import nearest

_BARE = lazy_pattern(r"(?<![\\$])\$(?:([A-Za-z_]\w*)(?!\[)|\{([A-Za-z_]\w*)\})")
_PLACEHOLDER = lazy_pattern(r"<[^<>]+>|(?:your|path)[_-][\w./-]*|/?(?:path|PATH)[_/]to[_/].*|[xX]{3,}", re.IGNORECASE)
_GIVEN = lazy_pattern(
    r"(?:MASTER_|LOCAL_|WORLD_SIZE|NODE|RANK|SLURM|PBS_|LSB_|VC_|MA_|MLP_|ARNOLD_|KUBERNETES_|PET_|OMPI_|PMI|HF_|WANDB|"
    r"CUDA|NCCL|HCCL|ASCEND|SGE_|COBALT_|FLUX_|PJM|BT_)\w*|"
    r"NHOSTS|NSLOTS|PE_HOSTFILE|JOB_ID|"
    r"HOME|USER|PWD|HOSTNAME|PATH|TMPDIR|NNODES|RANDOM|SECONDS|U?E?UID|PPID|\w*PATH"
)
_LOCAL_COUNT = lazy_pattern(r"--nproc[_-]per[_-]node")
_RENDEZVOUS = lazy_pattern(r"--(?:nnodes|node[_-]rank|master[_-](?:addr|port)|rdzv[_-]\w+)")
"""Options of the launcher that describe the nodes: what sets their variables outside also sets the local number."""
_SPREADS = lazy_pattern(
    r"(?<![\w-])(?:srun|mpirun|mpiexec|orterun|prun|aprun|jsrun|yhrun|flux|ssh|pdsh|pssh|prsh|dsh|clush|parallel|ansible|"
    r"ray|xargs)(?![\w-])"
    r"|SLURM_(?:PROCID|NODEID|LOCALID)|\$\{?[A-Z_]*RANK\b"
)
"""Text that starts a command on other nodes, or distinguishes one of several nodes."""
_RANKED = lazy_pattern(
    r"RANK|WORLD_SIZE|SLURM_PROCID|LOCALID|container|singularity|apptainer|shifter|enroot|pyxis|prolog|mpi",
    re.IGNORECASE,
)
"""Text by which a process may learn its rank."""
LONGEST_NAME = 100
_MEETS = lazy_pattern(r".*--(?:rdzv|master)[_-]")
"""Options for the rendezvous address, which is the same on all nodes."""
_WHOLE = ("if_statement", "case_statement")
_BRANCHED = (*_WHOLE, "elif_clause")
_IF = ("if_statement", "elif_clause", "while_statement")
_EXPANSION = lazy_pattern(r"\$\{(\w+):?\+")
_SAID = lazy_pattern(r"^[ \t]*#.*$", re.MULTILINE)
_NEVER_DEFINED = "${name} is never defined, so it expands to nothing{stops}{hint}"
_NOT_REACHED = "${name} is assigned only in code that does not run, so it expands to nothing{stops}{hint}"
_DEFINED_LATER = "${name} is only defined later in the script, so it expands to nothing{stops}{hint}"
_NEVER_SET = "${name} is not set in this script; unless the environment sets it, {flag} gets no value{stops}"
_SET_LATER = "${name} is only set later in the script; unless the environment sets it, {flag} gets no value{stops}"


def launch_faults(found: Found, commands: Commands) -> Iterator[Problem]:
    """Faults of one launch."""
    used = referenced(commands)
    unused = {name: _stem(name) for name, _ in groups(commands) if name not in used}
    stops = "; with set -u the script stops here" if commands.nounset else ""
    trees: dict[int, Tree | None] = {}
    for name, span in () if _comes_from_outside(found, commands) else found.settled.groups[:MOST_BROKEN]:
        if _appends_to_itself(name, span):
            continue  # the first of several pieces
        if _is_switched_off(name, span, trees, commands):
            continue
        near = nearest(_stem(name), unused.values()) if len(unused) < MOST_BROKEN else None
        meant = next((other for other, stem in unused.items() if near and stem == near), "")
        hint = Message("; did you mean {meant}, which is never used?", meant=meant) if meant else ""
        unreached = _NOT_REACHED if _assignments(name, span) else _NEVER_DEFINED
        template = _DEFINED_LATER if commands.state.late(name, span) else unreached
        message = Message(template, name=name, hint=hint, stops=stops)
        yield Problem("undefined-option-variable", message, span, (), *_meant_group(name, meant, span, commands))
    handed = any(_RENDEZVOUS.fullmatch(flag) and _GIVEN.fullmatch(name) for name, flag, _ in found.settled.unset)
    for name, flag, span in found.settled.unset[:MOST_BROKEN]:
        late, given = commands.state.late(name, span), _GIVEN.fullmatch(name) is not None
        if re.search(rf"(?m)^[ \t]*(?:export[ \t]+)?{name}[ \t]+=", found.statement.source.text):
            continue  # the rule blanks-at-equals reports this
        if not late and (not given or name.endswith("_PATH")) and (meant := meant_variable(name, span, commands, used)):
            yield misspelt_variable(name, meant, flag, span)
        elif not given and not (handed and _LOCAL_COUNT.fullmatch(flag)) and not _is_guarded(name, span, trees):
            template = _SET_LATER if late else _NEVER_SET
            yield Problem("unset-variable", Message(template, name=name, flag=flag, stops=stops), span)
    yield from _first_words(found.statement, commands)
    yield from _on_one_node(found, commands)
    yield from _without_ranks(found, commands)
    for word in (*found.taken.launch.launcher_words, *found.taken.launch.words):
        yield from _placeholder(word)
    yield from _split_values(found.taken.launch.words)


def _comes_from_outside(found: Found, commands: Commands) -> bool:
    """Whether the environment must set all options, as for the entry point of a container: the command contains only
    undefined groups, and the script defines none."""
    typed = any((word.text or "").startswith("-") for word in found.taken.launch.words)
    names = {name for name, _ in found.settled.groups}
    return len(names) > 1 and not typed and not any(one.holds_options for one in commands.state.variables.values())


def _appends_to_itself(name: str, span: Span) -> bool:
    """Whether a use is the beginning of the variable's own new value: X="$X --more"."""
    before = span.source.text[max(0, span.start - LONGEST_NAME) : span.start]
    return re.search(rf"(?:^|[\s;]){re.escape(name)}=[\"']?[ \t]*$", before) is not None


def _is_switched_off(name: str, span: Span, trees: dict[int, Tree | None], commands: Commands) -> bool:
    """Whether a use is of options that a single test leaves out, as intended, or that a value from the caller of the
    script, its environment or the machine may add."""
    places = [one.start(1) for one in _assignments(name, span)]
    tree = _tree_of(span, trees) if places else None
    if tree is None:
        return False
    branches: list[Node] = []
    for place in places:
        node = tree.root.descendant_for_byte_range(place, place + len(name) - 1)
        around = [one for one in ancestors(node) if one.type in _BRANCHED] if node is not None else []
        asked = " ".join(condition(tree, one) for one in around)
        names = names_in(asked)
        if not around or not names:
            return False
        if asks_outside(asked) or any(set_here(one, tree, commands) is None for one in names):
            return True
        branches.append(next(one for one in around if one.type in _WHOLE))
    return len({one.id for one in branches}) == len(branches)


def _assignments(name: str, span: Span) -> list[re.Match[str]]:
    """The assignments of a variable on lines above its use."""
    found = re.compile(rf"(?m)^[ \t]{{0,99}}(?:export[ \t]+)?({name})=").finditer(span.source.text, 0, span.start)
    return list(islice(found, MOST_BROKEN))


def _tree_of(span: Span, trees: dict[int, Tree | None]) -> Tree | None:
    """The parsed source of a place. trees: the sources parsed so far, by identity."""
    if id(span.source) not in trees:
        trees[id(span.source)] = _parsed(span.source)
    return trees[id(span.source)]


def _is_guarded(name: str, span: Span, trees: dict[int, Tree | None]) -> bool:
    """Whether a use is in a branch of a test of the same variable, behind one in a list, or in ${NAME:+…}. trees: the
    sources parsed so far, by identity."""
    tree = _tree_of(span, trees)
    if tree is None:
        return False
    node = tree.root.descendant_for_byte_range(span.start, max(span.start, span.end - 1))
    mentioned = re.compile(rf"\$\{{?{name}\b|-v[ \t]+\"?{name}\b")
    return node is not None and any(_guards(tree, one, name, mentioned, span.start) for one in ancestors(node))


def _parsed(source: Source) -> Tree | None:
    try:
        return parse(source)
    except (InputError, RecursionError):
        return None


def _guards(tree: Tree, node: Node, name: str, mentioned: re.Pattern[str], at: int) -> bool:
    if node.type == "expansion":
        match = _EXPANSION.match(tree.text(node))
        return match is not None and match[1] == name and at > node.start_byte
    if node.type == "case_statement":
        subject = node.child_by_field_name("value")
        return subject is not None and subject.end_byte <= at and mentioned.search(tree.text(subject)) is not None
    if node.type == "list":
        first = node.named_children[0]
        return first.end_byte <= at and mentioned.search(tree.text(first)) is not None
    return node.type in _IF and any(
        test.end_byte <= at and mentioned.search(tree.text(test)) is not None for test in _asked(node)
    )


def _asked(node: Node) -> list[Node]:
    """The tests between if, elif or while and the body."""
    found = []
    for child in node.children:
        if child.type in ("then", "do_group"):
            break
        if child.is_named and child.type != "comment":
            found.append(child)
    return found


def _meant_group(
    name: str, meant: str, span: Span, commands: Commands
) -> tuple[tuple[str, Span, str] | None, tuple[str, ...]]:
    """The name of the group that was meant instead of the unset one, and its options."""
    at = re.search(r"\$\{?(\w+)", span.text)
    if not meant or at is None or at[1] != name:
        return None, ()
    variable = commands.state.variables[meant]
    flags = re.findall(r"--[\w.-]+", " ".join(piece.text or "" for value in variable.items for piece in value))
    place = span._replace(start=span.start + at.start(1), end=span.start + at.end(1))
    return (f"write ${meant}", place, meant), tuple(flags)


def _stem(name: str) -> str:
    return re.sub(r"_?(ARGS?|OPTS?|PARAMS?|FLAGS?|OPTIONS?)$", "", name.upper()) or name


def _first_words(statement: Span, commands: Commands) -> Iterator[Problem]:
    """Option arrays of which a launch takes only the first word, because [@] is missing."""
    for match in _BARE.finditer(statement.text):
        name = match[1] or match[2]
        variable = commands.state.variables.get(name)
        if (
            variable is None
            or not variable.array
            or len(variable.items) < 2
            or not variable.holds_options
            or variable.place.start > statement.start
        ):
            continue
        flags = [
            f for value in variable.items[1:] for piece in value for f in re.findall(r"--[\w.-]+", piece.text or "")
        ]
        if flags:
            span = statement._replace(start=statement.start + match.start(), end=statement.start + match.end())
            message = Message.plural(
                len(flags),
                "${name} expands only to the first word of the array, so {flags} is not passed",
                "${name} expands only to the first word of the array, so {flags} are not passed",
                name=name,
                flags=first_three(flags),
            )
            yield Problem(
                "array-first-word",
                message,
                span,
                (variable.place,),
                ("expand the whole array", span, f"${{{name}[@]}}"),
                (*(text for piece in variable.items[0] if (text := piece.text or "").startswith("--")), *flags),
            )


def _on_one_node(found: Found, commands: Commands) -> Iterator[Problem]:
    """A launcher for several nodes that a batch job starts only on the first node, unless anything hints at another way
    of starting it."""
    launch, nodes = found.taken.launch, commands.asked.nodes
    wanted = launch.nodes
    if nodes is None or nodes.span is None or wanted is None or found.taken.fronts or "torch" not in launch.launcher:
        return
    if (
        not isinstance(nodes.value, int)
        or not isinstance(wanted.value, int)
        or min(nodes.value, wanted.value) < 2
        or wanted.assumed
    ):
        return
    texts = [source.text for source in (commands.files.source, *commands.files.opened.values())]
    words = launch.launcher_words
    given = [
        word.because
        for before, word in pairwise((words[0], *words))
        if word.text is None and not _MEETS.match((before.text or "") + (word.parts[0].text or ""))
    ]
    if (
        commands.state.foreign
        or commands.prefix
        or given
        or any(_SPREADS.search(_SAID.sub("", text)) for text in texts)
    ):
        return
    message = Message(
        (
            "sbatch runs this script on only one of its {nodes} nodes, so torchrun waits for the other nodes, where "
            "nothing starts it"
        ),
        nodes=nodes.value,
    )
    yield Problem("launcher-on-one-node", message, launch.launcher_words[0].span, (nodes.span,))


def _without_ranks(found: Found, commands: Commands) -> Iterator[Problem]:
    """Tasks of srun that do not get their rank: nothing in the script mentions ranks, containers or MPI."""
    launch, tasks = found.taken.launch, commands.asked.tasks
    if tuple(found.taken.fronts) != ("srun",) or launch.launcher not in ("srun", "python") or commands.state.foreign:
        return
    count = launch.world[0].value if launch.world else None
    texts = [source.text for source in (commands.files.source, *commands.files.opened.values())]
    if not isinstance(count, int) or count < 2 or any(_RANKED.search(_SAID.sub("", text)) for text in texts):
        return
    message = Message(
        ("srun starts {tasks} processes, but none of them knows its rank, so each runs alone, as rank 0 of 1"),
        tasks=count,
    )
    yield Problem("ranks-not-set", message, launch.entry.span, (tasks.span,) if tasks and tasks.span else ())


def _placeholder(word: Word) -> Iterator[Problem]:
    flag, value = word.parts
    shown = (value or flag).text
    because = (value or flag).because
    if isinstance(because, Reason) and because.needs is Needed.FILLED:
        message = Message("placeholder {text} is not filled in", text=because.about)
        yield Problem("placeholder-value", message, (value or flag).span, (value or flag).uses)
    elif shown is not None and _PLACEHOLDER.fullmatch(shown):
        message = Message("placeholder {text!r} is not filled in", text=shown)
        yield Problem("placeholder-value", message, (value or flag).span, (value or flag).uses)


def _split_values(words: tuple[Word, ...]) -> Iterator[Problem]:
    """A path containing a blank, assigned in quotes and expanded without quotes."""
    for one, other in pairwise(words):
        if (
            one.text is None
            or other.text is None
            or not one.uses
            or one.uses != other.uses
            or one.span.source is not other.span.source
        ):
            continue
        source = one.span.source
        quote = source.text[one.span.start - 1 : one.span.start]
        between = source.text[one.span.end : other.span.start]
        whole = (
            quote in ("'", '"')
            and bool(between)
            and not between.strip(" ")
            and source.text[other.span.end : other.span.end + 1] == quote
        )
        if whole and one.text.startswith("/") and re.fullmatch(r"[A-Za-z_][\w./-]*", other.text):
            name = source.text[: one.span.start - 1].rpartition("\n")[2].strip().rpartition(" ")[2].rstrip("=")
            message = Message(
                "{one} {other} is split into two words, because ${name} is not quoted",
                one=one.text,
                other=other.text,
                name=name,
            )
            yield Problem("value-splits", message, one.span._replace(end=other.span.end), one.uses)
