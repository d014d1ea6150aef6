"""preflight gate-install: writes Slurm's plugins for the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder that contains slurm.conf.")]
Socket = Annotated[str, typer.Option("--socket", metavar="PATH", help="The socket of `preflight gate-serve`.")]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="S", min=0.01, help="Seconds that slurmctld waits; keep far below MessageTimeout."
    ),
]
Closed = Annotated[bool, typer.Option("--closed", help="Refuse submissions that get no verdict.", show_default=False)]
Client = Annotated[bool, typer.Option("--client", help="Also install cli_filter.lua.", show_default=False)]


def gate_install(
    folder: Folder = "/etc/slurm",
    socket: Socket = "/run/preflight/gate.sock",
    timeout: Timeout = 2.0,
    closed: Closed = False,
    client: Client = False,
) -> int:
    """Install job_submit.lua, the Slurm gate, next to slurm.conf, and print the lines to add to slurm.conf."""
    from preflight.gate.slurm_plugins import install

    names = ("job_submit", "cli_filter") if client else ("job_submit",)
    for name in names:
        path = install(Path(folder), name, socket=Path(socket), seconds=timeout, open_on_failure=not closed)
        typer.echo(f"wrote {path}")
    typer.echo(
        f"slurm.conf needs: JobSubmitPlugins=lua{' and CliFilterPlugins=lua' if client else ''}; "
        "then scontrol reconfigure"
    )
    typer.echo(f"keep this running: preflight gate-serve --socket {socket}")
    return 0
