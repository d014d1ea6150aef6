"""What went wrong with one file, as the report of that file: the others keep theirs."""

from __future__ import annotations

import os
from collections.abc import Callable

from preflight.checking.engine import Crash, Report, Unreadable
from preflight.plugins.manager import PluginError
from preflight.source.budget import CHECK_SECONDS, Exceeded, watched
from preflight.source.extras import missing
from preflight.source.text import InputError

TOO_DEEP = "is nested too deeply to be read"


def unreadable(error: InputError) -> Report:
    """The report of a file that cannot be read."""
    return Report(errors=(Unreadable(error.path, error.line, error.column, error.message),))


def attempted(name: str, call: Callable[[], Report], seconds: float = CHECK_SECONDS) -> Report:
    """The report of a call about a file, or what it failed with. seconds: of the processor, after which it is ended.
    Raises InputError and PluginError."""
    try:
        with watched(name, seconds):
            return call()
    except Exceeded as error:
        return unreadable(error)
    except (InputError, PluginError):
        raise
    except RecursionError:
        return unreadable(InputError(TOO_DEEP, name))
    except Exception as error:
        return failed(name, error)


def failed(name: str, error: Exception) -> Report:
    """The report of a file on which preflight itself failed; no rule did. Raises it where an extra is missing."""
    import traceback

    if isinstance(error, ModuleNotFoundError) and missing(error):
        raise error

    frame = traceback.extract_tb(error.__traceback__)[-1]
    folder, file = os.path.split(frame.filename)
    what = f"{type(error).__name__} at {os.path.basename(folder)}/{file}:{frame.lineno}: {error}"
    return Report(crashes=(Crash("", name, what, "".join(traceback.format_exception(error))),))


def crash_line(crash: Crash) -> str:
    """A crash as a sentence."""
    who = f"rule {crash.rule} crashed" if crash.rule else "preflight itself failed"
    return f"{who} on {crash.path}: {crash.error}"
