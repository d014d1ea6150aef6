"""Values made to break a rule: huge, infinite, of another type, or endless patterns."""

from __future__ import annotations

from contextlib import suppress

import pytest
from bounded import COMMAND, GRAPH, check

import preflight

pytestmark = pytest.mark.usefixtures("quick")

HUGE = (10**9, 10**18, -1, 0, 10**400)


@pytest.mark.parametrize("size", HUGE, ids=lambda size: f"{len(str(size))} digits {str(size)[:3]}")
@pytest.mark.parametrize(
    "flag",
    [
        "num-layers",
        "hidden-size",
        "num-attention-heads",
        "tensor-model-parallel-size",
        "pipeline-model-parallel-size",
        "num-experts",
    ],
)
def test_sizes_beyond_reason_in_a_command(flag: str, size: int) -> None:
    check(f"{COMMAND} --{flag} {size}\n", "run.sh")


KEYS = ("num_layers: 40", "data_parallel: 2", "pipeline_stage: 4", "micro_batch_num: 4")
ODD = (
    "1000000000",
    str(10**18),
    ".inf",
    "-.inf",
    ".nan",
    "-1",
    "0",
    "null",
    "[]",
    "{a: 1}",
    "'9'",
    "9" * 4000,
    "true",
    "[[1, .inf]]",
)


@pytest.mark.parametrize("value", ODD, ids=lambda value: value[:12])
@pytest.mark.parametrize("key", KEYS)
def test_odd_values_in_a_config(key: str, value: str) -> None:
    check(GRAPH.replace(key, f"{key.partition(':')[0]}: {value}"))


@pytest.mark.parametrize("value", ODD, ids=lambda value: value[:12])
def test_odd_offsets(value: str) -> None:
    check(GRAPH + f"    offset: {value}\n")


PATTERNS = (
    "(a+)+$",
    "(a|a)*b",
    "(.*)*x",
    ".*" * 60,
    "a{1,9999}{1,9999}",
    "(" * 5000,
    "[" * 50,
    "\\",
    "(?P<a>x)(?P=a)*",
    "a" * 1_000_000,
    "(?s).*(?i)",
    "x{65536}{65536}",
)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[:12])
def test_patterns_of_select_recompute_end(pattern: str) -> None:
    with suppress(preflight.InputError):  # more text than is read
        check(GRAPH + f"recompute_config:\n  recompute: False\n  select_recompute: ['{pattern}']\n")


@pytest.mark.parametrize("layers", ["1000000000", "[1000000000, 1, 1, 1]", "[[1000000000], [1]]", "['1-999999999999']"])
def test_recompute_of_layers_without_end(layers: str) -> None:
    check(GRAPH + f"recompute_config:\n  recompute: {layers}\n  select_recompute: {layers}\n")
