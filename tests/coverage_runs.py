"""The upstream places reached by the runs of the tests and of the labelled rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairs import config, dumped, loaded, read

import preflight
from preflight.plugins.manager import load as load_plugins
from preflight.report.upstream_check_coverage import mentioned
from preflight.testing import load

HERE = Path(__file__).parent
NEAR = 3
TABLES = HERE / "constraints"
DEVICES = {7: "v100", 9: "h100", 10: "gb200"}
Row = dict[str, Any]
Places = set[tuple[str, int]]


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
    table = loaded(TABLES / name)
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
    return dumped(config(read("mindformers-graph")["bases"][base], changes))


def graph_pairs(version: str) -> Iterator[Places]:
    for case in read("mindformers-graph")["cases"]:
        text = graph(case["rejected"], case.get("base", "llama"))
        yield said(preflight.check_text(text, world_size=case.get("devices", 8), target=f"mindformers@{version}"))


def shadowed(version: str) -> Iterator[Places]:
    """Checks that are second to detect a fault: the rule for the first location reports it and also names this one."""
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
