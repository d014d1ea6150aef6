"""One line a verdict, appended to a file: who, what, why, with which rules."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from preflight.gate.verdict import Verdict


def line(verdict: Verdict, user: str) -> str:
    """A JSON object on one line."""
    data = verdict.as_dict()
    kept = {name: data[name] for name in ("verdict", "exit", "tool", "subject", "allocation", "override", "elapsed_ms")}
    rules = sorted({finding["rule"] for finding in data["findings"] if finding["severity"] == "error"})
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"time": stamp, "user": user, **kept, "errors": rules, "unknown": len(data["unknown"])}, sort_keys=True)


def append(path: Path, verdict: Verdict, user: str) -> None:
    """Append in one write, so that lines of several processes do not mix. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    try:
        os.write(handle, (line(verdict, user) + "\n").encode("utf-8"))
    finally:
        os.close(handle)
