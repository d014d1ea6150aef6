"""The handling of a failed command, and of a reader that is gone; writing to stdout."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable

from preflight.cli.exit_codes import FAILED, INTERRUPTED, UNREAD, USAGE
from preflight.plugins.manager import PluginError
from preflight.report.source_excerpts_and_escapes import plain
from preflight.source.budget import keep_watch
from preflight.source.extras import missing
from preflight.source.source_file import InputError
from preflight.source.translation import local

LEVELS = ("error", "warning", "note", "never")


class Gone(BaseException):
    """The report has lost its reader: there is no reason to continue."""


def refuse_gone() -> None:
    """Raises Gone if stdout is a pipe whose other end is closed."""
    import select

    if not hasattr(select, "poll"):
        return
    with contextlib.suppress(OSError, ValueError):  # stdout has no file descriptor
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        if any(state & select.POLLERR for _, state in watched.poll(0)):
            raise Gone


_ASCII_SIGNS = str.maketrans({"×": "x", "–": "-", "…": "..."})
"""Signs that are replaced by ASCII if the encoding of stdout cannot represent a text."""


def say(text: str) -> None:
    """Write a text and flush it; if the reader is gone, the rest is dropped and the exit code is kept.

    Raises InputError if it cannot be written, as on a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        say(text.translate(_ASCII_SIGNS).encode(encoding, "backslashreplace").decode(encoding))
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


_GONE = "the working directory no longer exists; change to another one"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def guarded(call: Callable[[], int]) -> int:
    """The exit code of a call."""
    keep_watch()
    try:
        return call()
    except InputError as error:
        return tell(_GONE if _is_gone() else placed(error), USAGE)
    except PluginError as error:
        return tell(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Gone:
        return UNREAD
    except ModuleNotFoundError as error:
        why = missing(error)
        return tell(why, USAGE) if why else _failed(error)
    except OSError as error:
        return _of_system(error)
    except Exception as error:
        return _failed(error)


def _of_system(error: OSError) -> int:
    """Failures of the system around a call: its folder was removed, or nothing can be printed."""
    if _is_gone():
        return tell(_GONE, USAGE)
    if error.filename is None and error.errno in _FULL:
        silence()
        why = error.strerror
        return tell(f"stdout cannot be written: {why}", USAGE)
    return _failed(error)


def _is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def tell(message: str, code: int) -> int:
    """Print a line to stderr, and return the code."""
    print(f"preflight: {plain(local(message))}", file=sys.stderr)
    return code


def placed(error: InputError) -> str:
    """The failure and its place, in the language of this call."""
    return f"{str(error)[: -len(error.message)]}{local(error.message)}" if error.message else str(error)


def _failed(error: Exception) -> int:
    import traceback

    if os.environ.get("PREFLIGHT_DEBUG"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(os.path.dirname(frame.filename))}/{os.path.basename(frame.filename)}:{frame.lineno}"
    return tell(
        f"preflight itself failed at {where}: {type(error).__name__}: {error} (PREFLIGHT_DEBUG=1 shows more)", FAILED
    )
