"""The command line. A command parses its options, calls one function, renders, and gives an exit code."""

from __future__ import annotations

import gc
import os
import sys

from preflight.cli.exit_codes import INTERRUPTED, TERMINATED, USAGE

FEW_COLLECTIONS = (200_000, 20, 20)
"""A check allocates many objects and creates few cycles: Python's default thresholds cost a sixth of its time. One file
stays below this threshold; with 50,000 a single collection at the end cost a tenth of the time."""

LEAVES_AT_ONCE = ("check", "fix")
"""Commands that only print and write, without state to clean up."""


def main() -> None:
    """The `preflight` command; `--version` is answered before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from preflight import __version__

        try:
            print(f"preflight {__version__}", flush=True)
        except OSError as error:
            os._exit(_unwritten(error))
        return
    _reopen()
    gc.set_threshold(*FEW_COLLECTIONS)
    try:
        if sys.argv[1:2] != ["gate-serve"]:  # this ends its workers first
            _end_when_told()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # SIGINT while modules are being loaded
        code = INTERRUPTED
    except Terminated:
        code = TERMINATED
    if sys.argv[1:2] in ([name] for name in LEAVES_AT_ONCE) or code in (INTERRUPTED, TERMINATED):
        _leave(code)
    sys.exit(code)


class Terminated(BaseException):
    """The process was asked to terminate. Not an Exception, so that no handler treats it as a fault."""


def _end_when_told() -> None:
    """SIGTERM unwinds the process, which ends its children and removes half-written files; a second SIGTERM ends it at
    once."""
    import signal

    def terminate(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)


def _reopen() -> None:
    """Give a process started without stdin, stdout or stderr an empty one, which Python leaves as None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  it stays open as long as the process
            setattr(sys, name, stream)


def _leave(code: int) -> None:
    """End the process without freeing its objects individually, which would take a seventh of the time of a check."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # a pipe without a reader
            pass
        except OSError as error:
            code = _unwritten(error)
    os._exit(code)


def _unwritten(error: OSError) -> int:
    """Print that the output is lost, and give the exit code."""
    import contextlib

    with contextlib.suppress(OSError):
        print(f"preflight: stdout cannot be written: {error.strerror or error}", file=sys.stderr, flush=True)
    return USAGE


def run(argv: list[str]) -> int:
    """Run a command line and return the exit code; every failure is reported in one line."""
    from preflight.cli.exit_handling import guarded
    from preflight.source.source_file import remember_files
    from preflight.source.translation import asked, speaking

    remember_files()
    with speaking(asked(argv)):
        return guarded(lambda: _run(argv))


def _run(argv: list[str]) -> int:
    from preflight.cli import fast_parser
    from preflight.cli.fast_parser import apart
    from preflight.source import translation

    translation.refuse_unknown()
    words = apart(argv)
    call = fast_parser.read(words)
    if call is not None:
        return fast_parser.run(call)
    from preflight.cli.app import run

    return run(words)
