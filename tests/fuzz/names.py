"""Names and paths through the command line: files named like options, with odd bytes, deep, linked,
and files that are none."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from preflight.cli import run

from .choices import Choices
from .repetition import GRAPH, LAUNCH

WORDS = (
    *(
        "run",
        "-",
        "--",
        "--exclude=*.sh",
        "--output-file=bad.sh",
        "-f",
        "--fix",
        "--diff-base",
        "HEAD",
        "@args",
        "~",
        "$HOME",
        "$(id)",
        "`id`",
        "*",
        "?",
        "[a]",
        "{a,b}",
    ),
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "\x1b[31m",
        "\x7f",
        "\u202e",
        "\u2028",
        "é",
        "\udcff",
        "\udc80",
        "中",
        "😀",
        "'",
        '"',
        "\\",
        "%s",
        "::error ",
        "@everyone",
        "<b>",
        "|",
        ";",
        "&",
    ),
    *("a" * 100, "con", ".", "..", ".git", "preflight.toml", "pyproject.toml", ":", "=", ",", "1:2", "#", "a.yaml.sh"),
)
SUFFIXES = (".yaml", ".sh", ".yml", ".sbatch", "", ".YAML", ".yaml ", ".json", ".toml")
TEXTS = (GRAPH, f"#!/bin/bash\n{LAUNCH}\n", "", "a: [", "\0", "é", f"base_config: run.yaml\n{GRAPH}")
FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")


@cache
def _home() -> Path:
    return Path(tempfile.mkdtemp(prefix="preflight-names."))


def names(choices: Choices) -> None:
    """A folder of odd entries: a report or one line of refusal, nothing changed, nothing raw on the terminal."""
    home = _home()
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(dir=home))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        paths = [path for _ in range(1 + choices.below(3)) if (path := _entry(choices, folder)) is not None]
        before = _content(folder)
        asked = [
            choices.of((".", *(f"./{os.path.relpath(path, folder)}" for path in paths)))
            for _ in range(1 + choices.below(2))
        ]
        words = [choices.of(("check", "check", "check", "fix")), *asked]
        words += (
            ["--diff"]
            if words[0] == "fix"
            else ["--output-format", choices.of(FORMATS), "--no-cache"]
            if choices.below(2)
            else ["--allow-unclaimed"]
        )
        if words[0] == "fix" and "--allow-unclaimed" in words:
            words.remove("--allow-unclaimed")
        out, code = _called(words, folder)
        assert code in (0, 1, 2), (words, out[-500:])
        assert "Traceback" not in out and "itself failed" not in out, (words, out[-500:])
        assert "\x1b" not in out and "\u202e" not in out, words
        assert _content(folder) == before, words


def _called(words: list[str], folder: Path) -> tuple[str, int]:
    """The files that a command writes, and its exit code."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    here = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run(words)
    finally:
        os.chdir(here)
    out.flush()
    return out.buffer.getvalue().decode("utf-8", "replace"), code  # type: ignore[attr-defined]


def _entry(choices: Choices, folder: Path) -> Path | None:
    """A file, a folder, a link, a pipe; None if the system refuses the name."""
    name = "".join(choices.of(WORDS) for _ in range(1 + choices.below(3))).replace("/", "").replace(
        "\0", ""
    ) + choices.of(SUFFIXES)
    path = folder / name
    try:
        if choices.one_in(6):
            path = folder.joinpath(*["d"] * (1 + choices.below(40))) / name
            path.parent.mkdir(parents=True, exist_ok=True)
        kind = choices.below(8)
        if kind == 0:
            path.symlink_to(choices.of((name, "nowhere", ".", "..", "/dev/zero", "/proc/self/status", "/etc/passwd")))
        elif kind == 1:
            os.mkfifo(path)
        elif kind == 2:
            path.mkdir()
        else:
            path.write_bytes(choices.of(TEXTS).encode())
    except (OSError, ValueError):
        return None
    return path


def _content(folder: Path) -> dict[str, bytes | None]:
    """Every entry below a folder, with the contents of regular files."""
    found: dict[str, bytes | None] = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(root, name)
            found[path] = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else None
    return found
