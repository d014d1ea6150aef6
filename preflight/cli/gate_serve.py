"""preflight gate-serve: the server that answers Slurm and Kubernetes."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from preflight.checking.request_validation import verify_facts
from preflight.cli import completion
from preflight.report.source_excerpts_and_escapes import plain
from preflight.run.project_settings import Facts
from preflight.source.source_file import InputError

if TYPE_CHECKING:
    from preflight.gate.server import Server

Socket = Annotated[str, typer.Option("--socket", metavar="PATH", help="The Unix socket to listen on.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Number of worker processes.")]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.01,
        help="CPU seconds after which a check ends without a verdict; doubled on a busy machine.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="The accelerator; if given, memory is also checked.",
        autocompletion=completion.devices,
    ),
]
Final = Annotated[
    list[str] | None,
    typer.Option("--final", metavar="RULE", help="Rules that cannot be overridden.", show_default=False),
]
ReportOnly = Annotated[
    bool, typer.Option("--report-only", help="Only report, and never refuse a job.", show_default=False)
]
RefuseUnknown = Annotated[
    bool,
    typer.Option("--refuse-unknown", help="Refuse submissions whose run cannot be determined.", show_default=False),
]
Audit = Annotated[
    str | None,
    typer.Option("--audit", metavar="FILE", help="Append one JSON line per verdict to this file.", show_default=False),
]

ADVICE = 0.25  # slurmctld waits
POLL = 0.2
"""Seconds between two checks for due work, and the delay until a request to stop is noticed."""


def gate_serve(
    socket: Socket = "/run/preflight/gate.sock",
    workers: Workers = 2,
    timeout: Timeout = 0.3,
    device: Device = None,
    final: Final = None,
    report_only: ReportOnly = False,
    refuse_unknown: RefuseUnknown = False,
    audit: Audit = None,
) -> int:
    """Keep a checker ready on a Unix socket, for job_submit.lua.

    The server always answers within the timeout. It kills and replaces a worker that hangs, and while too many checks
    end without a verdict, it answers submissions at once. A GET request returns counts of submissions. On SIGTERM, the
    server answers the pending requests and then ends.
    """
    from preflight.cli.gate import final_rules
    from preflight.gate.server import Server
    from preflight.gate.verdict import Policies
    from preflight.plugins.manager import load

    loaded = load()
    verify_facts(Facts(device=device), loaded)
    policies = Policies(timeout, final_rules(final, loaded), report_only, refuse_unknown, advice=ADVICE, device=device)
    try:
        server = Server(Path(socket), workers, policies, Path(audit) if audit else None, _log)
    except OSError as error:
        raise InputError(f"cannot listen on this socket: {error.strerror or error}", socket) from None

    _end_when_told(server)
    _log(f"listening on {socket}")
    try:
        server.serve_forever(poll_interval=POLL)
    finally:
        server.server_close()
    return 0


def _end_when_told(server: Server) -> None:
    """SIGTERM and SIGINT end the server between two requests; a second one ends it at once."""
    signals = (signal.SIGTERM, signal.SIGINT)

    def stop(number: int, frame: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_DFL)
        threading.Thread(target=server.shutdown, daemon=True).start()

    for each in signals:
        signal.signal(each, stop)


def _log(line: str) -> None:
    """A line in the log of the service."""
    with contextlib.suppress(OSError):
        print(f"preflight: {plain(line)}", file=sys.stderr, flush=True)
