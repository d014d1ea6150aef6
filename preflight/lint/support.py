"""How much of the rest of a run speaks for one of its arguments: what is configured in many places was meant."""

from __future__ import annotations

from preflight.job import Job

_COMMON = frozenset("size num model parallel use layers config enable type path data".split())
"""Words of so many arguments that they tell nothing."""


def support(name: str, job: Job) -> int:
    """How many other arguments that were typed share a word with an argument's name.

    It compares the two sides of one conflict.
    """
    words = _words(name)
    return sum(not words.isdisjoint(_words(other)) for other in job.arguments.written if other != name)


def _words(name: str) -> frozenset[str]:
    words = name.rpartition(".")[2].split("_")
    return frozenset(word.removesuffix("s") for word in words if word not in _COMMON) - {""}


def topic(name: str) -> str:
    """What an argument is about: the first of its words that tells something, "" where none does."""
    words = name.rpartition(".")[2].split("_")
    return next((word.removesuffix("s") for word in words if word not in _COMMON), "")
