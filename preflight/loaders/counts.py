"""Numbers of nodes, processes and devices, with who says them."""

from __future__ import annotations

import re

from preflight.loaders.document import Count, Problem, Unknown, Word
from preflight.loaders.options import Options
from preflight.source.message import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span

_NODES = "NNODES|NUM_?NODES|NODES_?NUM|N_?NODES|NODE_?COUNT|NODE_?NUM|MACHINES|WORLD_?SIZE|SERVERS"
_PLACEHOLDER = lazy_pattern(rf"\b\w*(?:{_NODES})\w*(?:=[\"']?(?:\$\{{\w+)?|:?-)$", re.IGNORECASE)

_OWN_TASK = lazy_pattern(r"SLURM_(LOCALID|PROCID)")
"""What tells a task from the others of its node."""
_DEFAULT = lazy_pattern(
    rf"\$\{{(?P<name>\w*(?:{_NODES})\w*):?-[\"']?$|\b\w*(?:{_NODES})\w*=[\"']?\$\{{(?P<other>\w+):?-[\"']?$",
    re.IGNORECASE,
)
"""A number of nodes or ranks that a script gives where the environment, or its caller, gives none."""


def count(word: Word, source: str) -> Count:
    """A word as a number; anything else than a positive number is unknown."""
    text = (word.text or "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text) or word.maybe:
        return Count(Unknown(word.because or text or "an empty value"), word.span, source, True)
    before = word.span.source.text[max(0, word.span.start - 60) : word.span.start].rpartition("\n")[2]
    default = _DEFAULT.search(before)
    assumed = f"${default['name'] or default['other']}" if default else ""
    return Count(int(text), word.span, source, bool(word.uses) and bool(_PLACEHOLDER.search(before)), assumed)


def product(source: str, *factors: Count, at: Span | None = None) -> Count:
    """Factors multiplied; unknown when one of them is. It points at the first factor that somebody typed."""
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
    """Total over part, where both are known and divide."""
    if isinstance(total.value, Unknown) or isinstance(part.value, Unknown) or total.value % part.value:
        return None
    return Count(total.value // part.value, total.span, source, total.placeholder, total.assumed)


class Allocation(NamedTuple):
    """What a scheduler is asked for; None: not said. tasks: processes; devices: cards in all; device: which cards."""

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
    """The type of card that is asked for: "h100" of "gpu:h100:8" and "h100:8"; None where there is none, or several."""
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
    """The devices that Slurm options ask for, as Slurm counts them."""

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
    """srun's own options over those of the job."""
    merged = outer._replace(**{name: said for name, said in own._asdict().items() if said is not None})
    if (
        own.tasks is None
        and merged.nodes is not None
        and merged.tasks_per_node is not None
        and (own.nodes or own.tasks_per_node)
    ):
        merged = merged._replace(tasks=product("srun", merged.nodes, merged.tasks_per_node))
    if own.devices is None and own.nodes is not None and merged.per_node is not None:
        merged = merged._replace(devices=product("srun", merged.nodes or own.nodes, merged.per_node))
    return merged


def crowded(tasks: Count | None, nodes: Count, at: Span) -> tuple[Problem, ...]:
    """More tasks than nodes, where each task runs a launcher that starts all the processes of its node;
    a script may let one task of a node do so."""
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
        "srun starts torchrun {tasks} times, which must run once on each of {nodes} node",
        "srun starts torchrun {tasks} times, which must run once on each of {nodes} nodes",
        tasks=tasks.value,
        nodes=nodes.value,
    )
    return (Problem("launcher-per-task", message, tasks.span or at, (at,)),)
