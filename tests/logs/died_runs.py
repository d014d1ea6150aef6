"""Runs that a framework's own validator refused, as they die: the traceback that Python prints, on eight ranks "
"at once."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from upstream.checkout import NoRevision
from upstream.frameworks import FRAMEWORKS
from upstream.messages import HOLE, literal
from upstream.repositories import NoRepository, Repositories

RANKS = 8
FOLDERS = {"megatron": "/workspace/Megatron-LM", "mindformers": "/home/ma-user/work/mindformers"}


class Died(NamedTuple):
    """A death: the lines of one rank's traceback, without prefixes, its exception, and the place where it was
    raised."""

    lines: tuple[str, ...]
    exception: str
    framework: str
    release: str
    place: str


@cache
def _texts(framework: str, release: str) -> dict[str, str]:
    known = FRAMEWORKS[framework]
    return dict(Repositories().checkout(known, release).texts(known.extracted))


def died(framework: str, release: str, where: str) -> Died | None:
    """The death of a run refused at "file:line" of a release; None if no text of it is available."""
    file, _, line = where.split(" ")[0].rpartition(":")
    try:
        text = _texts(framework, release).get(file)
    except (NoRepository, NoRevision, FileNotFoundError, KeyError):
        return None
    found = _statement(text, int(line)) if text is not None else None
    if text is None or found is None:
        return None
    function, node = found
    raised = _raised(node)
    if raised is None:
        return None
    source = text.splitlines()[node.lineno - 1].strip()
    root = FOLDERS[framework]
    lines = (
        "Traceback (most recent call last):",
        f'  File "{root}/pretrain_gpt.py", line 274, in <module>',
        "    pretrain(",
        f'  File "{root}/{file}", line {node.lineno}, in {function}',
        f"    {source}",
        *raised.splitlines(),
    )
    return Died(lines, raised.splitlines()[0], framework, release, f"{file}:{node.lineno}")


def _statement(text: str, line: int) -> tuple[str, ast.stmt] | None:
    """The innermost assertion or raise on a line, and the name of its function."""
    found: list[tuple[str, ast.stmt]] = []

    def walk(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
            if isinstance(child, (ast.Assert, ast.Raise)) and child.lineno <= line <= (child.end_lineno or line):
                found.append((function, child))
            walk(child, inner)

    walk(ast.parse(text), "<module>")
    return found[-1] if found else None


def _raised(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assert):
        message = filled(literal(node.msg)) if node.msg is not None else ""
        return f"AssertionError: {message}" if message else "AssertionError"
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
        message = filled(" ".join(map(literal, node.exc.args)))
        return f"{name}: {message}" if message else name
    return None


def filled(template: str) -> str:
    """A message with numbers and names for its values."""
    values = iter("7 12 some_value 96 [1, 2] 0.5 True 3".split() * 20)
    parts = template.split(HOLE)
    return "".join(part + (next(values) if at < len(parts) - 1 else "") for at, part in enumerate(parts)).strip()


AFTERMATH = (
    "[rank{r}]:[E1018 01:36:06.294112 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation "
    "timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013 milliseconds "
    "before timing out.",
    "[rank{r}]: Traceback (most recent call last):",
    '[rank{r}]:   File "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py", line 46, in barrier',
    "[rank{r}]:     work = group.barrier(opts=opts)",
    "[rank{r}]: torch.distributed.DistBackendError: NCCL error in: "
    "../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, remote process exited or there was a network error",
)
ELASTIC = (
    "W1018 01:36:07.100000 140 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 2101 "
    "closing signal SIGTERM",
    "E1018 01:36:07.400000 140 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
    "local_rank: 3 (pid: 2104) of binary: /usr/bin/python",
    "Traceback (most recent call last):",
    '  File "/usr/local/bin/torchrun", line 33, in <module>',
    "    sys.exit(load_entry_point('torch', 'console_scripts', 'torchrun')())",
    '  File "/usr/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent',
    "    raise ChildFailedError(",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "============================================================",
    "pretrain_gpt.py FAILED",
    "Root Cause (first observed failure):",
    "  exitcode  : 1 (pid: 2104)",
)


def shuffled(death: Died, ranks: Sequence[int], seed: int) -> str:
    """The stderr of eight ranks, of which some died so and the others waited; lines of all in any order."""
    drawn = random.Random(seed)
    streams = [[f"[rank{r}]: {line}" for line in death.lines] for r in ranks]
    streams += [[line.format(r=r) for line in AFTERMATH] for r in range(RANKS) if r not in ranks]
    out = list(_merged(streams, drawn))
    return "\n".join([*("some line of an ordinary start" for _ in range(20)), *out, *ELASTIC]) + "\n"


def _merged(streams: list[list[str]], drawn: random.Random) -> Iterator[str]:
    streams = [stream[:] for stream in streams]
    while streams:
        stream = drawn.choice(streams)
        yield stream.pop(0)
        streams = [one for one in streams if one]
