"""Functions recognized by their text give the same result as interpreting them; any other text is interpreted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainer import judged, write_tree

from preflight.program import known_function_shortcuts, statements
from preflight.program.interpreter import Interpreter
from preflight.program.ir import compile_source
from preflight.program.machine_facts import Facts
from preflight.program.sources import Sources
from preflight.program.values import MISSING, Function, Module, Scope, Unknown
from preflight.program.verdict import Budget, Machine

GRID = "generate_masked_orthogonal_rank_groups"
GROUPS = [
    ((8, [2, 2, 2], [True, False, False]), [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ((8, [2, 2, 2], [False, True, False]), [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ((8, [2, 2, 2], [True, False, True]), [[0, 1, 4, 5], [2, 3, 6, 7]]),
    ((6, [3, 2], [True, True]), [[0, 1, 2, 3, 4, 5]]),
    ((4, [2, 2], [False, False]), [[0], [1], [2], [3]]),
]


def function(text: str, folder: Path) -> tuple[Interpreter, Function]:
    run = Interpreter(Sources((str(folder),), Budget()), Facts(Machine(), {}, 8), Budget())
    module = Module("a", "", "a.py", False)
    node = compile_source(text)[0]
    return run, Function(node, Scope(module.names, None, module, "module", ""), node[3])


@pytest.mark.parametrize(("given", "groups"), GROUPS)
def test_ranks_of_groups(given: tuple[int, list[int], list[bool]], groups: list[list[int]], tmp_path: Path) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    (twin,) = known_function_shortcuts.TWINS[GRID].values()
    assert twin(run, named, list(given), {}) == groups


@pytest.mark.parametrize(
    "given",
    [
        (8, [2, 3], [True, False]),  # its assertion would fail
        (8, [2, 4], [True]),
        (8, [2, 4], [1, 0]),
        (0, [0], [True]),
        (True, [1], [True]),
        (1 << 30, [1 << 30], [True]),
    ],
)
def test_odd_sizes_are_walked(given: tuple[int, list[int], list[bool]], tmp_path: Path) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    (twin,) = known_function_shortcuts.TWINS[GRID].values()
    assert twin(run, named, list(given), {}) is MISSING


WORLD_SIZE = Unknown(("world size",))
VERSION = Unknown(("torch version >= 2.1",), ("a gap",))


@pytest.mark.parametrize(
    ("given", "facts", "gaps"),
    [
        ((WORLD_SIZE, [2, 2, 2], [True, False, False]), {"world size"}, set()),
        ((WORLD_SIZE, [2, WORLD_SIZE], [True, False]), {"world size"}, set()),
        ((8, [2, WORLD_SIZE], [True, False]), {"world size"}, set()),
        ((WORLD_SIZE, [], []), {"world size"}, set()),
        ((WORLD_SIZE, [VERSION, 1], [False, False]), {"world size", "torch version"}, {"a gap"}),
        ((8, [VERSION, 1], [False, True]), {"torch version"}, {"a gap"}),
    ],
)
def test_groups_of_unknown_sizes_are_unknown(
    given: tuple[Any, ...], facts: set[str], gaps: set[str], tmp_path: Path
) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    (twin,) = known_function_shortcuts.TWINS[GRID].values()
    found = twin(run, named, list(given), {})
    assert isinstance(found, Unknown) and (found.facts, found.gaps, found.computed) == (facts, gaps, True)


@pytest.mark.parametrize(
    "given",
    [
        (WORLD_SIZE, WORLD_SIZE, [True]),
        (WORLD_SIZE, (2, 2), [True, False]),
        (WORLD_SIZE, [2, 0], [True, False]),
        (WORLD_SIZE, [2, "2"], [True, False]),
        (0, [WORLD_SIZE], [True]),
        (-8, [2, WORLD_SIZE], [True, False]),
        (True, [WORLD_SIZE], [True]),
    ],
)
def test_what_is_no_grid_is_walked(given: tuple[Any, ...], tmp_path: Path) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    (twin,) = known_function_shortcuts.TWINS[GRID].values()
    assert twin(run, named, list(given), {}) is MISSING


def test_sizes_that_a_path_changed_are_walked(tmp_path: Path) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    sizes = [2, 4]
    run.blur(sizes, WORLD_SIZE)
    (twin,) = known_function_shortcuts.TWINS[GRID].values()
    assert twin(run, named, [8, sizes, [True, False]], {}) is MISSING


def test_another_text_under_a_known_name_is_walked(tmp_path: Path) -> None:
    head = f"""
        def {GRID}(world_size, parallel_size, mask):
            raise ValueError("own text")

        def get_nccl_options(pg_name, nccl_comm_cfgs):
            return "own"
    """
    root = write_tree(
        tmp_path,
        f"""
        assert get_nccl_options("tp", {{}}) == "own"
        {GRID}(8, [2, 2, 2], [True, False, False])
        """,
        head=head,
    )
    assert [one.message for one in judged(root).refusals] == ["own text"]


def test_lines_and_documentation_are_no_part_of_a_text() -> None:
    bare = compile_source("def f(a, b=1):\n    return [a + b for a in b]\n")[0]
    documented = compile_source(
        '\n\ndef f(a: int, b: int = 1) -> int:\n    """What."""\n\n    return [a + b for a in b]\n'
    )
    other = compile_source("def f(a, b=2):\n    return [a + b for a in b]\n")[0]
    nodes = (bare, documented[0], other)
    texts = [known_function_shortcuts.text_of(node, known_function_shortcuts.body_of(node[5])) for node in nodes]
    assert texts[0] == texts[1] != texts[2]


def test_bytes_of_a_text_are_no_part_of_its_form() -> None:
    texts = [
        f"def f(a):\n    def g():\n        return b'{one}'\n    return {{b'{one}': g}}\n" for one in ("", "x", "z")
    ]
    forms = [compile_source(text)[0] for text in texts]
    assert (
        len({known_function_shortcuts.text_of(form, known_function_shortcuts.body_of(form[5])) for form in forms}) == 3
    )


SIZES = """
    import dataclasses

    @dataclasses.dataclass
    class Sizes:
        width: int = 1
        heads: int = 2
        nothing: int = 3
        kind: str = ""

        def __post_init__(self):
            if self.width % 2 or self.kind == "fancy":
                raise ValueError(f"{self.width} {self.heads} {self.kind}")
"""
COPY = (
    "for f in dataclasses.fields(Sizes):\n    if hasattr(args, f.name):\n        kw[f.name] = getattr(args, f.name)\n"
)
HANDED = f"def made(args, sizes):\n    kw = {{}}\n{COPY}    return Sizes(**kw)\n".replace("\nfor", "\n    for")
HANDED = HANDED.replace("\n    if", "\n        if").replace("\n        kw[", "\n            kw[")
BEFORE = "if args.fast:\n    args.width += 1\nargs.heads = args.width * 2\n"
LOOPS = {
    "as it is written mostly": (True, f"{BEFORE}kw = {{}}\n{COPY}Sizes(**kw)\nassert f.name == 'kind'"),
    "in a function": (True, f"{BEFORE}{HANDED}made(args, args.heads)"),
    "with other names": (
        True,
        f"kw = {{}}\n{COPY}Sizes(**kw)".replace("kw", "found").replace(" f ", " one ").replace("f.name", "one.name"),
    ),
    "over some of the fields": (True, f"kw = {{}}\n{COPY}Sizes(**kw)".replace("(Sizes):", "(Sizes)[:2]:")),
    "on a path that is unknown": (
        True,
        f"import os\nkw = {{}}\nif os.nice(1):\n    {COPY.replace(chr(10), chr(10) + '    ')}"
        "\nassert not kw or args.width == 8",
    ),
    "into what holds something": (True, f"kw = {{'heads': 5, 'width': 5}}\n{COPY}Sizes(**kw)"),
    "under a condition more": (
        False,
        f"kw = {{}}\n{COPY}Sizes(**kw)".replace("f.name):\n", "f.name) and f.name != 'kind':\n"),
    ),
    "with another default": (
        False,
        f"kw = {{}}\n{COPY}Sizes(**kw)".replace("getattr(args, f.name)", "getattr(args, f.name, 1)"),
    ),
    "with another name of hasattr": (
        False,
        f"kw = {{}}\nhasattr = lambda owner, name: name == 'width'\n{COPY}Sizes(**kw)",
    ),
    "of an object": (
        False,
        f"class Own:\n    width = 7\nkw, own = {{}}, Own()\n{COPY}Sizes(**kw)".replace("(args,", "(own,"),
    ),
    "with another branch": (False, f"kw = {{}}\n{COPY}    else:\n        kw[f.name] = 8\nSizes(**kw)"),
    "into the arguments": (False, f"kw = vars(args)\n{COPY}assert args.width == 8"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_copies_arguments_gives_what_walking_it_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, text = LOOPS[name]
    root = write_tree(tmp_path, text, head=SIZES)
    known, taken = known_function_shortcuts.copies_fields, []

    def noted(*given: Any) -> bool:
        taken.append(known(*given))
        return taken[-1]

    for command in ([], ["--width", "7"], ["--fast"], ["--kind", "fancy", "--heads", "3"]):
        monkeypatch.setattr(statements, "copies_fields", noted)
        found = judged(root, command)
        monkeypatch.setattr(statements, "copies_fields", lambda *given: False)
        assert found == judged(root, command)
    assert any(taken) is copied
