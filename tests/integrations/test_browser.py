"""The HTML report in a real browser."""

from __future__ import annotations

import html
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def browse(tmp_path: Path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed here")

    def call(page: Path, *more: str) -> str:
        words = [
            chromium,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1100,2400",
            *more,
            page.as_uri(),
        ]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout

    return call


def test_the_page_shows_findings_in_context(browse, reports: Path) -> None:
    page = browse(reports / "out.html.html", "--dump-dom")
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert "offset assigns 33 layers, but the model has 32, so offset must sum to 0, not 1" in text
    assert "<mark>[2, -1]</mark>" in page
    assert "fix: set offset to 0 (offered: preflight fix --interactive)" in text
    assert page.count('class="finding') == len(re.findall(r'class="finding', (reports / "out.html.html").read_text()))


def test_the_page_shows_memory_bars_and_layout(browse, reports: Path) -> None:
    page = browse(reports / "out.html.html", "--dump-dom")
    assert page.count('class="stage"') >= 2
    assert all(name in page for name in ("<th>tensor</th>", "<th>pipeline</th>", "optimizer states"))


def test_the_picture_is_not_blank(browse, reports: Path) -> None:
    shot = reports / "report.png"
    browse(reports / "out.html.html", f"--screenshot={shot}")
    colors = pixels(shot.read_bytes())
    assert len(colors) > 20
    assert (207, 34, 46) in colors  # the red of errors


def pixels(png: bytes) -> set[tuple[int, ...]]:
    """The colours of an 8-bit RGB or RGBA picture."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind in (2, 6)) == (8, True)
    size, data, at = {2: 3, 6: 4}[kind], b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    raw, stride, before = zlib.decompress(data), width * size, bytearray(width * size)
    found: set[tuple[int, ...]] = set()
    for row in range(height):
        start = row * (stride + 1)
        line = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, size)
        found.update(zip(line[::size], line[1::size], line[2::size], strict=True))
        before = line
    return found


def _unfiltered(kind: int, line: bytearray, up: bytearray, size: int) -> bytearray:
    if kind == 0:
        return line
    for i in range(len(line)):
        left, corner = (line[i - size], up[i - size]) if i >= size else (0, 0)
        if kind == 1:
            add = left
        elif kind == 2:
            add = up[i]
        elif kind == 3:
            add = (left + up[i]) // 2
        else:
            guess = left + up[i] - corner
            add = min((left, up[i], corner), key=lambda value: abs(guess - value))
        line[i] = (line[i] + add) & 255
    return line
