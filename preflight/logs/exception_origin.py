"""The place and the kind of an exception: the answer for a traceback without a known cause."""

from __future__ import annotations

import re

from preflight.logs.cause_types import Cause
from preflight.logs.failures import Failure, Frame
from preflight.source.finding import Message
from preflight.source.record import NamedTuple

PLUMBING = re.compile(
    r"torch/nn/modules/(?:module|container)\.py|torch/utils/_contextlib\.py|torch/autograd/(?:function|graph|__init__)"
    r"|torch/_tensor\.py|torch/_ops\.py|(?:^|/)(?:contextlib|functools|runpy|threading|traceback)\.py"
    r"|concurrent/futures|multiprocessing/(?:process|popen|spawn)|torch/(?:cuda|npu)/nvtx|/nvtx\.py|hydra/|/click/|/typer/"
    r"|ray/_private|client_mode_hook\.py|ray/util/tracing|single_controller/|torch/distributed/(?:elastic|launcher|run)|/fire/core\.py"
)
"""Files with frames that only pass on a call."""
PACKAGE = re.compile(r"(?:site|dist)-packages/([A-Za-z]\w*)")
EGG = re.compile(r"/([A-Za-z]\w*)-\d[\w.+-]{0,80}\.egg/([A-Za-z]\w*)/")
PYTHON = re.compile(r"/lib(?:64)?/python\d[\d.]*/(?!(?:site|dist)-packages)|^<frozen|^python\d[\d.]*/\w+\.py")
CHECKOUT = re.compile(
    r"(?:^|/)(megatron|mindspeed(?:_llm|_mm|_rl)?|mindformers|mindspore|swift|verl|slime|nemo\w*|mbridge|flagscale"
    r"|transformers|vllm\w*|sglang|trl|peft|deepspeed|accelerate|torchtitan|llamafactory|openrlhf|areal|colossalai)/",
    re.I,
)
"""Folders of frameworks that are run from a checkout."""
CALLED = re.compile(r"(?:^|[^\w.])((?:\w+\.)*\w+)\(")
WORDS = frozenset("if while for assert return raise with lambda print isinstance len list dict tuple str int".split())


OF_CODE = frozenset(
    "AttributeError IndexError KeyError NameError RecursionError TypeError UnboundLocalError ZeroDivisionError".split()
)
"""Exceptions of Python itself, for code that its values do not fit."""


class Origin(NamedTuple):
    """The place of an exception. owner: a package, "Python" or "" for the program itself."""

    owner: str
    function: str
    frame: Frame


def owner_of(frame: Frame) -> str:
    """The package that a frame belongs to; "Python" for the standard library, "" for the program itself."""
    if found := EGG.search(frame.file):
        return found[2]
    if found := PACKAGE.search(frame.file):
        return found[1]
    if PYTHON.search(frame.file):
        return "Python"
    if frame.file.startswith("mindspore/"):
        return "mindspore"
    found = CHECKOUT.search(frame.file)
    return found[1].lower() if found is not None else ""


def called(frame: Frame) -> str:
    """The function that the source line of a frame calls first, with what is before its dot; "" if it calls none."""
    return next((name for name in CALLED.findall(frame.source) if name not in WORDS), "")


def origin_of(failure: Failure) -> Origin | None:
    """The innermost frame that does more than pass a call on; None without frames."""
    frames = [frame for frame in failure.frames if frame.file]
    if not frames:
        return None
    own = next((frame for frame in reversed(frames) if not PLUMBING.search(frame.file)), frames[-1])
    return Origin(owner_of(own), own.function or called(own).rpartition(".")[2], own)


def placed(failure: Failure) -> tuple[Cause, str] | None:
    """The class and a sentence for an exception of which only the place and kind are known; None without a place."""
    origin = origin_of(failure)
    if origin is None or not failure.kind or failure.kind == "argparse":
        return None
    where = _where(origin)
    says = Message("{kind} in {where}: the log shows no other cause", kind=failure.kind, where=where)
    return class_of_kind(failure.kind), says


def class_of_kind(kind: str) -> Cause:
    """The class of an exception of which only the kind is known: a check may refuse anything, from the configuration
    to a file, but a program that reads a name or a key that does not exist fails itself."""
    return Cause.PROGRAM if kind in OF_CODE else Cause.UNKNOWN


def cut_off(failure: Failure) -> str | None:
    """A sentence for a traceback without its exception; None without a place."""
    origin = origin_of(failure)
    if origin is None:
        return None
    return Message("the log ends before the exception; the process died in {where}", where=_where(origin))


def _where(origin: Origin) -> str:
    function = origin.function or origin.frame.file.rpartition("/")[2]
    if not origin.owner:
        return Message("`{function}` of the program itself", function=function)
    return Message("`{function}` of {owner}", function=function, owner=origin.owner)


PROGRAMS = (
    "look at the values that the caller, the configuration or the data give this function; its source shows what it "
    "accepts"
)
"""The advice for an exception of which only the place is known."""
