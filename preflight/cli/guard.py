"""Whatever goes wrong is told in a line, and has an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from preflight.cli.codes import FAILED, INTERRUPTED, UNREAD, USAGE
from preflight.cli.stream import Gone
from preflight.plugins.manager import PluginError
from preflight.report.escapes import plain
from preflight.source.budget import keep_watch
from preflight.source.extras import missing
from preflight.source.language import local
from preflight.source.text import InputError


def guarded(call: Callable[[], int]) -> int:
    """The exit code of a call."""
    keep_watch()
    try:
        return call()
    except InputError as error:
        return tell(placed(error), USAGE)
    except PluginError as error:
        return tell(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Gone:
        return UNREAD
    except ModuleNotFoundError as error:
        why = missing(error)
        return tell(why, USAGE) if why else _failed(error)
    except Exception as error:
        return _failed(error)


def tell(message: str, code: int) -> int:
    """Print a line to stderr, and give the code."""
    print(f"preflight: {plain(local(message))}", file=sys.stderr)
    return code


def placed(error: InputError) -> str:
    """What went wrong with its place, in the language of this call."""
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
