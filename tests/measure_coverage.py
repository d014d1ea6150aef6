"""Measures for how many of the frameworks' own checks a rule reports a finding, on an example of each, and writes
schemas/coverage/measured.json.

    python tests/measure_coverage.py CATALOGUES LABELS

CATALOGUES is a folder with a list of checks per framework (JSON lines), LABELS one with labelled runs. A check counts
as covered if a rule that names its location reports a finding on the check's own labelled run or, without one, on any
labelled run or fixture of that version. A check that upstream makes a second time counts when the rule that reports the
fault at its first place names the second as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from automatic_checks import classified, write
from coverage_runs import HERE, Row, fixtures, graph_pairs, lines, megatron, near, said, shadowed, summed, tables

import preflight

OUT = HERE.parent / "schemas" / "coverage" / "measured.json"
AUTOMATIC: dict[str, dict[str, list[str]]] = {}


def measured(source: str, rows: list[Row], covered: list[bool], reasons: dict[str, str]) -> Row:
    """The shipped part of a catalogue: counts, and each uncovered check with the reason for leaving it out, if there is
    one."""
    missing = [f"{row['file']}:{row['line']}" for row, yes in zip(rows, covered, strict=True) if not yes]
    return {
        "source": source,
        "checks": len(rows),
        "covered": sum(covered),
        "not_covered": {place: reasons.get(place, "") for place in missing},
    }


def reasons(*names: str) -> dict[str, str]:
    """Place → why no rule names it, from the catalogues of the frameworks."""
    found: dict[str, str] = {}
    for name in names:
        kept = json.loads((OUT.parent / f"{name}.json").read_text(encoding="utf-8"))["left_out"]
        if isinstance(kept, dict):
            found |= kept
        else:
            found |= {
                f"{file}:{line}": entry["why"]
                for entry in kept
                for file, numbers in entry["checks"].items()
                for line in numbers
            }
    return found


def of_megatron(catalogues: Path, labels: Path) -> Row:
    rows = [row for row in lines(catalogues / "megatron.jsonl") if row["static"] and row["reachable_from_cli"] == "yes"]
    runs = {row["id"]: row for row in lines(labels / "megatron.jsonl")}
    pairs = summed(tables("megatron-training.yaml", "megatron@0.20.0"))
    pairs |= summed(tables("megatron-core.yaml", "megatron@0.20.0")) | summed(fixtures("megatron@0.20.0"))
    covered = [
        near(row, megatron(runs[row["example_case"]]) if row.get("example_case") in runs else pairs) for row in rows
    ]
    why = {
        f"{row['file']}:{row['line']}": reason
        for row in rows
        if (reason := reasons("megatron-core", "megatron-training").get(row["id"]))
    }
    return measured(
        "Megatron-LM d98e8a6 (core 0.20.0): checks that arguments decide and a command line reaches", rows, covered, why
    )


def of_mindspeed(catalogues: Path, labels: Path, name: str, source: str) -> Row:
    repo = {"mindspeed": "MindSpeed@", "mindspeed-llm": "MindSpeed-LLM@"}[name]
    every = [
        row for row in lines(catalogues / "mindspeed.jsonl") if row["source"] == "code" and row["repo"].startswith(repo)
    ]
    rows = [row for row in every if row["static"] and not row["legacy"] and not row["silently_fixes"]]
    places = {
        place
        for target in ("mindspeed", "mindspeed-llm")
        for place in summed(tables("mindspeed.yaml", target, devices=16))
    }
    for probe in lines(labels / "mindspeed-probes.jsonl"):
        for target in ("mindspeed", "mindspeed-llm"):
            case = probe["case"]
            argv = ["pretrain_gpt.py", *case["argv"]]
            places |= said(
                preflight.check_command(argv, world_size=case["world_size"], env=case.get("env") or {}, target=target)
            )
    for target in ("mindspeed", "mindspeed-llm"):
        places |= summed(fixtures(target))
    return measured(source, rows, [near(row, places) for row in rows], reasons(name))


def of_mindformers(catalogues: Path, labels: Path, version: str) -> Row:
    tag = f"v{version}"
    rows = [
        row
        for row in lines(catalogues / "mindformers.jsonl")
        if row["tag"] == tag and row["static"] and row.get("curated")
    ]
    target = f"mindformers@{version}"
    runs = [row for row in lines(labels / "mindformers.jsonl") if row["tag"] == tag and not row["accept"]]
    places = {
        place
        for row in runs
        for place in said(preflight.check_text(row["yaml"], world_size=row["world_size"], target=target))
    }
    places |= summed(graph_pairs(version)) | summed(fixtures(target)) | summed(shadowed(version))
    why = {
        place.partition(" ")[2]: reason
        for place, reason in reasons("mindformers").items()
        if place.startswith(f"{version} ")
    }
    found = measured(
        f"MindFormers {tag}: checks with a known condition that a config decides",
        rows,
        [near(row, places) for row in rows],
        why,
    )
    listed = [
        row
        for row in lines(catalogues / "mindformers.jsonl")
        if row.get("tag") == tag and row["static"] and not row.get("curated")
    ]
    AUTOMATIC[target] = classified(listed, [near(row, places) for row in listed])
    return {**found, "automatic": {kind: len(checks) for kind, checks in AUTOMATIC[target].items()}}


MEASURES: dict[str, Callable[[Path, Path], Row]] = {
    "megatron@0.20.0": of_megatron,
    "mindspeed@26.1.0": partial(
        of_mindspeed,
        name="mindspeed",
        source="MindSpeed 028de58: argument checks, without those of older branches",
    ),
    "mindspeed-llm@26.1.0": partial(
        of_mindspeed, name="mindspeed-llm", source="MindSpeed-LLM c77308a: argument checks"
    ),
    "mindformers@1.5.0": partial(of_mindformers, version="1.5.0"),
    "mindformers@1.7.0": partial(of_mindformers, version="1.7.0"),
    "mindformers@2.1.0": partial(of_mindformers, version="2.1.0"),
}
"""Framework@version → what measures its coverage from catalogues and labelled runs."""


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    catalogues, labels = map(Path, sys.argv[1:])
    found = {name: measure(catalogues, labels) for name, measure in MEASURES.items()}
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write(AUTOMATIC)
    for name, row in found.items():
        print(
            f"{name}: {row['covered']} of {row['checks']}, "
            f"{sum(not why for why in row['not_covered'].values())} without a reason"
        )
