"""The reader of refusals, on functions of the shapes that front ends have."""

import ast
from typing import Any

from upstream.frontends.refusals import Place, Reader, Refusal

CODE = """
MODES = ["a", "b"]

def needs(config):
    if config.kind is None:
        return False
    return config.kind == "on"

def check(config, n):
    part = config.part
    if part.off:
        return
    assert part.size > 0, "text"
    if needs(config) and n % part.size != 0:
        raise ValueError(part)
    else:
        part.mode = part.get("mode", "a")
    if part.mode not in MODES:
        raise KeyError
    for name in ("x", "y"):
        assert isinstance(getattr(part, name), int)
    if open(config.path):
        raise OSError
    limit = config.get("limits", {}).get("top")
    assert limit is None or limit < 5
    while part.size:
        part.size = read()
    assert part.size == 1

class Section(Base):
    def __post_init__(self):
        object.__setattr__(self, "size", self.size * 2)
        assert self.size <= 8
"""


def found(name: str, roots: dict[str, Any], **more: Any) -> list[Refusal]:
    tree = ast.parse(CODE)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    return list(
        Reader(lambda _: tree, functions.get, {"MODES": ["a", "b"]}).refusals(Place("m.py", name, roots, **more))
    )


def test_conditions_are_followed_to_the_keys_of_the_config() -> None:
    lines = {one.line: one.when for one in found("check", {"config": "", "n": ["key", "devices"]})}
    assert lines[13] == (["not", ["key", "part.off"]], ["not", [">", ["key", "part.size"], 0]])
    on = ["if", ["==", ["key", "kind"], None], False, ["==", ["key", "kind"], "on"]]
    assert lines[15] == (["not", ["key", "part.off"]], on, ["!=", ["%", ["key", "devices"], ["key", "part.size"]], 0])


def test_assignments_loops_and_defaults_are_followed() -> None:
    by_line: dict[int, list[Any]] = {}
    for one in found("check", {"config": "", "n": ["key", "devices"]}):
        by_line.setdefault(one.line, []).append(one.when[-1])
    assert by_line[21] == [["not", ["isinstance", ["key", f"part.{name}"], "int"]] for name in "xy"]
    top = ["get", "limits.top", None]
    (whole,) = (one.when for one in found("check", {"config": "", "n": ["?"]}) if one.line == 25)
    assert whole[-2:] == (["not", ["==", top, None]], ["not", ["<", top, 5]])


def test_what_is_not_read_is_left_out() -> None:
    lines = {one.line for one in found("check", {"config": "", "n": ["?"]})}
    assert 15 not in lines  # n is unknown
    assert 23 not in lines  # a file is opened
    assert 28 not in lines  # a loop has changed the size


def test_a_section_of_a_class_is_relative() -> None:
    (one,) = found("Section.__post_init__", {"self": "."}, sections=("a.b", "c"))
    assert one.when == (["not", ["<=", ["*", ["key", ".size"], 2], 8]],)
    assert one.sections == ("a.b", "c")


def test_a_function_that_a_release_lacks_has_no_refusals() -> None:
    assert found("gone", {}) == []
