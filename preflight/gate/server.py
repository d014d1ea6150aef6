"""The resident checker: HTTP over a Unix socket, so that `curl --unix-socket` can ask it. Bounded in time, size and workers.

POST /gate?kind=sbatch|manifest&nodes=N&devices_per_node=M&user=U&name=S&override=REASON&component=1&change=1 with the script as the body.
The answer's first line is the exit code, the lines after it are for people; with `Accept: application/json` it is the verdict of the contract.
"""

from __future__ import annotations

import contextlib
import json
import os
import socketserver
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from preflight.gate import audit
from preflight.gate.submission import Allocation, Override, Submission
from preflight.gate.text import told
from preflight.gate.verdict import FAILED, USAGE, Policies, judge
from preflight.gate.workers import Work, Workers
from preflight.plugins import load
from preflight.source import InputError

MAX_SCRIPT = 4 * 1024 * 1024


def ready(policies: Policies, log: Path | None) -> Work:
    """What a worker does, with all rules loaded."""
    plugins = load()
    plugins.rules(None)
    import_module("preflight.search.suggest")

    def work(question: bytes) -> tuple[bytes, bool]:
        head, _, body = question.partition(b"\n")
        asked = json.loads(head)
        try:
            submission = _submission(asked, body)
        except InputError as error:
            return json.dumps({"exit": USAGE, "text": [str(error)], "verdict": None}).encode(), True
        verdict = judge(submission, plugins, policies)
        if log is not None:
            with contextlib.suppress(OSError):
                audit.append(log, verdict, str(asked.get("user", "")))
        return json.dumps({"exit": verdict.code, "text": told(verdict), "verdict": verdict.as_dict()}).encode(), verdict.code != FAILED

    return work


def _submission(asked: dict[str, str], body: bytes) -> Submission:
    counts: dict[str, Any] = {}
    for name in ("nodes", "devices_per_node", "world"):
        if asked.get(name):
            if not asked[name].isdecimal() or len(asked[name]) > 9:
                raise InputError(f"{name} is not a count: {asked[name][:40]}")
            counts[name] = int(asked[name])
    override = Override(asked.get("user", ""), asked["override"]) if asked.get("override") else None
    name, kind = asked.get("name") or "job script", asked.get("kind") or "sbatch"
    return Submission(body, name, kind, Allocation.read(counts), override, component=bool(asked.get("component")), change=bool(asked.get("change")))


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Threads wait, workers check."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, socket: Path, number: int, policies: Policies, log: Path | None = None) -> None:
        self.workers = Workers(number, ready(policies, log))
        self.seconds = policies.seconds
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)
        before = os.umask(0o117)
        try:
            super().__init__(str(socket), Handler)
        finally:
            os.umask(before)

    def server_close(self) -> None:
        super().server_close()
        self.workers.stop()


class Handler(BaseHTTPRequestHandler):
    """One connection, one question."""

    server: Server
    timeout = 5

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_SCRIPT:
            return self._answer(USAGE, [f"the script is larger than {MAX_SCRIPT} bytes"], None)
        body = self.rfile.read(length)
        asked = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        answer = self.server.workers.ask(json.dumps(asked).encode() + b"\n" + body, self.server.seconds)
        if answer is None:
            return self._answer(FAILED, [f"no verdict within {self.server.seconds:g} s"], None)
        data = json.loads(answer)
        return self._answer(data["exit"], data["text"], data["verdict"])

    def do_GET(self) -> None:
        self._answer(0, ["preflight is here"], None)

    def _answer(self, code: int, lines: list[str], verdict: object) -> None:
        as_json = "json" in self.headers.get("Accept", "")
        text = json.dumps(verdict if verdict is not None else {"schema": 1, "verdict": "unknown", "exit": code, "problem": lines}) if as_json else ""
        body = (text or "\n".join([str(code), *lines])).encode("utf-8") + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if as_json else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: Any) -> None:
        """The audit file is the log."""
