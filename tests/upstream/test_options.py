"""Options: a parser as rows, rows as intervals, a framework that parses over packages that are not installed."""

from __future__ import annotations

import argparse
import enum
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from upstream import described
from upstream.frameworks import MEGATRON
from upstream.inside.rows import rows
from upstream.options import NoOptions, delta, intervals, row
from upstream.repositories import Repositories

ROOT = Path(__file__).parents[2]


class Backend(enum.Enum):
    flash = 1
    auto = 2


def only(*words: Any, **more: Any) -> list[Any]:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(*words, **more)
    return row(rows(parser)[0])


@pytest.mark.parametrize(
    ("words", "more", "expected"),
    [
        (("--layers",), {"type": int, "default": 4}, ["layers", "int", 4]),
        (("--name",), {}, ["name", "str"]),
        (("--moe",), {"action": "store_true"}, ["moe", "true", False]),
        (("--no-bias",), {"action": "store_false", "dest": "bias"}, ["bias", "false", True]),
        (("--ramp",), {"nargs": 3, "type": int}, ["ramp", "int", None, 3]),
        (("--save", "--keep"), {}, ["save", "str", None, None, None, ["--keep"]]),
        (("--must",), {"required": True}, ["must", "str", None, None, None, None, True]),
        (("--kind",), {"choices": ["a", "b"]}, ["kind", "str", None, None, ["a", "b"]]),
        (("--wrap",), {"type": json.loads}, ["wrap", "json"]),
        (("--think",), {"type": lambda text: text.lower() in ("true", "1")}, ["think", "truth"]),
    ],
)
def test_a_row_says_what_an_option_takes(words: tuple[str, ...], more: dict[str, Any], expected: list[Any]) -> None:
    assert only(*words, **more) == expected


def test_the_members_of_an_enumeration_are_what_it_takes() -> None:
    read = only("--backend", type=lambda text: Backend[text], default=Backend.auto)
    assert read == ["backend", "enum", "auto", None, ["flash", "auto"]]


def test_a_function_that_nobody_knows_keeps_its_name() -> None:
    def odd(text: str) -> str:
        return text

    assert only("--odd", type=odd)[1] == "odd"


def test_intervals_of_releases() -> None:
    one, other = ["a", "int"], ["a", "int", 4]
    assert intervals([{"--a": one}, {"--a": one}, {"--a": other}, {}, {"--a": other}]) == {
        "--a": [[0, 1, one], [2, 2, other], [4, 4, other]]
    }


def test_a_table_on_another_one_is_what_differs() -> None:
    assert delta({"--a": ["a", "int"], "--b": ["b", "str"]}, {"--b": ["b", "int"], "--c": ["c", "str"]}) == {
        "--a": ["a", "int"],
        "--b": ["b", "str"],
        "--c": None,
    }


FRAMEWORK = """
import torch
import absent_library
from packaging.version import Version

try:
    import optional_library
except ImportError:
    optional_library = None


class Layer(torch.nn.Module):
    kind: torch.dtype = torch.float32


@torch.jit.script
def scale(x: torch.Tensor | None) -> None: ...


def add_megatron_arguments(parser):
    print("noise")
    if torch.cuda.is_available() or Version(torch.__version__) < Version("2"):
        parser.add_argument("--on-a-gpu")
    parser.add_argument("--layers", type=int, default=2)
    if optional_library is not None:
        parser.add_argument("--never")
    return parser
"""


def parsed(folder: Path, text: str) -> dict[str, Any]:
    """The output of a release's parser."""
    pytest.importorskip("packaging")
    package = folder / "megatron" / "training"
    package.mkdir(parents=True)
    (package / "arguments.py").write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "upstream.inside.megatron_parser", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_parser_runs_without_the_packages_that_it_imports(tmp_path: Path) -> None:
    read = parsed(tmp_path, FRAMEWORK)
    assert [option["names"][0] for option in read["options"]] == ["-h", "--layers"]
    assert "absent_library" in read["standins"] and "optional_library" not in read["standins"]


def test_what_is_installed_changes_nothing(tmp_path: Path) -> None:
    """yaml and pytest are installed here, and may not be elsewhere."""
    text = FRAMEWORK.replace("optional_library", "pytest").replace("absent_library", "yaml")
    read = parsed(tmp_path, text)
    assert [option["names"][0] for option in read["options"]] == ["-h", "--layers"]
    assert "yaml" in read["standins"] and "pytest" not in read["standins"]


def test_nothing_is_written_where_a_parser_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise NoOptions("the parser of megatron 0.6.0 does not run")

    monkeypatch.setattr(described, "options", fails)
    with pytest.raises(NoOptions):
        described.tables(MEGATRON, Repositories(), sys.executable, lambda text: None)
