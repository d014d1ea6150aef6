"""Parsing ordinary command lines without typer gives the same result as typer."""

from __future__ import annotations

import functools
import inspect
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from update_option_table import COMMANDS, FILE, made

from preflight.cli import app, fast_parser
from preflight.cli.fast_parser_options import TABLES
from preflight.cli.options import Entry

ROOT = Path(__file__).parents[2]
NUMBERS = ["0", "1", "64", "-1", "0.5", "1_0", " 8", "nan", "many", ""]
WORDS = ["a.yaml", "-", "json", "text:out.txt", "--", "--help", "", "-x", "é", "x=1"]
NOISE = [
    "--selct",
    "--help",
    "-h",
    "--",
    "-",
    "-qv",
    "-fjson",
    "-j4",
    "-j",
    "--world-size",
    "--quiet=1",
    "--select=",
    "--target=x=y",
    "---q",
    "-",
]


def spelled(spelling: str, entry: Entry) -> st.SearchStrategy[list[str]]:
    """An option as it may be typed, with a value that may be wrong."""
    if entry.flag is not None:
        return st.just([spelling])
    values = st.sampled_from(WORDS if entry.kind is str else NUMBERS)
    together = st.builds(lambda value: [f"{spelling}{'=' if spelling.startswith('--') else ''}{value}"], values)
    return together | st.builds(lambda value: [spelling, value], values)


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A command line: options that the command knows, paths, and slips."""
    name = draw(st.sampled_from(COMMANDS))
    known = [spelled(spelling, entry) for spelling, entry in TABLES[name].options.items()]
    others = st.sampled_from([*WORDS, *NOISE]).map(lambda word: [word])
    return [name, *(word for part in draw(st.lists(st.one_of(*known, others), max_size=6)) for word in part)]


@contextmanager
def recorded(name: str) -> Iterator[list[Any]]:
    """The arguments of a command function, recorded instead of calling it."""
    module = import_module(f"preflight.cli.{name}")
    function = getattr(module, name)
    calls: list[Any] = []

    @functools.wraps(function)
    def record(*packed: Any, **given: Any) -> int:
        bound = inspect.signature(function).bind(*packed, **given)
        bound.apply_defaults()
        calls.append(bound.arguments)
        return 0

    setattr(module, name, record)
    try:
        yield calls
    finally:
        setattr(module, name, function)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines())
def test_a_line_that_is_read_without_typer_is_the_same_call_with_it(line: list[str]) -> None:
    read = fast_parser.read(line)
    if read is None:
        return
    with recorded(line[0]) as calls:
        assert (fast_parser.run(read), app.run(line)) == (0, 0)
        short, long = calls
    assert repr(short) == repr(long)  # a value that is no number does not equal itself


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_read_without_typer(name: str) -> None:
    for spelling, entry in TABLES[name].options.items():
        words = [spelling] if entry.flag is not None else [spelling, "8"]
        assert fast_parser.read([name, *words]) is not None, words


@pytest.mark.parametrize(
    "line",
    [
        "check --help",
        "check -h a.yaml",
        "check --selct x",
        "check --world-size",
        "check --world-size many",
        "check -j -1 a.yaml",
        "check --quiet=yes",
        "check -qv a.yaml",
        "fix -f json a.yaml",
        "gate a.sh",
        "gate --timeout 0",
        "show a.yaml",
        "chek a.yaml",
        "",
    ],
)
def test_typer_reads_the_rest(line: str) -> None:
    assert fast_parser.read(line.split()) is None


def test_a_shell_that_completes_a_line_asks_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fast_parser.read(["check", "a.yaml"]) is not None
    monkeypatch.setenv(fast_parser.COMPLETION, "complete_bash")
    assert fast_parser.read(["check", "a.yaml"]) is None


def test_the_table_is_what_typer_defines() -> None:
    assert FILE.read_text(encoding="utf-8") == made(), "python tests/update_option_table.py writes it anew"


def entry_lines() -> list[list[str]]:
    """The words of the hooks that pre-commit runs, without the name of the program."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    return [line.split()[2:] for line in text.splitlines() if "entry:" in line]


def test_the_benchmark_measures_the_lines_of_the_hooks() -> None:
    names = runpy.run_path(str(ROOT / "benchmarks" / "speed.py"))
    assert {tuple(words) for words in entry_lines()} == {("check", *names["HOOK"]), ("fix", *names["HOOK"])}


@pytest.fixture(scope="module")
def cache_of_hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache with the table of the rules, which the first command line fills."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    "words", [*entry_lines(), ["check", "--target", "mindformers@1.5.0"], ["gate", "--script"]], ids=" ".join
)
def test_a_hook_loads_no_typer(words: list[str], tmp_path: Path, cache_of_hooks: Path) -> None:
    config = ROOT / "examples" / "mindformers" / "run_llama2_7b.yaml"
    (tmp_path / "a.yaml").write_text(config.read_text(encoding="utf-8"), encoding="utf-8")
    program = "import sys; from preflight.cli import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PREFLIGHT_CACHE_DIR": str(cache_of_hooks), "PREFLIGHT_NO_CACHE": "1"}
    command = [sys.executable, "-c", program, *words, "a.yaml"]
    for _ in range(1 if any(cache_of_hooks.iterdir()) else 2):
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    loaded = set(ran.stderr.splitlines()[-1].split())
    assert "preflight.cli.fast_parser" in loaded
    assert not loaded & {"typer", "click", "rich", "numpy", "jsonschema"}
    assert words[0] in ("fix", "gate") or "inspect" not in loaded
