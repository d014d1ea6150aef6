"""Pairs of runs: one that a declared check finds, and its neighbour that it leaves alone (tests/constraints/*.yaml)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from preflight import schemas

FOLDER = Path(__file__).parent / "constraints"
PREFIXES = {
    "megatron-core": "megatron/",
    "megatron-training": "megatron/",
    "mindspeed": "",
    "mindformers-graph": "mindformers/",
    "mindformers-pynative": "pynative/",
}
"""The tables, and what stands before the ids in each."""
PREFIXES |= {path.stem: f"{path.stem.removeprefix('frontends-')}/" for path in sorted(FOLDER.glob("frontends-*.yaml"))}
"""Those of front ends: frontends-NAME.yaml has the checks of the front end NAME."""
Run = str | Mapping[str, Any]
"""The changes to a base: options, or values by dotted name."""


class Pair(NamedTuple):
    """A row of a table. row: as it is written, with base, devices, target and environment."""

    rule: str
    table: str
    row: Mapping[str, Any]
    found: Run
    silent: Run

    @property
    def base(self) -> Run:
        """The base of both runs."""
        bases: Mapping[str, Run] = read(self.table)["bases"]
        return bases[self.row.get("base") or next(iter(bases))]


def loaded(path: Path) -> Any:
    """A YAML file, read by libyaml if it is there, which is ten times faster."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def dumped(config: Mapping[str, Any]) -> str:
    """A config as YAML, written by libyaml if it is there."""
    return str(yaml.dump(config, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))


@cache
def read(table: str) -> Any:
    """A table as it is written."""
    return loaded(FOLDER / f"{table}.yaml")


def pairs() -> Iterator[Pair]:
    """Every pair of every table."""
    for table, prefix in PREFIXES.items():
        for row in read(table)["cases"]:
            sides = ("speaks", "silent") if "speaks" in row else ("rejected", "accepted")
            yield Pair(f"{prefix}{row['rule']}", table, row, row[sides[0]], row[sides[1]])


DEFECTS = {"megatron": "megatron-training", "mindspeed": "mindspeed", "mindspeed-llm": "mindspeed"}
DEFECTS |= {"mindformers": "mindformers-graph"}
DEFECTS |= {name: f"frontends-{name}" for name in ("verl", "slime", "nemo-rl", "ms-swift")}
"""Frameworks with known defects, and the table that has the bases of their runs."""


def defect_pairs() -> Iterator[Pair]:
    """A pair for each known defect, from its own row: at the last release that has it."""
    for framework, table in DEFECTS.items():
        for id, row in schemas.read(f"{framework}/defects")["defects"].items():
            devices = {"devices": 16} if table.startswith(("megatron", "mindspeed")) else {}
            example = {"target": row["in"][-1][1], **devices, **row["example"]}
            if table != "mindformers-graph":
                example["target"] = f"{framework}@{example['target'].rpartition('@')[2]}"
            yield Pair(f"{framework}/known-defect-{id}", table, example, example["run"], example.get("silent", ""))


def config(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A base with values put in by dotted name; None removes a key, and the text null is the null of YAML."""
    made = copy.deepcopy(dict(base))
    for name, value in changes.items():
        *path, last = name.split(".")
        place = made
        for part in path:
            place = place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = None if value == "null" else copy.deepcopy(value)
    return made
