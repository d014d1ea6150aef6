"""Version ranges such as ">=0.13,<0.20"."""

from __future__ import annotations

import operator
import re
from functools import cache

from preflight.source.lazy_regex import lazy_pattern

_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


@cache
def numbers(version: str) -> tuple[int, ...]:
    """ "1.5.0" → (1, 5, 0); stops at the first part that is not a number."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


BRANCH = lazy_pattern(r"(?P<of>\d[\w.]*_)?(?P<line>[a-z]+_r)(?P<number>\d+(?:\.\d+)*)")


@cache
def branch(version: str) -> tuple[str, tuple[int, ...]]:
    """The line of versions to which a version belongs, and its number there: branches that are named after the release
    they are built on, such as "core_r0.7.0", are a separate line, and so is each release on another one, such as
    "2.1.0_core_r0.8.0"; "" is that of the releases."""
    found = BRANCH.fullmatch(version)
    if found is None:
        return "", numbers(version)
    return version if found["of"] else found["line"], numbers(found["number"])


def is_final(version: str) -> bool:
    """Whether a version is a final release, not a candidate or a development version."""
    return re.fullmatch(r"v?\d+(?:\.\d+)*(?:\.?post\d+)?(?:\+[\w.]+)?", version) is not None


NEWEST = (1 << 30,)
"""The version that represents a branch such as "master"."""


@cache
def matches(version: str, wanted: str) -> bool:
    """Whether a version is in a range; an empty version or range always matches, and a branch is newer than every
    release."""
    if not wanted or not version:
        return True
    have = numbers(version) or NEWEST
    for part in wanted.split(","):
        sign = re.match(r"\s*(?:(>=|<=|==|!=|>|<)\s*)?(.+)", part)
        assert sign is not None
        want = numbers(sign[2].strip())
        size = max(len(have), len(want))
        padded = [(*v, *(0,) * (size - len(v))) for v in (have, want)]
        if not _COMPARE[sign[1] or "=="](*padded):
            return False
    return True
