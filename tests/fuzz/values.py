"""Careless or malicious values in place of a number, a name or a list."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .choices import Choices

NUMBERS: tuple[Any, ...] = (
    *(
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        12,
        16,
        24,
        32,
        64,
        128,
        1024,
        4096,
        32000,
        -1,
        -2,
        -8,
        10**6,
        10**9,
        10**18,
        -(10**18),
        2**63,
        2**64 + 1,
        10**400,
    ),
    *(0.0, -0.0, 0.5, 1.0, 1.5, 8.0, 1e-9, 1e18, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")),
)
WORDS: tuple[Any, ...] = (
    *(
        "",
        " ",
        "0",
        "1",
        "8",
        "-1",
        "1e9",
        "1e-4",
        "true",
        "True",
        "no",
        "none",
        "None",
        "null",
        "auto",
        "bf16",
        "bfloat16",
        "float16",
        "fp32",
        "full",
    ),
    *(
        "selective",
        "uniform",
        "block",
        "E|(t|t)*3|L",
        "[[1,2],[3]]",
        "([1]*4)",
        "Et*4|t*4L",
        "*",
        "**",
        ".*",
        "(a+)+$",
        "a" * 300,
        "é",
        "\u202e",
        "\x1b[31m",
    ),
    *(
        "--tp",
        "/etc/passwd",
        "../../x",
        "$X",
        "${X}",
        "$(x)",
        "{}",
        "[]",
        "%s",
        "{0}",
        "1,2,3",
        "1,,2",
        ",",
        "4-2",
        "0-9",
        "1:2",
        "1 2 3",
        "rms",
        "swiglu",
    ),
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [0],
    [1, 2],
    [[1], [2, 3]],
    [None],
    [True],
    {"a": 1},
    {1: 2},
    {None: None},
    ["x", "y"],
    [[]],
    [{}],
)


def odd(choices: Choices, depth: int = 0) -> Any:
    """A value: mostly numbers, some words, booleans, nulls, lists and mappings."""
    kind = choices.below(16)
    if kind < 8:
        return choices.of(NUMBERS)
    if kind < 11:
        return choices.of(WORDS)
    if kind < 14 or depth > 2:
        return deepcopy(choices.of(OTHERS))
    items = [odd(choices, depth + 1) for _ in range(choices.below(5))]
    return items if kind == 14 else {choices.of(WORDS): item for item in items}


def odd_word(choices: Choices) -> str:
    """The same as one word of a command line."""
    value = odd(choices, 3)
    if isinstance(value, int) and value.bit_length() > 1000:
        return "9" * 400
    return str(value)
