"""Exit codes: nothing to report, findings, wrong usage or unreadable input, preflight itself failed.
And what `--fail-on` takes."""

OK, FOUND, USAGE, FAILED = 0, 1, 2, 3
LEVELS = ("error", "warning", "note", "never")
INTERRUPTED, TERMINATED, UNREAD = 130, 143, 141
"""By Ctrl-C, by SIGTERM, and because the report has no reader: 128 and the signal's number, as shells count."""
