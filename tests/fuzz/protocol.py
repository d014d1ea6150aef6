"""The gate's socket: no input of a client, in pieces or in any state, prevents the next client from getting an
answer."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from functools import cache
from pathlib import Path

from preflight.gate.server import Server
from preflight.gate.verdict import Policies

from .choices import Choices

SECONDS = 60.0
LINES = (
    *(
        "POST / HTTP/1.1",
        "POST /?nodes=2&name=a HTTP/1.1",
        "GET / HTTP/1.1",
        "PUT / HTTP/1.1",
        "POST / HTTP/1.0",
        "POST /",
        "POST",
        "",
        "\x16\x03\x01",
        "GET / HTTP/9.9",
    ),
    *(
        "POST /?" + "a=b&" * 2000 + " HTTP/1.1",
        "POST /?nodes=%00&override=%0a HTTP/1.1",
        "POST /?world=-1 HTTP/1.1",
        "POST /?kind=manifest HTTP/1.1",
        "P" * 70_000,
    ),
)
HEADERS = (
    *(
        "Content-Length: 20",
        "Content-Length: 0",
        "Content-Length: -1",
        "Content-Length: abc",
        "Content-Length: 99999999999",
        "Content-Length: 5\r\nContent-Length: 6",
    ),
    *(
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "Accept: application/json",
        "Host: x",
        "Connection: keep-alive",
        "X: " + "y" * 70_000,
        "no colon",
        ": empty",
    ),
    *(" folded", "Content-Length: +5", "Content-Length: 0x5", "\0", "X: \udcff"),
)
BODIES = (
    b"",
    b"#!/bin/bash\ntorchrun pretrain_gpt.py\n",
    b"\0" * 20,
    b"5\r\nhello\r\n0\r\n\r\n",
    b"a|" * 4000,
    b"\xff" * 20,
    b"GET / HTTP/1.1\r\n\r\n",
)


@cache
def _address() -> str:
    """The socket of a server that runs as long as this process."""
    threading.stack_size(
        256 * 1024
    )  # the limit on memory is one of addresses: stacks of threads that wait would use it up
    path = Path(tempfile.mkdtemp(prefix="preflight-gate.")) / "gate.sock"
    server = Server(path, 1, Policies(seconds=1.0), None, lambda line: None)
    server.handle_error = lambda *given: None  # type: ignore[method-assign]  # a client that goes away is no news
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return str(path)


def protocol(choices: Choices) -> None:
    """A client with arbitrary input, then one with a valid request."""
    with contextlib.suppress(OSError), _client() as client:
        for _ in range(1 + choices.below(3)):
            client.sendall(_request(choices))
            state = choices.below(6)
            if state == 0:
                break  # it hangs up
            if state == 1:
                client.shutdown(socket.SHUT_WR)
            if state in (2, 3):
                client.settimeout(0.02)
                client.recv(65536)
    with _client() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1."), "no answer to the next client"


def _client() -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(SECONDS)
    client.connect(_address())
    return client


def _request(choices: Choices) -> bytes:
    """A request line, headers and a body, or a part of that."""
    lines = [choices.of(LINES), *(choices.of(HEADERS) for _ in range(choices.below(4)))]
    head = choices.of(("\r\n", "\r\n", "\n", "\r")).join(lines) + choices.of(("\r\n\r\n", "\n\n", "\r\n", ""))
    data = head.encode("utf-8", "surrogateescape") + choices.of(BODIES)
    return data[: choices.below(len(data) + 1)] if 0 < len(data) < 65_000 and choices.one_in(3) else data
