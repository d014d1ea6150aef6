"""Functions known by their text give what walking them gives; any other text is walked."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer import judged, write_tree

from preflight.program import twins
from preflight.program.facts import Facts
from preflight.program.interpreter import Interpreter
from preflight.program.ir import compile_source
from preflight.program.sources import Sources
from preflight.program.values import MISSING, Function, Module, Scope
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
    (twin,) = twins.TWINS[GRID].values()
    assert twin(run, named, list(given), {}) == groups


@pytest.mark.parametrize(
    "given",
    [
        (8, [2, 3], [True, False]),  # its assertion would say so
        (8, [2, 4], [True]),
        (8, [2, 4], [1, 0]),
        (0, [0], [True]),
        (True, [1], [True]),
        (1 << 30, [1 << 30], [True]),
    ],
)
def test_odd_sizes_are_walked(given: tuple[int, list[int], list[bool]], tmp_path: Path) -> None:
    run, named = function(f"def {GRID}(world_size, parallel_size, mask): pass", tmp_path)
    (twin,) = twins.TWINS[GRID].values()
    assert twin(run, named, list(given), {}) is MISSING


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
    texts = [twins.text_of(node, twins.body_of(node[5])) for node in (bare, documented[0], other)]
    assert texts[0] == texts[1] != texts[2]
