"""How much text is read: cheap limits before a grammar sees it,
and a trial in a separate process where a script is long.

Neither tree-sitter nor libyaml can be interrupted, and both can use up the stack or the memory; a child that does so
harms nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import lru_cache

from preflight.source.text import InputError, Source

MAX_TEXT = 1_000_000
"""Characters of a config or script: the largest published one has 17,000."""
MAX_SCRIPT = 200_000
"""Characters of a launch script without its comments and blanks."""
MAX_PADDED = 4 * 1024 * 1024
"""Characters of a script with them: what Slurm takes."""
SMALL = 32_000
"""Characters of a script that no construct makes expensive: it is parsed at once."""
SECONDS = 0.4
MEMORY = 250 * 1024 * 1024
WAIT = 20.0
"""Seconds by the clock: on a busy machine a process gets its time late."""
SOON = 0.001


PAUSE = 50
"""Milliseconds after which a child that has not reported its end is asked for."""


def refuse_large(source: Source, most: int = MAX_TEXT) -> None:
    """Raises InputError for a text that is longer than any config or script."""
    if len(source.text) > most:
        raise InputError(
            f"has {len(source.text):,} characters; more than {most:,} of a config or script are not read", source.name
        )


class _Process:
    """Whether this process is one that its parent limits and kills: then it parses itself,
    and all of it is its time."""

    confined = False


def parse_in_this_process() -> None:
    """Try no script in a child: this process has a limit on its memory, and a parent that kills it in time."""
    _Process.confined = True


def refuse_involved(data: bytes, parse: Callable[[bytes], object], name: str) -> None:
    """Raises InputError where parsing a long script takes more time or memory than a check may take;
    a short one takes less."""
    if len(data) > SMALL and not _Process.confined and not _harmless(data, parse):
        raise InputError("is too involved: parsing it takes too much time or memory", name)


@lru_cache(maxsize=8)
def _harmless(data: bytes, parse: Callable[[bytes], object]) -> bool:
    """Whether a child with limits on time and memory gets to the end of it. Unknown where there is no fork."""
    if not hasattr(os, "fork"):
        return False
    try:
        reader, writer = os.pipe()
    except OSError:
        return False
    try:
        child = fork()
        if child == 0:
            _try(data, parse)
    except OSError:
        os.close(reader)
        return False
    finally:
        os.close(writer)
    try:
        return _ended_well(child, reader)
    finally:
        os.close(reader)


def fork() -> int:
    """os.fork without an alarm on the way: raised in what runs before and after a fork it is lost, and a lock that is
    released there stays locked. It rings afterwards. To block the signal is not enough: another thread may take it."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        return os.fork()
    rung: list[int] = []
    timers = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGVTALRM: signal.ITIMER_VIRTUAL}
    before = {number: signal.signal(number, lambda number, frame: rung.append(number)) for number in timers}
    try:
        child = os.fork()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    for number, timer in timers.items():
        if number in rung and child:
            signal.setitimer(timer, SOON, signal.getitimer(timer)[1])
    return child


def _try(data: bytes, parse: Callable[[bytes], object]) -> None:
    """In the child: parse, free what was made, and end without a word."""
    code = 1
    try:
        import resource
        import signal

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # faulthandler of the caller
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if (size := address_space()) is not None:
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        tree = parse(data)
        del tree
        code = 0
    finally:
        os._exit(code)


def address_space() -> int | None:
    """Bytes of address space that this process has, None where the system does not report it."""
    import resource

    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None


def _ended_well(child: int, pipe: int) -> bool:
    """Wait for a child; it never outlives this call. pipe: one of which it has the other end, which its end closes; a
    child of another thread may have that end as well, so the child is asked for now and then."""
    from select import POLLIN, poll

    ends = poll()
    ends.register(pipe, POLLIN)
    end = time.monotonic() + WAIT
    try:
        while time.monotonic() < end:
            ends.poll(PAUSE)
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                child = 0
                return status == 0
        return False
    except ChildProcessError:  # another thread waits for all children of this process
        child = 0
        return False
    finally:
        if child:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, 9)
                os.waitpid(child, 0)
