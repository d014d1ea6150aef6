"""preflight mcp: the server for agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.exit_codes import OK
from preflight.source.source_file import InputError

Root = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The folder to read; nothing outside it is opened.")]


def mcp(folder: Root = Path(".")) -> int:
    """Serve an agent over stdin and stdout with the Model Context Protocol.

    Offers the tools check, fix (as a patch), explain, memory, layouts, migrate and why. Files are never written.
    """
    from preflight.mcp.server import make

    if not folder.is_dir():
        raise InputError("is not a folder", str(folder))
    make(folder).run("stdio")
    return OK
