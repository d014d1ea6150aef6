"""Exit codes: nothing to say, findings, wrong usage or unreadable input, preflight itself failed. And what `--fail-on` takes."""

OK, FOUND, USAGE, FAILED = 0, 1, 2, 3
LEVELS = ("error", "warning", "note", "never")
