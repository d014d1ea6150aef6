"""Runs that each declared check refuses or accepts: the pairs and edges from the tests of the rules."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from upstream.frameworks import Framework

TESTS = Path(__file__).parents[1] / "tests"
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
ENVIRONMENT = {CONNECTIONS: "1"}
TABLES = {"megatron": ("megatron-core", "megatron-training")}
EDGES = {"megatron": "megatron"}
"""Tables of pairs, and the folder of edges, for frameworks whose checks can be triggered by a command line."""
BOTH_SIDES = "megatron-core"
"""The table whose variables apply to both sides."""
ENTRIES = {"hybrid": "pretrain_hybrid.py"}
ENTRY, DEVICE, NEWEST = "pretrain_gpt.py", "h100", "0.20.0"


class Run(NamedTuple):
    """A command with its environment. environment: "" for an unset variable."""

    entry: str
    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    processes: int
    device: str


class Example(NamedTuple):
    """A run that a rule refuses in a release, home, and the neighbouring run that it accepts."""

    rule: str
    home: str
    refused: Run
    accepted: Run


def examples(framework: Framework) -> list[Example]:
    """Every pair of a framework's checks, then each edge that one of them reports, next to the first edge that it does
    not report."""
    names = {release.name for release in framework.releases}
    found: dict[tuple[str, Run], Example] = {}
    for one in (*_pairs(framework), *_edges(framework)):
        if one.home in names:
            found.setdefault((one.rule, one.refused), one)
    return list(found.values())


@cache
def _tests(name: str) -> ModuleType:
    """A module of the tests, which do not form a package but import each other by name."""
    folder = str(TESTS)
    sys.path.append(folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def _pairs(framework: Framework) -> Iterator[Example]:
    for pair in _tests("pairs").pairs():
        if pair.table in TABLES.get(framework.name, ()):
            home = _home(framework, pair.row.get("target"))
            yield Example(pair.rule, home, *(_side(pair, side) for side in ("found", "silent")))


def _side(pair: Any, side: str) -> Run:
    row: Mapping[str, Any] = pair.row
    base = {**ENVIRONMENT, **({CONNECTIONS: ""} if row.get("unset") else {})}
    both = row.get("env", {}) if side == "found" or pair.table == BOTH_SIDES else {}
    environment = {**base, **both, **(row.get("accepted_env", {}) if side == "silent" else {})}
    words = (*shlex.split(pair.base), *shlex.split(getattr(pair, side)))
    entry = ENTRIES.get(row.get("base", ""), ENTRY)
    return Run(entry, words, _stated(environment), row.get("devices", 1), row.get("device", DEVICE))


def _edges(framework: Framework) -> Iterator[Example]:
    """The runs of a rule at one release form one list: the first silent one is the neighbour of all that are
    reported."""
    edges = _tests("edges")
    for path in edges.FILES:
        if path.parent.name != EDGES.get(framework.name):
            continue
        silent: dict[tuple[str, str], Run] = {}
        speaking = []
        for edge in edges.edges(path):
            run, key = _command(edge.case), (edge.rule, _home(framework, edge.case.target))
            if run is None:
                continue
            if edge.verdict == "silent":
                silent.setdefault(key, run)
            elif edge.verdict == "speaks" or (edge.verdict == "says" and edge.words not in ("", "?")):
                speaking.append((key, run))
        yield from (Example(*key, run, silent[key]) for key, run in speaking if silent.get(key, run) != run)


def _command(case: Any) -> Run | None:
    if not case.command:
        return None
    entry, *words = case.command
    environment = {CONNECTIONS: "", **case.environment}
    return Run(entry, tuple(words), _stated(environment), case.devices or 1, case.device or DEVICE)


def _stated(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in environment.items()))


def _home(framework: Framework, target: str | None) -> str:
    """The release of a target, "" if it names another framework."""
    name, _, release = (target or f"{framework.name}@{NEWEST}").rpartition("@")
    return release if name == framework.name else ""
