"""preflight lsp: the language server for editors."""

from __future__ import annotations

import os

from preflight.cli.exit_codes import OK


def lsp() -> int:
    """Serve an editor over stdin and stdout with the Language Server Protocol.

    Offers diagnostics while you type, fixes and suppressions as code actions, hover,
    completion, links, and a line with layout and memory above each run.
    """
    from preflight.lsp.server import make

    # the server closes its streams, so it gets separate descriptors
    make().start_io(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    return OK
