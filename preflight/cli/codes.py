"""Exit codes: nothing to say, findings, wrong usage or unreadable input, preflight itself failed."""

OK, FOUND, USAGE, FAILED = 0, 1, 2, 3
