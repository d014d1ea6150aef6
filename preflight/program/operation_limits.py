"""Limits for Python operations: expensive ones are not executed."""

from __future__ import annotations

import re
import warnings

from preflight.source.typing_without_import import Any

LENGTH = 1_000_000
BITS = 8192
NODES = 100_000
WIDTH = re.compile(r"\d{5,}|\*")
WORK = 20_000_000
_REPEATS = frozenset(("max_repeat", "min_repeat", "possessive_repeat"))


def safe_arithmetic(sign: str, one: Any, other: Any) -> bool:
    """Whether the result of an operation has a limited size."""
    if sign in ("Mult", "Add"):
        return _product_or_sum(sign, one, other)
    if sign in ("Pow", "LShift") and isinstance(one, int) and isinstance(other, int):
        if sign == "LShift":
            return 0 <= other <= BITS or other < 0
        return abs(other) * max(one.bit_length(), 1) <= BITS
    if sign == "Mod" and isinstance(one, (str, bytes)):
        return len(one) < LENGTH and not re.search(r"%[^a-zA-Z%]*(\d{5,}|\*)", str(one)) and bounded(other)
    return True


def _product_or_sum(sign: str, one: Any, other: Any) -> bool:
    sizes = [len(value) if isinstance(value, (str, bytes, list, tuple)) else None for value in (one, other)]
    if sizes == [None, None]:
        numbers = [value for value in (one, other) if isinstance(value, int)]
        return sum(value.bit_length() for value in numbers) <= 2 * BITS
    if sign == "Add":
        return sum(size or 0 for size in sizes) <= LENGTH
    size, times = (sizes[0], other) if sizes[0] is not None else (sizes[1], one)
    return not isinstance(times, int) or (size or 0) * times <= LENGTH


def safe_format(spec: str) -> bool:
    """Whether a format produces text of limited width."""
    return len(spec) < 100 and not WIDTH.search(spec)


def safe_template(template: str) -> bool:
    """Whether str.format with this text reads only its arguments, not their attributes or items."""
    fields = re.findall(r"\{([^{}:!]*)(?:![rsa])?(?::([^{}]*))?\}", template)
    nested = re.search(r"\{[^{}]*\{", template.replace("{{", ""))
    return (
        not nested
        and all(name.isalnum() or name.isidentifier() or not name for name, _ in fields)
        and all(safe_format(spec) for _, spec in fields)
    )


def bounded(value: Any, limit: int = NODES) -> bool:
    """Whether a value is small enough to be printed, compared or hashed."""
    stack, seen = [value], 0
    while stack:
        one = stack.pop()
        seen += 1
        if seen > limit:
            return False
        if isinstance(one, dict):
            stack.extend(one.keys())
            stack.extend(one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            stack.extend(one)
        elif isinstance(one, (str, bytes)):
            seen += len(one) // 64
        elif isinstance(one, int) and one.bit_length() > 4 * BITS:
            return False
    return True


def safe_pattern(pattern: Any, length: int) -> bool:
    """Whether matching a regular expression on a text of this length is fast: nested repeats may not be."""
    if not isinstance(pattern, str) or len(pattern) > 2000:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parse(pattern)
    except Exception:
        return True  # the program's own failure, which re reports
    repeats = _repeats(parsed, False)
    return repeats is not None and length ** max(repeats, 1) <= WORK


def _parse(pattern: str) -> Any:
    from re import compile as compiled  # a pattern that does not compile fails here, before it is walked

    compiled(pattern)
    try:
        from re import _parser  # type: ignore[attr-defined]
    except ImportError:
        import sre_parse as _parser
    return _parser.parse(pattern)


def _repeats(parsed: Any, inside: bool) -> int | None:
    """The number of consecutive repeats without a small limit; None for nested ones."""
    count = 0
    for code, argument in parsed:
        name = str(code).lower()
        if name in _REPEATS:
            _, high, body = argument
            if int(high) > 1 and (inside and int(high) > 8):
                return None
            inner = _repeats(body, inside or int(high) > 8)
            if inner is None:
                return None
            count += inner + (int(high) > 8)
        else:
            for part in _parts(argument):
                inner = _repeats(part, inside)
                if inner is None:
                    return None
                count += inner
    return count


def _parts(argument: Any) -> list[Any]:
    """The patterns within an element of a pattern."""
    found: list[Any] = []
    stack = [argument]
    while stack:
        one = stack.pop()
        if type(one).__name__ == "SubPattern":
            found.append(one)
        elif isinstance(one, (tuple, list)):
            stack.extend(one)
    return found
