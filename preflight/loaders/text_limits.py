"""Limits on the text that is read: cheap ones before parsing, and a trial in a separate process for long scripts.

Neither tree-sitter nor libyaml can be interrupted, and both can exhaust the stack or the memory; in a child process
that harms nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import lru_cache

from preflight.source.source_file import InputError, Source

MAX_TEXT = 1_000_000
"""Characters of a config or script: the largest published one has 17,000."""
MAX_SCRIPT = 200_000
"""Characters of a launch script without comments and blanks."""
MAX_PADDED = 4 * 1024 * 1024
"""Characters of a script including them: Slurm's limit."""
SMALL = 32_000
"""Characters of a script that are always cheap to parse: it is parsed directly."""
SECONDS = 0.4
MEMORY = 250 * 1024 * 1024
WAIT = 20.0
"""Wall-clock seconds: on a busy machine a process gets its processor time late."""
SOON = 0.001


PAUSE = 50
"""Milliseconds after which a silent child process is checked."""


def refuse_large(source: Source, most: int = MAX_TEXT) -> None:
    """Raises InputError for a text that is longer than any config or script."""
    if len(source.text) > most:
        raise InputError(
            f"has {len(source.text):,} characters; a config or script may have at most {most:,}", source.name
        )


class _Process:
    """Whether this process is limited and killed by its parent: then it parses directly, and may use all of its
    time."""

    confined = False


def parse_in_this_process() -> None:
    """Try no script in a child: this process has a memory limit, and a parent that kills it in time."""
    _Process.confined = True


def refuse_involved(data: bytes, parse: Callable[[bytes], object], name: str) -> None:
    """Raises InputError if parsing a long script exceeds the time or memory of a check; short scripts cannot."""
    if len(data) > SMALL and not _Process.confined and not _harmless(data, parse):
        raise InputError("is too complex; parsing it takes too much time or memory", name)


@lru_cache(maxsize=8)
def _harmless(data: bytes, parse: Callable[[bytes], object]) -> bool:
    """Whether a child with limits on time and memory finishes parsing. The result is unknown if fork is not
    available."""
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
    """os.fork with the alarm deferred: an exception raised in the hooks around a fork is lost, and a lock that is held
    there stays locked. Blocking the signal is not enough, because another thread may receive it."""
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
    """In the child: parse, free the result, and exit silently."""
    code = 1
    try:
        import resource
        import signal

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the caller's faulthandler
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
    """Bytes of address space of this process, None if the system does not report it."""
    import resource

    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None


def _ended_well(child: int, pipe: int) -> bool:
    """Wait for a child; it never outlives this call. pipe: closed at the other end when the child exits; a child of
    another thread may hold that end as well, so the child is also polled."""
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
