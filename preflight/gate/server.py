"""The resident checker: HTTP over a Unix socket, bounded in time, size and connections."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import select
import socket
import socketserver
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from preflight.gate.request_dispatch import Desk
from preflight.gate.submission import Question
from preflight.gate.verdict import Policies, Reply
from preflight.report.source_excerpts_and_escapes import plain
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import Any


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Within the block no other process can claim this socket, and the path is free. Raises InputError, OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _free(path)
        yield
    finally:
        os.close(folder)


def _free(path: Path) -> None:
    """Delete the socket left behind by a dead server."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InputError("already exists and is not a socket", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1)
        try:
            caller.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            pass
        except OSError as error:  # the server hangs, or the socket belongs to another process that may still be alive
            raise InputError(f"is a socket on which nothing responds: {error.strerror or error}", str(path)) from None
        else:
            raise InputError("another checker is listening on it", str(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def identity(path: Path) -> tuple[int, int] | None:
    """The identity of the file, None if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


MAX_SCRIPT = 4 * 1024 * 1024
MOST_CONNECTIONS = 32
THREADS = MOST_CONNECTIONS + 12
"""The number of connections that may wait for their request; requests beyond the number of checks are answered at
once."""
READING = 2.0
"""Seconds within which a request must arrive; Slurm's side sends it in a few milliseconds."""
LOOK, SPARE = 0.1, 0.3
ENDING, HURRY = 2.5, 1.0
"""Seconds for running checks after a request to end, and then for answers without a verdict."""
DRAINED = 64 * 1024 * 1024
"""Bytes of a refused body that are still read: otherwise a caller that is still writing would not see the answer."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Threads wait for requests, and workers check them. Raises InputError, OSError."""

    request_queue_size = 128

    def __init__(
        self, path: Path, number: int, policies: Policies, log: Path | None, tell: Callable[[str], None]
    ) -> None:
        self._reading: dict[socket.socket, float] = {}
        self._lock = threading.RLock()
        self._answered = threading.Condition(self._lock)
        self._unanswered = 0
        self._ours: tuple[int, int] | None = None
        self._path, self._tell = path, tell
        self._accepted: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        with claimed(path):
            self.desk = Desk(number, policies, log, tell)
            before = os.umask(0o117)
            try:
                super().__init__(str(path), Handler)
            except BaseException:
                self.desk.stop()
                raise
            finally:
                os.umask(before)
            self._ours = identity(path)
        for _ in range(THREADS):
            threading.Thread(target=self._answer_all, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Pass a connection to a thread. If there are too many, the connections that have waited longest for their
        request are closed."""
        request.setblocking(True)  # the accepting socket may be non-blocking
        with self._lock:
            for late in list(self._reading)[: max(0, len(self._reading) + 1 - MOST_CONNECTIONS)]:
                _close(late)
            self._reading[request] = time.monotonic()
            self._unanswered += 1
        self._accepted.put((request, client_address))

    def _answer_all(self) -> None:
        """The loop of a thread: on a busy machine an existing thread is faster than a new one."""
        while True:
            try:
                self.process_request_thread(*self._accepted.get())
            finally:
                with self._answered:
                    self._unanswered -= 1
                    self._answered.notify_all()

    def has_read(self, request: Any) -> None:
        """The request of a connection has arrived."""
        with self._lock:
            self._reading.pop(request, None)

    def service_actions(self) -> None:
        """Between requests: close connections that send too slowly."""
        self._close_late()
        self.desk.look()

    def _close_late(self) -> None:
        end = time.monotonic() - READING - SPARE  # a caller that is only slightly late gets that answer
        with self._lock:
            for late in [request for request, since in self._reading.items() if since < end]:
                _close(late)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that disconnects is not an error of the gate."""
        error = sys.exception() if sys.version_info >= (3, 11) else sys.exc_info()[1]
        if not isinstance(error, OSError):
            self._tell(f"a response failed: {type(error).__name__}: {error}")

    def server_close(self) -> None:
        """Answer the pending questions, and end. From now on callers find no socket."""
        if self._ours is None:  # listening failed
            return super().server_close()
        if identity(self._path) == self._ours:
            self._path.unlink(missing_ok=True)
        self.socket.setblocking(False)
        with contextlib.suppress(OSError):
            while True:  # callers that are already connected get an answer
                self.process_request(*self.get_request())
        super().server_close()
        if not self._all_answered(ENDING):
            self.desk.hurry()
            self._all_answered(HURRY)
        self.desk.stop()

    def _all_answered(self, seconds: float) -> bool:
        """Wait for a limited time until all requests are answered."""
        end = time.monotonic() + seconds
        with self._answered:
            while self._unanswered and time.monotonic() < end:
                self._answered.wait(LOOK)
                self._close_late()
            return not self._unanswered


def _close(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


def _gone(request: socket.socket) -> bool:
    """Whether the caller has closed the connection, and not only finished sending."""
    look = select.poll()
    look.register(request, 0)
    return bool(look.poll(0))


class Handler(BaseHTTPRequestHandler):
    """One connection with one request."""

    server: Server
    timeout = READING
    raw_requestline = b""
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Answer one request and close the connection: later data is not read."""
        try:
            self.handle_one_request()
        finally:
            self.server.has_read(self.request)

    def handle_expect_100(self) -> bool:
        """A caller that sends `Expect: 100-continue` gets an immediate answer, and `100 Continue` only if its body will
        be read."""
        return super().handle_expect_100() if self._problem() is None else True

    def do_POST(self) -> None:
        asked = self._asked()
        if (status := self._problem()) is not None:
            reply = self.server.desk.refuse(Question(asked, b""), status[1])
            self._send(status[0], reply)
            return self._drain()
        length, body = int(self.headers["Content-Length"]), b""
        with contextlib.suppress(OSError):  # too slow
            body = self.rfile.read(length)
        self.server.has_read(self.request)
        if _gone(self.request):
            return None  # the caller counts it among the unchecked submissions
        if len(body) < length:
            return self._send(
                400, self.server.desk.refuse(Question(asked, body), "the script arrived incomplete or too late")
            )
        self._send(200, self.server.desk.answer(Question(asked, body)))

    def do_GET(self) -> None:
        self.server.has_read(self.request)
        counts = "".join(f"{name}: {count}\n" for name, count in sorted(self.server.desk.counts.items()))
        self._write(200, "text/plain; charset=utf-8", f"0\npreflight is running\n{counts}")

    def _problem(self) -> tuple[int, str] | None:
        """Why a body is not read: the HTTP status and a sentence."""
        if self.headers.get("Transfer-Encoding"):
            return 411, "chunked bodies are not supported; send the content length"
        given = self.headers.get_all("Content-Length") or []
        if not given:
            return 411, "bodies without a content length are not supported"
        if len(set(given)) > 1 or not (given[0].isascii() and given[0].isdecimal()) or len(given[0]) > 18:
            return 400, f"the length of the body is not a number: {given[0][:40]}"
        if int(given[0]) > MAX_SCRIPT:
            return 413, f"the script is larger than {MAX_SCRIPT} bytes"
        return None

    def _drain(self) -> None:
        """Read the rest of a caller's data, bounded in size and, by the server, in time."""
        left = DRAINED
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.request.shutdown(socket.SHUT_WR)
            while left > 0 and (data := self.request.recv(65536)):
                left -= len(data)

    def _send(self, status: int, reply: Reply) -> None:
        headers = getattr(self, "headers", None)  # none if the request line was not read
        if headers is not None and "json" in headers.get("Accept", ""):
            return self._write(status, "application/json", json.dumps(reply.verdict) + "\n")
        self._write(status, "text/plain; charset=utf-8", "\n".join(reply.lines(self.server.desk.final)) + "\n")

    def _write(self, status: int, kind: str, text: str) -> None:
        body = text.encode("utf-8")
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Input that is not a valid request: wrong usage, answered in the same format and audited."""
        why = f"this is not a request to the gate: {plain(message or HTTPStatus(int(code)).phrase)[:100]}"
        self._send(int(code), self.server.desk.refuse(Question(self._asked(), b""), why))

    def _asked(self) -> dict[str, str]:
        """The parameters of the query, as far as its line was read."""
        line = self.raw_requestline.decode("iso-8859-1")
        target = line.split()[1] if len(line.split(None, 2)) > 1 else ""
        with contextlib.suppress(ValueError):
            return {name: values[-1] for name, values in parse_qs(urlsplit(target).query).items()}
        return {}

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: Any) -> None:
        """The audit file is the log."""
