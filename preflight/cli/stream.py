"""Writing to stdout for any reader: a closed pipe is silent, a limited encoding does not crash."""

from __future__ import annotations

import contextlib
import os
import sys

from preflight.source.text import InputError


class Gone(BaseException):
    """The report has lost its reader: there is no reason to continue."""


def refuse_gone() -> None:
    """Raises Gone if stdout is a pipe whose other end is closed."""
    import select

    if not hasattr(select, "poll"):
        return
    with contextlib.suppress(OSError, ValueError):  # no file behind it
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        if any(state & select.POLLERR for _, state in watched.poll(0)):
            raise Gone


def say(text: str) -> None:
    """Write a text and flush it; if the reader is gone, the rest is dropped and the exit code is kept.

    Raises InputError if it cannot be written, as on a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        say(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        why = error.strerror or str(error)
        raise InputError(f"stdout cannot be written: {why}") from None


def silence() -> None:
    """Discard everything printed from now on, including buffered output."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
