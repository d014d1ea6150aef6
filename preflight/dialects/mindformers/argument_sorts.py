"""What sort of value an argument of a class must hold, in words and as a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from preflight.record import NamedTuple


class ArgumentSort(NamedTuple):
    """words: what is taken; fits: whether a value is; choices: the texts that are, if they are few."""

    words: str
    fits: Callable[[Any], bool]
    choices: tuple[str, ...] = ()


def _whole(raw: Any) -> bool:
    return isinstance(raw, int) and not isinstance(raw, bool)


def _number(raw: Any) -> bool:
    return raw is None or isinstance(raw, (int, float))


def _part(raw: Any) -> bool:
    return raw is None or (isinstance(raw, (int, float)) and 0 <= raw <= 1)


def _multiplied(raw: Any) -> bool:
    """What a release before 1.7 can multiply steps with and read as a count: a text of digits alone is repeated, and read."""
    return (raw.strip().isdigit() if isinstance(raw, str) else _number(raw) and (raw is None or raw > -1)) and raw != ""


def _two_within(raw: Any) -> bool:
    return isinstance(raw, list) and len(raw) == 2 and all(isinstance(one, float) and 0 < one < 1 for one in raw)


def _counted(raw: Any) -> bool:
    try:
        return raw is None or isinstance(int(raw), int)
    except (TypeError, ValueError, OverflowError):
        return False


def _one_of(words: str, *choices: str, switch: bool = False) -> ArgumentSort:
    return ArgumentSort(words, lambda raw: raw in choices if isinstance(raw, str) else switch and isinstance(raw, bool), choices)


_WITHIN = ArgumentSort("a number with a decimal point between 0.0 and 1.0", lambda raw: isinstance(raw, float) and 0 < raw < 1)
_STEPS = ArgumentSort("a whole number of at least 0", lambda raw: raw is None or (_whole(raw) and raw >= 0))
_ABOVE = ArgumentSort("a whole number of at least 1", lambda raw: raw is None or not _whole(raw) or raw >= 1)
_MULTIPLIED = ArgumentSort("a number of at least 0", _multiplied)

ARGUMENT_SORTS = {
    "float above 0": ArgumentSort("a number with a decimal point above 0.0", lambda raw: isinstance(raw, float) and raw > 0),
    "float from 0": ArgumentSort("a number with a decimal point of at least 0.0", lambda raw: isinstance(raw, float) and raw >= 0),
    "float within 0 and 1": _WITHIN,
    "two floats within 0 and 1": ArgumentSort("two numbers with a decimal point between 0.0 and 1.0", _two_within),
    "float of the steps": ArgumentSort("a number with a decimal point from 0.0 to 1.0", lambda raw: raw is None or (isinstance(raw, float) and 0 <= raw <= 1)),
    "number": ArgumentSort("a number", _number),
    "number or null": ArgumentSort("a number", _number),
    "number from 0": ArgumentSort("a number of at least 0", lambda raw: isinstance(raw, (int, float)) and raw >= 0),
    "number or scaler": ArgumentSort("a number, or the type of a loss scaler", lambda raw: raw is not None and not isinstance(raw, str)),
    "rate": ArgumentSort("a number", _number),
    "rate above its end": ArgumentSort("a number above lr_end", lambda raw: raw is None or (isinstance(raw, (int, float)) and raw >= 0)),
    "part of the steps": ArgumentSort("a number from 0 to 1", _part),
    "old part of the steps": _MULTIPLIED,
    "old epochs": _MULTIPLIED,
    "count as int reads it": ArgumentSort("a whole number", _counted),
    "steps": ArgumentSort("a whole number of at least 0", lambda raw: _whole(raw) and raw >= 0),
    "whole from 0": ArgumentSort("a whole number of at least 0", lambda raw: _whole(raw) and raw >= 0),
    "whole from 0 or null": _STEPS,
    "whole or null": ArgumentSort("a whole number", lambda raw: raw is None or isinstance(raw, int)),
    "whole above 0": ArgumentSort("a whole number of at least 1", lambda raw: _whole(raw) and raw > 0),
    "no text": ArgumentSort("a number", lambda raw: not isinstance(raw, str)),
    "kept": _ABOVE,
    "saved every": _ABOVE,
    "text": ArgumentSort("a text", lambda raw: isinstance(raw, str)),
    "switch": ArgumentSort("True or False", lambda raw: isinstance(raw, bool)),
    "switch or null": ArgumentSort("True or False", lambda raw: raw is None or isinstance(raw, bool)),
    "ckpt or safetensors": _one_of("ckpt or safetensors", "ckpt", "safetensors"),
    "pack or truncate": _one_of("pack or truncate", "pack", "truncate"),
    "ema or sma": _one_of("ema or sma", "ema", "sma"),
    "thread, process or a switch": _one_of("True, False, thread or process", "thread", "process", switch=True),
}
