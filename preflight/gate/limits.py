"""Limits of a process that checks strangers' text: memory, processor time, no core dumps. They hold in C code, too."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MIB = 1024 * 1024
SPARE_SECONDS = 2


def limit_memory(most: int) -> None:
    """Let this process take so many bytes more than it has; without effect where the system has no such limits."""
    try:
        import resource
    except ImportError:
        return
    for kind, used in ((resource.RLIMIT_AS, _pages(0)), (resource.RLIMIT_DATA, _pages(5))):
        if used:
            _lower(kind, used + most)
    _lower(resource.RLIMIT_CORE, 0)


def limit_processor(seconds: float) -> None:
    """Let this process take so many seconds more, and some: the last resort when nobody is left who would kill it."""
    try:
        import resource
    except ImportError:
        return
    spent = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(spent.ru_utime + spent.ru_stime + seconds) + 1 + SPARE_SECONDS)


def _lower(kind: int, value: int) -> None:
    """Set the soft limit; the hard one stays, so that it can be set anew."""
    import resource

    hard = resource.getrlimit(kind)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _pages(field: int) -> int:
    """Bytes in a field of /proc/self/statm: 0 all addresses, 5 data; 0 where there is no such file."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
