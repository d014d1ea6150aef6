"""The limits of checking one file and of reading a checkout in one call; all such limits are defined here.

Code that reads another file, builds a tree or compares words draws from the budget of the checked file. When the budget
is exhausted, optional help (a suggestion, a vocabulary size) is omitted, and anything that the verdict needs becomes an
error of that file in addition to its findings. Code that does not draw from a budget, such as an endless
search, is ended by a limit on processor time. A check draws the same in every order of files, on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from preflight.source.source_file import InputError
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

MIB = 1024 * 1024
READ = 24 * MIB
"""Bytes of all other files that one file names: configs, tokenizers, scripts."""
VALUES = 400_000
"""Values of its tree and of those of the configs that it names."""
STEPS = 180_000
"""Steps in following all its scripts: of the blocks of a page, for example."""
COMPARISONS = 60_000
"""Pairs of words compared for a suggestion."""
CHECK_SECONDS, FIX_SECONDS, SEARCH_SECONDS = 10.0, 60.0, 600.0
"""Processor seconds for one file: a check takes at most two, so this limit only ends endless ones."""
AGAIN = 0.5
"""Seconds until the exception is raised again: in a finalizer it is lost."""


class Exceeded(InputError):
    """Raised when a file exceeds a limit."""


class OutOfTime(BaseException):
    """Raised when the time limit is reached. Not an Exception, so that no rule's handler swallows it."""


class Allowance:
    """An amount that can be drawn."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    def draw(self, amount: int) -> bool:
        """Take an amount; False, without taking anything, if less is left."""
        if amount > self.left:
            return False
        self.left -= amount
        return True


class Budget:
    """The allowances of one file."""

    __slots__ = ("comparisons", "read", "steps", "values")

    def __init__(self) -> None:
        self.read, self.values = Allowance(READ), Allowance(VALUES)
        self.steps, self.comparisons = Allowance(STEPS), Allowance(COMPARISONS)


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def of_one_check() -> Iterator[None]:
    """Draws inside the block count for one check of one file; nested blocks count for the outer one."""
    if _current.get() is not None:
        yield
        return
    token = _current.set(Budget())
    try:
        yield
    finally:
        _current.reset(token)


def may_read(size: int) -> bool:
    """Draw bytes of another file; unlimited outside a check."""
    budget = _current.get()
    return budget is None or budget.read.draw(size)


def may_compare(words: int) -> bool:
    """Draw comparisons of words."""
    budget = _current.get()
    return budget is None or budget.comparisons.draw(words)


def may_step(steps: int) -> bool:
    """Draw steps in following a script."""
    budget = _current.get()
    return budget is None or budget.steps.draw(steps)


def draw_values(number: int, name: str) -> None:
    """Draw values of a tree. Raises Exceeded."""
    budget = _current.get()
    if budget is not None and not budget.values.draw(number):
        raise Exceeded(
            f"contains more than {VALUES:,} values, including values in configs that include this file", name
        )


def _is_free() -> bool:
    """Whether this is the main thread, and the signal is unused."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


class _Watch:
    """Whether this process is a command, which may use signals."""

    kept = False


def keep_watch() -> None:
    """Allow `watched` to use a signal: for commands, never for a library in another program."""
    _Watch.kept = True


@contextmanager
def watched(name: str, seconds: float = CHECK_SECONDS) -> Iterator[None]:
    """Raises Exceeded if the block takes more processor time. Has no effect in a library, outside the main thread,
    inside another watch, and on systems without such a timer."""
    if not _Watch.kept or not _is_free():
        yield
        return
    import signal

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    signal.signal(signal.SIGVTALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except OutOfTime:
        raise Exceeded(f"takes more than {seconds:.0f} s of processor time, so it is not checked", name) from None
    finally:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
