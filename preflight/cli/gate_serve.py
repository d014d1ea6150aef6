"""preflight gate-serve"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.options import listed

Socket = Annotated[str, typer.Option("--socket", metavar="PATH", help="The Unix socket to listen on.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Processes that check.")]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds until there is no verdict.")]
Final = Annotated[list[str] | None, typer.Option("--final", metavar="RULE", help="Rules that no override lifts.", show_default=False)]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Never refuse.", show_default=False)]
RefuseUnknown = Annotated[bool, typer.Option("--refuse-unknown", help="Refuse where no run could be resolved.", show_default=False)]
Audit = Annotated[str | None, typer.Option("--audit", metavar="FILE", help="Append a line a verdict.", show_default=False)]

ADVICE = 0.25  # slurmctld waits


def gate_serve(
    socket: Socket = "/run/preflight/gate.sock",
    workers: Workers = 2,
    timeout: Timeout = 1.5,
    final: Final = None,
    report_only: ReportOnly = False,
    refuse_unknown: RefuseUnknown = False,
    audit: Audit = None,
) -> int:
    """Keep a checker ready on a Unix socket, for job_submit.lua.

    Answers within the timeout whatever happens: a worker that hangs is killed and replaced.
    """
    from preflight.gate.server import Server
    from preflight.gate.verdict import Policies

    policies = Policies(timeout, frozenset(listed(final)), report_only, refuse_unknown, advice=ADVICE)
    server = Server(Path(socket), max(workers, 1), policies, Path(audit) if audit else None)

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    print(f"preflight: listening on {socket}", file=sys.stderr, flush=True)
    try:
        server.serve_forever(poll_interval=0.5)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        Path(socket).unlink(missing_ok=True)
    return 0
