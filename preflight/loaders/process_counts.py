"""Numbers of nodes, processes and devices, with their origin, and values that launchers reject."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from preflight.loaders.document import Count, Problem, Unknown, Word
from preflight.loaders.launcher_options import Options
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

_NODES = "NNODES|NUM_?NODES|NODES_?NUM|N_?NODES|NODE_?COUNT|NODE_?NUM|MACHINES|WORLD_?SIZE|SERVERS"
_PLACEHOLDER = lazy_pattern(rf"\b\w*(?:{_NODES})\w*(?:=[\"']?(?:\$\{{\w+)?|:?-)$", re.IGNORECASE)

_OWN_TASK = lazy_pattern(r"SLURM_(LOCALID|PROCID)")
"""Distinguishes a task from the others on its node."""
_DEFAULT = lazy_pattern(
    rf"\$\{{(?P<name>\w*(?:{_NODES})\w*):?-[\"']?$|\b\w*(?:{_NODES})\w*=[\"']?\$\{{(?P<other>\w+):?-[\"']?$",
    re.IGNORECASE,
)
"""A number of nodes or ranks that a script sets unless the environment, or its caller, does."""


def count(word: Word, source: str) -> Count:
    """A word as a number; anything except a positive number is unknown."""
    text = (word.text or "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text) or word.maybe:
        return Count(Unknown(word.because or text or "an empty value"), word.span, source, True)
    placeholder = bool(word.uses) and bool(_PLACEHOLDER.search(_before(word.span)))
    return Count(int(text), word.span, source, placeholder, with_default(word.span))


def _before(span: Span) -> str:
    """The beginning of the line before a place."""
    return span.source.text[max(0, span.start - 60) : span.start].rpartition("\n")[2]


def with_default(span: Span) -> str:
    """The variable whose default is at a place, as in ${NNODES:-1}; "" if there is none."""
    default = _DEFAULT.search(_before(span))
    return f"${default['name'] or default['other']}" if default else ""


def product(source: str, *factors: Count, at: Span | None = None) -> Count:
    """The product of factors; unknown if one of them is. Its place is that of the first explicit factor."""
    span = next((f.span for f in factors if f.span is not None), at)
    total = 1
    for factor in factors:
        if isinstance(factor.value, Unknown):
            return Count(factor.value, factor.span or span, source, True)
        total *= factor.value
    return Count(
        total, span, source, any(f.placeholder for f in factors), next((f.assumed for f in factors if f.assumed), "")
    )


def quotient(source: str, total: Count, part: Count) -> Count | None:
    """Total divided by part, if both are known and divisible."""
    if isinstance(total.value, Unknown) or isinstance(part.value, Unknown) or total.value % part.value:
        return None
    return Count(total.value // part.value, total.span, source, total.placeholder, total.assumed)


class Allocation(NamedTuple):
    """The request to a scheduler; None: not stated. tasks: processes; devices: total number of cards; device: their
    type."""

    devices: Count | None = None
    tasks: Count | None = None
    nodes: Count | None = None
    per_node: Count | None = None
    tasks_per_node: Count | None = None
    device: Word | None = None


_CARDS = lazy_pattern(
    r"(?:gres[:/])?(?:gpu|npu|cuda|ascend)\w*(?:[:=](?P<type>[^:,=\d(][^:,=(]*))?(?:[:=](?P<count>\d+))?", re.IGNORECASE
)


def _cards(word: Word, source: str, bare: bool) -> Count | None:
    """ "gpu:8", "gpu:h100:8", "npu:8", and for --gpus options "8" or "h100:8"."""
    if word.text is None:
        return Count(Unknown(word.because), word.span, source)
    if bare:
        number = word.text.rpartition(":")[2]
        return Count(int(number) if number.isdecimal() and len(number) < 10 else Unknown(word.text), word.span, source)
    total, found = 0, False
    for token in word.text.split(","):
        if match := _CARDS.fullmatch(token.partition("(")[0].strip()):
            total, found = total + int(match["count"] or 1), True
    return Count(total, word.span, source) if found else None


def _device(options: Options) -> Word | None:
    """The requested card type: "h100" in "gpu:h100:8" and "h100:8"; None if there is none, or several."""
    found = []
    for name in ("gres", "gpus-per-node", "gpus", "gpus-per-task", "gpus-per-socket"):
        word = options.word(name)
        for token in (word.text or "").split(",") if word is not None else ():
            match = (
                _CARDS.fullmatch(token.partition("(")[0].strip())
                if name == "gres"
                else re.fullmatch(r"(?P<type>[A-Za-z][^:]*)(?::\d+)?", token.strip())
            )
            if match is not None and match["type"] and word is not None:
                found.append(word._replace(text=match["type"], editable=False, pieces=()))
    return found[0] if len({word.text for word in found}) == 1 else None


def allocation(options: Options, source: str) -> Allocation:
    """The devices that Slurm options request, counted like Slurm does."""

    def said(name: str) -> Count | None:
        word = options.word(name)
        return count(word, source) if word is not None else None

    nodes, tasks, tasks_per_node = said("nodes"), said("ntasks"), said("ntasks-per-node")
    if tasks is None and nodes is not None and tasks_per_node is not None:
        tasks = product(source, nodes, tasks_per_node)
    per_node = None
    for name, bare in (("gpus-per-node", True), ("gres", False)):
        if per_node is None and (word := options.word(name)) is not None:
            per_node = _cards(word, source, bare)
    if (sockets := options.word("gpus-per-socket")) is not None and (each := said("sockets-per-node")) is not None:
        cards = _cards(sockets, source, True)
        per_node = product(source, cards, each) if cards is not None else per_node
    total = options.word("gpus")
    each_task = options.word("gpus-per-task")
    devices = _cards(total, source, True) if total is not None else None
    if (
        devices is None
        and each_task is not None
        and tasks is not None
        and (cards := _cards(each_task, source, True)) is not None
    ):
        devices = product(source, tasks, cards)
    elif devices is None and per_node is not None and nodes is not None:
        devices = product(source, nodes, per_node)
    return Allocation(devices, tasks, nodes, per_node, tasks_per_node, _device(options))


def over(own: Allocation, outer: Allocation) -> Allocation:
    """The options of srun or sbatch, overriding those of the job."""
    merged = outer._replace(**{name: said for name, said in own._asdict().items() if said is not None})
    if (
        own.tasks is None
        and merged.nodes is not None
        and merged.tasks_per_node is not None
        and (said := own.nodes or own.tasks_per_node)
    ):
        merged = merged._replace(tasks=product(said.source, merged.nodes, merged.tasks_per_node))
    if (
        own.devices is None
        and merged.nodes is not None
        and merged.per_node is not None
        and (said := own.nodes or own.per_node)
    ):
        merged = merged._replace(devices=product(said.source, merged.nodes, merged.per_node))
    return merged


def crowded(tasks: Count | None, nodes: Count, at: Span) -> tuple[Problem, ...]:
    """More tasks than nodes, although each task runs a launcher that starts all processes of its node; a script may
    restrict this to one task per node."""
    if (
        tasks is None
        or isinstance(tasks.value, Unknown)
        or isinstance(nodes.value, Unknown)
        or tasks.value <= nodes.value
    ):
        return ()
    if nodes.placeholder or nodes.assumed or tasks.assumed or _OWN_TASK.search(at.source.text):
        return ()
    message = Message.plural(
        nodes.value,
        "srun starts torchrun {tasks} times, but torchrun must run only once on {nodes} node",
        "srun starts torchrun {tasks} times, but torchrun must run only once on each of {nodes} nodes",
        tasks=tasks.value,
        nodes=nodes.value,
    )
    return (Problem("launcher-per-task", message, tasks.span or at, (at,)),)


RULE = "launcher-value"
LONGEST_SWITCH = 100
"""Characters of a value that may be True or False."""
LAST_PORT = 65535
_NUMBER = r"[+-]?\d+(?:_\d+)*"
_MSRUN_NUMBERS = ("worker-num", "local-worker-num", "master-port", "node-rank", "cluster-time-out", "sim-rank-id")
_TORCHRUN_NUMBERS = ("node-rank", "master-port", "max-restarts")
_DEVICES = ("cpu", "gpu", "xpu", "auto", "hpu", "mtia")


def of_msrun(options: Options) -> Iterator[Problem]:
    """Values that msrun rejects: non-numeric numbers, a join that is not a literal, more local workers than exist,
    invalid ports."""
    for name in _MSRUN_NUMBERS:
        yield from _unless(_is_number, "msrun", options, name, "an integer")
    yield from _unless(_is_switch, "msrun", options, "join", "True or False")
    yield from _unless(lambda text: text.strip() in ("0", "1", "2", "3"), "msrun", options, "sim-level", "0, 1, 2 or 3")
    yield from _port("msrun", options, "master-port")
    total, local = _whole(options.word("worker-num")), _whole(options.word("local-worker-num"))
    if total is not None and total <= 0:
        yield _problem("msrun", options, "worker-num", "at least 1")
    elif (
        "sim-rank-id" not in options.given
        and local is not None
        and local > (8 if total is None and "worker-num" not in options.given else total or local)
    ):
        yield _problem(
            "msrun",
            options,
            "local-worker-num",
            Message("at most the {total} workers of --worker_num", total=8 if total is None else total),
        )


def of_torchrun(options: Options) -> Iterator[Problem]:
    """Values that torchrun rejects: non-numeric numbers, nodes that are not a range, invalid ports."""
    for name in _TORCHRUN_NUMBERS:
        yield from _unless(_is_number, "torchrun", options, name, "an integer")
    yield from _unless(_is_range, "torchrun", options, "nnodes", "a number, or a range such as 1:4")
    yield from _unless(
        lambda text: _is_number(text) or text in _DEVICES,
        "torchrun",
        options,
        "nproc-per-node",
        "an integer, auto, cpu or gpu",
    )
    yield from _port("torchrun", options, "master-port")
    nodes, rank = _whole(options.word("nnodes")), _whole(options.word("node-rank"))
    static = (_text(options.word("rdzv-backend")) or "static") == "static" and "standalone" not in options.given
    if static and nodes is not None and rank is not None and rank >= nodes >= 1 and not _replaced(options, "nnodes"):
        yield _problem("torchrun", options, "node-rank", Message("below the {nodes} nodes of --nnodes", nodes=nodes))


def _replaced(options: Options, name: str) -> bool:
    """Whether the environment may replace the value."""
    word = options.word(name)
    return word is not None and bool(count(word, "").assumed)


def _text(word: Word | None) -> str | None:
    """The value if it is certain; None if part of it is filled in later."""
    if word is None or word.text is None or word.maybe or not word.text or set(word.text) & set("<>{}[]$%"):
        return None
    return word.text


def _unless(takes: Callable[[str], bool], launcher: str, options: Options, name: str, wanted: str) -> Iterator[Problem]:
    text = _text(options.word(name))
    if text is not None and not takes(text):
        yield _problem(launcher, options, name, wanted)


def _port(launcher: str, options: Options, name: str) -> Iterator[Problem]:
    number = _whole(options.word(name))
    if number is not None and not 0 <= number <= LAST_PORT:
        yield _problem(launcher, options, name, Message("at most {last}", last=LAST_PORT))


def _problem(launcher: str, options: Options, name: str, wanted: str) -> Problem:
    word = options.word(name)
    assert word is not None
    flag = name.replace("-", "_")
    message = Message(
        "--{flag} of {launcher} is {text!r}; it must be {wanted}",
        flag=flag,
        launcher=launcher,
        text=word.text,
        wanted=wanted,
    )
    return Problem(RULE, message, word.span)


def _is_number(text: str) -> bool:
    return re.fullmatch(rf"\s*{_NUMBER}\s*", text) is not None


def _is_range(text: str) -> bool:
    return all(map(_is_number, text.split(":"))) and text.count(":") <= 1


def _is_switch(text: str) -> bool:
    """As msrun reads it: a Python literal equal to True or False."""
    if len(text) > LONGEST_SWITCH:
        return False
    import ast  # no other launcher needs this module

    try:
        return ast.literal_eval(text) in (True, False)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False


def _whole(word: Word | None) -> int | None:
    text = _text(word)
    return int(text) if text is not None and _is_number(text) and len(text) < 20 else None
