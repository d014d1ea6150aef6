"""Options: a parser as rows, rows as intervals, a framework that parses over packages that are not there."""

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

from upstream.inside.rows import rows
from upstream.options import delta, intervals, row

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


def test_a_parser_runs_without_the_packages_that_it_imports(tmp_path: Path) -> None:
    pytest.importorskip("packaging")
    package = tmp_path / "megatron" / "training"
    package.mkdir(parents=True)
    (package / "arguments.py").write_text(FRAMEWORK, encoding="utf-8")
    words = [sys.executable, "-m", "upstream.inside.megatron_parser", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    read = json.loads(done.stdout)
    assert [option["names"][0] for option in read["options"]] == ["-h", "--layers"]
    assert "absent_library" in read["standins"] and "optional_library" not in read["standins"]
