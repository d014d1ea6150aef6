"""Exit codes: nothing to report, findings, wrong usage or unreadable input, preflight itself failed.
And what `--fail-on` takes."""

OK, FOUND, USAGE, FAILED = 0, 1, 2, 3
LEVELS = ("error", "warning", "note", "never")
INTERRUPTED, TERMINATED, UNREAD = 130, 143, 141
"""Exit codes after Ctrl-C, after SIGTERM, and when the report has no reader: 128 plus the signal's number, as in
shells."""
