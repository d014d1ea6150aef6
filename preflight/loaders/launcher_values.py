"""Values of launchers' options that the launchers themselves refuse, before they start anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from preflight.loaders.document import Problem, Word
from preflight.loaders.options import Options
from preflight.source.message import Message

RULE = "launcher-value"
LONGEST_SWITCH = 100
"""Characters of a value that may be True or False."""
LAST_PORT = 65535
_NUMBER = r"[+-]?\d+(?:_\d+)*"
_MSRUN_NUMBERS = ("worker-num", "local-worker-num", "master-port", "node-rank", "cluster-time-out", "sim-rank-id")
_TORCHRUN_NUMBERS = ("node-rank", "master-port", "max-restarts")
_DEVICES = ("cpu", "gpu", "xpu", "auto", "hpu", "mtia")


def of_msrun(options: Options) -> Iterator[Problem]:
    """What msrun refuses: numbers that are none, a join that is no literal, more local workers than there are,
    ports that no host has."""
    for name in _MSRUN_NUMBERS:
        yield from _unless(_is_number, "msrun", options, name, "a whole number")
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
    """What torchrun refuses: numbers that are none, nodes that are no range, ports that no host has."""
    for name in _TORCHRUN_NUMBERS:
        yield from _unless(_is_number, "torchrun", options, name, "a whole number")
    yield from _unless(_is_range, "torchrun", options, "nnodes", "a number, or a range such as 1:4")
    yield from _unless(
        lambda text: _is_number(text) or text in _DEVICES,
        "torchrun",
        options,
        "nproc-per-node",
        "a whole number, auto, cpu or gpu",
    )
    yield from _port("torchrun", options, "master-port")


def _text(word: Word | None) -> str | None:
    """A value as it is surely typed; None where something in it is filled in later."""
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
    """As msrun reads it: a Python literal that equals True or False."""
    if len(text) > LONGEST_SWITCH:
        return False
    import ast  # which no other launcher needs

    try:
        return ast.literal_eval(text) in (True, False)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False


def _whole(word: Word | None) -> int | None:
    text = _text(word)
    return int(text) if text is not None and _is_number(text) and len(text) < 20 else None
