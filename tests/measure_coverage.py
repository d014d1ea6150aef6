"""Measures how many of the frameworks' own checks a rule speaks for, on an example of each,
and writes schemas/coverage/measured.json.

    python tests/measure_coverage.py CATALOGUES LABELS

CATALOGUES is a folder with a list of checks per framework (JSON lines), LABELS one with labelled runs. A check counts
as covered when a rule that names its place speaks on the check's own labelled run; where there is none, on any labelled
run or fixture of that version. A check that upstream makes a second time counts when the rule that reports the fault at
its first place names the second as well.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from automatic_checks import classified, write
from pairs import config, read

import preflight
from preflight.plugins.manager import load as load_plugins
from preflight.report.coverage import mentioned
from preflight.testing import load

HERE = Path(__file__).parent
OUT = HERE.parent / "schemas" / "coverage" / "measured.json"
NEAR = 3
TABLES = HERE / "constraints"
DEVICES = {7: "v100", 9: "h100", 10: "gb200"}
Row = dict[str, Any]
Places = set[tuple[str, int]]
AUTOMATIC: dict[str, dict[str, list[str]]] = {}


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def said(report: preflight.Report) -> Places:
    """The places upstream that the findings of a report name."""
    places = (f.upstream.rpartition(":") for f in report.findings if f.upstream)
    return {(file, int(line)) for file, _, line in places if line.isdigit()}


def megatron(row: Row) -> Places:
    argv = ["pretrain_hybrid.py" if row.get("entry") == "hybrid" else "pretrain_gpt.py", *row["args"]]
    return said(
        preflight.check_command(
            argv,
            world_size=row["world_size"],
            env=row["env"] or {},
            device=DEVICES.get(row["arch"]),
            target="megatron@0.20.0",
        )
    )


def tables(name: str, target: str, devices: int = 1) -> Iterator[Places]:
    """The refused side of each pair of a table of command lines, read as the target that is measured."""
    table = yaml.safe_load((TABLES / name).read_text(encoding="utf-8"))
    for case in table["cases"]:
        entry = "pretrain_hybrid.py" if case.get("base") == "hybrid" else "pretrain_gpt.py"
        argv = [
            entry,
            *shlex.split(table["bases"][case.get("base", "dense")]),
            *shlex.split(case.get("rejected") or case.get("speaks") or ""),
        ]
        env = {} if case.get("unset") else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        told: dict[str, Any] = {
            "world_size": case.get("devices", devices),
            "device": case.get("device"),
            "target": target,
        }
        yield said(preflight.check_command(argv, env={**env, **case.get("env", {})}, **told))


def fixtures(wanted: str) -> Iterator[Places]:
    """Every fixture of a rule that is a text or a command of its own, read as the target that is measured."""
    for path in sorted((HERE / "rules").rglob("*.yaml")):
        for case in load(path):
            if case.files or (case.target and not wanted.startswith(case.target.partition("@")[0])):
                continue
            told: dict[str, Any] = {"world_size": case.devices, "device": case.device, "target": wanted}
            if case.command:
                argv = shlex.split(case.command) if isinstance(case.command, str) else case.command
                yield said(preflight.check_command(argv, env=dict(case.environment), **told))
            elif case.text:
                yield said(preflight.check_text(case.text, name=case.file, **told))


def graph(changes: Row, base: str) -> str:
    return yaml.safe_dump(config(read("mindformers-graph")["bases"][base], changes))


def graph_pairs(version: str) -> Iterator[Places]:
    for case in read("mindformers-graph")["cases"]:
        text = graph(case["rejected"], case.get("base", "llama"))
        yield said(preflight.check_text(text, world_size=case.get("devices", 8), target=f"mindformers@{version}"))


def shadowed(version: str) -> Iterator[Places]:
    """Checks that come second on the same fault: the rule that reports the first place says it,
    and names this one too."""
    named = {rule.id: mentioned(rule) for rule in load_plugins().rules(None)}
    for case in read("mindformers-shadowed"):
        if version not in case["places"]:
            continue
        file, _, line = f"mindformers/{case['places'][version]}".rpartition(":")
        told: Row = {"world_size": case.get("devices", 8), "target": f"mindformers@{version}"}
        report = preflight.check_text(graph(case["change"], case.get("base", "llama")), **told)
        said = {f.rule for f in report.findings if f.severity is preflight.Severity.ERROR}
        near = (place for place in named[case["rule"]] if place[0] == file and abs(place[1] - int(line)) <= NEAR)
        yield {place for place in near if case["rule"] in said}


def near(row: Row, places: Places) -> bool:
    return any((row["file"], row["line"] + off) in places for off in range(-NEAR, NEAR + 1))


def summed(found: Iterator[Places]) -> Places:
    return {place for places in found for place in places}


def measured(source: str, rows: list[Row], covered: list[bool], reasons: dict[str, str]) -> Row:
    """What is shipped of a catalogue: counts, and each check that is not covered with the reason it is left out,
    if there is one."""
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


def measure(catalogues: Path, labels: Path) -> dict[str, Row]:
    """Framework@version → what was measured."""
    return {
        "megatron@0.20.0": of_megatron(catalogues, labels),
        "mindspeed@26.1.0": of_mindspeed(
            catalogues, labels, "mindspeed", "MindSpeed 028de58: checks of arguments that refuse, not of older branches"
        ),
        "mindspeed-llm@26.1.0": of_mindspeed(
            catalogues, labels, "mindspeed-llm", "MindSpeed-LLM c77308a: checks of arguments that refuse"
        ),
        **{
            f"mindformers@{version}": of_mindformers(catalogues, labels, version)
            for version in ("1.5.0", "1.7.0", "2.1.0")
        },
    }


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    found = measure(Path(sys.argv[1]), Path(sys.argv[2]))
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write(AUTOMATIC)
    for name, row in found.items():
        print(
            f"{name}: {row['covered']} of {row['checks']}, "
            f"{sum(not why for why in row['not_covered'].values())} without a reason"
        )
