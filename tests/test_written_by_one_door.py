"""Only preflight/source/writing.py opens files for writing, and checks existing files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from house import MODULES, RULES, each, nodes, shown

DOOR = "preflight/source/writing.py"
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
METHODS = {"write_text", "write_bytes", "touch", "savefig", "hardlink_to", "symlink_to", "rename"}
OF_OS = {"replace", "rename", "renames", "link", "symlink", "mkfifo", "mknod", "truncate", "open", "fdopen"}
OTHERS = {"tempfile", "shutil"}
HARMLESS = {"which", "get_terminal_size"}
STREAMS = ("os.devnull", "os.dup(")
"""Objects that are not files: their mode is irrelevant."""


def mode(call: ast.Call, at: int) -> str:
    """The mode that a file is opened with; "w" if it is only known at run time."""
    given = next((word.value for word in call.keywords if word.arg == "mode"), None)
    given = given or (call.args[at] if len(call.args) > at else None)
    if given is None:
        return "r"
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else "w"


def writes(call: ast.Call) -> bool:
    """Whether a call may open a file for writing, or put one somewhere."""
    return puts(call) and not (call.args and ast.unparse(call.args[0]).startswith(STREAMS))


def puts(call: ast.Call) -> bool:
    """The same, with calls on what is no file."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and not set(mode(call, 1)).isdisjoint("wax+") and not reads(call)
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if owner == "os":
        if name == "open":
            return any(isinstance(n, ast.Attribute) and n.attr in FLAGS for n in ast.walk(call))
        return name in OF_OS and (name != "fdopen" or not set(mode(call, 1)).isdisjoint("wax+"))
    if owner in OTHERS:
        return name not in HARMLESS
    if name == "savefig":
        return ast.unparse(call.args[0]) != "picture"
    if owner in ("self", "run"):  # methods of preflight's own, which are looked at themselves
        return False
    return name in METHODS or (name == "open" and not set(mode(call, 0)).isdisjoint("wax+") and text_mode(call))


def reads(call: ast.Call) -> bool:
    """Whether a handle opened for reading is given."""
    return bool(call.args) and isinstance(call.args[0], ast.Call) and not writes(call.args[0]) and len(call.args) < 2


def text_mode(call: ast.Call) -> bool:
    """Whether a method `open` is a path's: its first word is a mode."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and len(str(call.args[0].value)) <= 3


@each([path for path in [*MODULES, *RULES] if shown(path) != DOOR], shown)
def test_nothing_else_writes(path: Path) -> None:
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    found = [f"line {call.lineno}: {ast.unparse(call)}" for call in calls if writes(call)]
    assert not found, f"{shown(path)} writes by itself; {DOOR} does: {found}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open(path, 'w')", True),
        ("open(path, 'ab')", True),
        ("open(path, mode)", True),
        ("open(path)", False),
        ("open(path, 'rb')", False),
        ("open(os.devnull, mode)", False),
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", True),
        ("os.open(path, os.O_RDONLY | os.O_NOFOLLOW)", False),
        ("path.write_text('x')", True),
        ("path.open('a', encoding='utf-8')", True),
        ("self.files.open(name)", False),
        ("tempfile.mkstemp()", True),
        ("os.replace(a, b)", True),
        ("text.replace('a', 'b')", False),
        ("shutil.which('git')", False),
        ("shutil.copy(a, b)", True),
        ("self.touch(container)", False),
        ("run.touch(groups)", False),
        ("path.touch()", True),
        ("figure.savefig(path)", True),
        ("figure.savefig(picture, format='png')", False),
        ("os.fdopen(handle, 'wb')", True),
        ("os.fdopen(os.dup(1), 'wb')", False),
    ],
)
def test_what_counts_as_writing(text: str, expected: bool) -> None:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    assert writes(statement.value) is expected
