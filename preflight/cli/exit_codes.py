"""The exit codes of the commands."""

from __future__ import annotations

OK, FOUND, USAGE, FAILED = 0, 1, 2, 3
UNREAD = 141
"""The report has no reader: 128 plus the number of SIGPIPE."""
INTERRUPTED, TERMINATED = 130, 143
"""After Ctrl-C and after SIGTERM: 128 plus the signal's number, as in shells."""
