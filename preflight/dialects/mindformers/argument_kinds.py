"""The kinds of values that classes take for their arguments, by their names in schemas/mindformers/arguments.json."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.dialects.mindformers.accepted_values import (
    BELOW_1,
    COUNT,
    FORMAT,
    POINTED_ABOVE_0,
    POSITIVE,
    REAL,
    WHOLE,
    WHOLE_FROM_1,
    Falsy,
    ReadAsWhole,
)
from preflight.lint.scalar_kinds import TEXT, Number, Text, one_of, whole
from preflight.lint.value_kinds import NULL, SWITCH, ListOf, ValueKind

_FROM_0 = Number(0, booleans=True)
_WITHIN = Number(above=0.0, below=1.0, pointed=True)
_MULTIPLE = NULL | Text(r"\s*\d+\s*") | Number(above=-1, booleans=True)
"""What steps can be multiplied with and read as a count: a text of digits is repeated, and read."""

ARGUMENT_KINDS: Mapping[str, ValueKind] = {
    "float above 0": POINTED_ABOVE_0,
    "float from 0": Number(0.0, pointed=True),
    "float within 0 and 1": _WITHIN,
    "two floats within 0 and 1": ListOf(_WITHIN, 2).worded("two numbers with a decimal point between 0.0 and 1.0"),
    "three floats from 0": ListOf(Number(0.0, pointed=True), 3).worded("three numbers with a decimal point from 0.0"),
    "float of the steps": Number(0.0, maximum=1.0, pointed=True).or_null(),
    "number": REAL.or_null(),
    "number from 0": _FROM_0,
    "number above its end": _FROM_0.or_null().worded("a number above lr_end"),
    "number or scaler": (~(NULL | TEXT)).worded("a number, or the type of a loss scaler"),
    "no text": (~TEXT).worded(REAL.words),
    "part of the steps": Number(0, maximum=1, booleans=True).or_null(),
    "multiple of the steps": _MULTIPLE.worded(_FROM_0.words),
    "count as int reads it": ReadAsWhole().or_null(),
    "whole from 0": COUNT,
    "whole from 0 or null": COUNT.or_null(),
    "whole or null": WHOLE.or_null(),
    "whole above 0": POSITIVE,
    "whole from 1": WHOLE_FROM_1,
    "two numbers from 0 below 1": ListOf(BELOW_1, 2).worded("two numbers of at least 0 and below 1"),
    "whole above 0 if whole": (~whole(maximum=0)).worded(POSITIVE.words),
    "text": TEXT,
    "switch": SWITCH,
    "switch that stays off": Falsy().worded("False"),
    "switch or null": SWITCH.or_null(),
    "ckpt or safetensors": FORMAT,
    "pack or truncate": one_of("pack", "truncate"),
    "ema or sma": one_of("ema", "sma"),
    "thread, process or a switch": (one_of("thread", "process") | SWITCH).worded("True, False, thread or process"),
}
