"""Limits for checks: per user, in total, per process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Generic, TypeVar

from preflight.source.record import NamedTuple

AGAIN = 0.5
"""Seconds until the exception is raised again: in a finalizer or a callback of the garbage collector it is lost."""


class OutOfTime(BaseException):
    """The deadline has passed. Not an Exception, so that no rule's handler swallows it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises OutOfTime inside the block after some seconds; without effect outside the main thread."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MIB = 1024 * 1024
SPARE_SECONDS = 2


def limit_memory(most: int) -> None:
    """Allow this process a number of additional bytes; without effect on systems without such limits."""
    try:
        import resource
    except ImportError:
        return
    for kind, used in ((resource.RLIMIT_AS, _pages(0)), (resource.RLIMIT_DATA, _pages(5))):
        if used:
            _lower(kind, used + most)
    _lower(resource.RLIMIT_CORE, 0)


def limit_processor(seconds: float) -> None:
    """Allow this process a number of additional seconds, plus a margin: the last resort if no process is left to kill
    it."""
    try:
        import resource
    except ImportError:
        return
    spent = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(spent.ru_utime + spent.ru_stime + seconds) + 1 + SPARE_SECONDS)


def _lower(kind: int, value: int) -> None:
    """Set the soft limit; the hard one stays, so that it can be set again."""
    import resource

    hard = resource.getrlimit(kind)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _pages(field: int) -> int:
    """Bytes in a field of /proc/self/statm: 0 all addresses, 5 data; 0 if there is no such file."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


FAIR = 0.1
"""Seconds for a check when little budget is left."""
FREE = 0.05
LEAST_COST = 0.05
"""The cost of a check without a verdict: a dead worker must be replaced."""
USER_RATE, RATE = 0.05, 0.1
"""Budget seconds regained per second, for a user's account and for the common one."""
USER_DEBT, DEBT = 0.5, 1.0
"""Maximum debt in seconds: an account recovers within ten seconds."""
REMEMBERED, REMEMBERED_SHORT, REMEMBERED_SLOW = 600.0, 30.0, 5.0
"""Seconds for which a submission without a verdict is remembered: after a full deadline, a shortened one, a slow
machine."""
STANDING = 3600.0
MOST_DIGESTS, MOST_USERS = 1024, 4096

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Leave(NamedTuple):
    """The processor seconds that a check may take; none: it is answered at once, with the reason. rich: includes a
    search for layouts. Processor time, so that a busy machine does not prevent verdicts. pause: for immediate answers,
    the callers that need not query again, and for how many seconds: "user 12" or "all 5".
    """

    processor: float
    why: str = ""
    rich: bool = False
    pause: str = ""


class Account:
    """An allowance of seconds, which refills with time up to its capacity."""

    __slots__ = ("_at", "_level", "capacity", "floor", "rate")

    def __init__(self, capacity: float, rate: float, floor: float, now: float) -> None:
        self.capacity, self.rate, self.floor = capacity, rate, floor
        self._level, self._at = capacity, now

    def level(self, now: float) -> float:
        """The remaining seconds."""
        self._level = min(self._level + (now - self._at) * self.rate, self.capacity)
        self._at = now
        return self._level

    def pay(self, seconds: float, now: float) -> None:
        """Subtract seconds, down to the lower limit."""
        self._level = max(self.level(now) - seconds, self.floor)


class Recent(Generic[Key, Value]):
    """The most recently set entries, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The entry, if it still exists."""
        return self._entries.get(key)

    def set(self, key: Key, value: Value) -> None:
        """Store an entry; the oldest one is removed if there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: Key) -> None:
        """Forget an entry."""
        self._entries.pop(key, None)


class Budget:
    """Decides how long each check may take. seconds: the deadline of a site; `tell` receives a line when the breaker
    opens or closes.
    """

    def __init__(
        self, seconds: float, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds, self._tell, self._clock = seconds, tell, clock
        self._lock = threading.Lock()
        self._all = Account(seconds, RATE, -min(2 * seconds, DEBT), clock())
        self._users: Recent[str, Account] = Recent(MOST_USERS)
        self._judged: Recent[str, float] = Recent(MOST_USERS)
        self._without: Recent[bytes, float] = Recent(MOST_DIGESTS)
        self._open = False
        self._turned_away = 0

    def leave(self, user: str, key: bytes) -> Leave:
        """The time that a check of this submission may take now."""
        with self._lock:
            now = self._clock()
            self._switch(now)
            if (until := self._without.get(key)) is not None:
                if now < until:
                    return Leave(
                        0, f"the same submission had no verdict before; it is checked again in {_wait(until - now)} s"
                    )
                self._without.drop(key)
            own, common = self._account(user, now).level(now), self._all.level(now)
            if own <= 0:
                wait = _wait((FREE - own) / USER_RATE)
                return Leave(
                    0,
                    f"earlier submissions of this user took too long; the next one is checked in {wait} s",
                    pause=f"user {wait}",
                )
            if not self._open:
                return Leave(min(self.seconds, max(FAIR, min(own, common))), rich=common > self.seconds / 2)
            if common > self._all.floor and now - (self._judged.get(user) or -STANDING) < STANDING:
                return Leave(min(self.seconds, FAIR))
            wait = _wait(-common / RATE)
            self._turned_away += 1
            return Leave(0, f"the checker is busy; submissions are checked again in {wait} s", pause=f"all {wait}")

    def judged(self, user: str, processor: float) -> None:
        """Account for a verdict."""
        with self._lock:
            self._judged.set(user, self._clock())
            self._pay(user, max(0.0, processor - FREE))

    def unreadable(self, user: str, processor: float) -> None:
        """Account for an unreadable script: that is detected quickly, but it was sent while slurmctld waited."""
        with self._lock:
            self._judged.drop(user)
            self._pay(user, max(processor, LEAST_COST))

    def without(self, user: str, key: bytes, leave: Leave, seconds: float, *, worked: bool) -> None:
        """Account for seconds of waiting without a verdict. worked: because of the check, not of a slow machine."""
        with self._lock:
            self._judged.drop(user)
            whole = worked and leave.processor >= self.seconds
            self._without.set(
                key, self._clock() + (REMEMBERED if whole else REMEMBERED_SHORT if worked else REMEMBERED_SLOW)
            )
            self._pay(user, max(seconds, LEAST_COST))

    def _pay(self, user: str, seconds: float) -> None:
        now = self._clock()
        self._account(user, now).pay(seconds, now)
        self._all.pay(seconds, now)
        self._switch(now)

    def look(self) -> None:
        """Close the breaker if it is due."""
        with self._lock:
            self._switch(self._clock())

    def _account(self, user: str, now: float) -> Account:
        account = self._users.get(user) or Account(2 * self.seconds, USER_RATE, -min(self.seconds, USER_DEBT), now)
        self._users.set(user, account)
        return account

    def _switch(self, now: float) -> None:
        """The breaker opens at FAIR below zero and closes at zero."""
        level = self._all.level(now)
        if not self._open and level <= -min(FAIR, self.seconds):
            self._open, self._turned_away = True, 0
            self._tell(
                "too many checks end without a verdict: for some seconds submissions are answered without a check"
            )
        elif self._open and level >= 0:
            self._open = False
            self._tell(
                f"submissions are checked again; {self._turned_away} were answered without a check in the meantime"
            )


def _wait(seconds: float) -> int:
    return max(1, round(seconds))
