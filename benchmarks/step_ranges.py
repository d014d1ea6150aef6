"""Ranges of step times from residuals of published runs: `python benchmarks/step_ranges.py [--write]`.

Each cause gets the two factors between which nine of ten measured times lie; every family of models weighs the same.
A family is then left out in turn, the factors are learnt from the others, and it is counted how many of its runs lie
inside: one factor widens all ranges until as many do as are promised. --write: schemas/step_time_ranges.json and the
table in docs/step-time.md.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import step_time
from step_time import DATA, PUBLISHED, Row, unseen, unseen_scripts

import preflight
from preflight.memory.shape import shape
from preflight.steptime.estimate import completed, timed
from preflight.steptime.machine import machine
from preflight.steptime.ranges import MEASURED, STATED, names, on_a_good_network
from preflight.steptime.traits import traits

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "schemas" / "step_time_ranges.json"
PAGE = ROOT / "docs" / "step-time.md"
MARKS = ("<!-- ranges -->", "<!-- end of ranges -->")
PROMISED = 0.90
STEPS = [1 + 0.02 * n for n in range(101)]
LEAST, LEAST_SPECIAL = 20, 8
"""Runs that a kind of model on a device needs for a range of its own, and what is special about a run; with fewer, the
range is that of the kind on any device: the largest of a few residuals is no twentieth of them."""


class Residual(NamedTuple):
    """Measured over estimated seconds of a run, as a logarithm, with what may drive it. relief: the same logarithm of
    what a good network would spare."""

    family: str
    model: str
    causes: tuple[str, ...]
    error: float
    relief: float = 0.0


def residuals() -> Iterator[Residual]:
    """Of every published run at hand."""
    seen: set[tuple[str, float]] = set()
    for row in (*published_rows(), *unseen(), *unseen_scripts()):
        if row.group == "unseen-moe-bare" or (row.name, row.seconds) in seen:
            continue
        seen.add((row.name, row.seconds))
        found = row.estimate()
        better = on_a_good_network(row.where)
        relief = math.log(float(timed(row.numbers, row.how, better).step.seconds) / found) if better else 0.0
        causes = names(row.numbers, row.how, row.where)
        yield Residual(family_of(row), model_of(row), causes, math.log(row.seconds / found), min(relief, 0.0))
        if better:
            causes = names(row.numbers, row.how, better)
            error = math.log(row.seconds / found) - relief
            yield Residual(family_of(row), f"{model_of(row)}{STATED}", causes, error)


def published_rows() -> Iterator[Row]:
    """Every timed row of the file that is at hand, with those that are judged apart."""
    for line in gzip.decompress(DATA.read_bytes()).decode().splitlines():
        row = json.loads(line)
        if row.get("oom"):
            continue
        if row["kind"] == "published":
            PUBLISHED[row["id"][:2]] = (row["repo"], row["tag"], row["target"])
        job = step_time._job(row)
        if job is None or preflight.estimate_step_time(job).seconds is None:
            continue
        plan = completed(job.plan)[0]
        assert job.cluster.device is not None
        numbers = shape(plan, job.cluster.device.architecture)
        group = row.get("group") or step_time._group(row)
        yield Row(
            row["id"], group, "", row["sweep"] or "", row["seconds"], numbers, traits(plan, numbers),
            machine(job.cluster),
        )  # fmt: skip


def family_of(row: Row) -> str:
    """What is left out together: a model at any size of run, or a sweep's model."""
    name = row.name.lower()
    if found := re.match(r"aa:(\d+b)", name):
        return f"A100 sweep, {found[1]}"
    if "bloom" in name:
        return f"BLOOM, hidden size {row.numbers.hidden}"
    found = re.search(
        r"(llama|nemotron|gpt-?oss|gpt|mixtral|qwen|deepseek|grok|baichuan|gemma|glm|yi|bloom|intern|aquila|mistral)",
        name,
    )
    return found[1].replace("-", "") if found else re.split(r"[/ ]", name)[-1]


def model_of(row: Row) -> str:
    """One model on one device: what a measured run of the user's own tells of."""
    s = row.numbers
    return f"{row.where.device.name} {s.hidden} {sum(map(sum, s.stages))} {s.heads} {s.sequence} {row.how.recipe}"


def quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """Of values with weights."""
    whole, sum_ = sum(weight for _, weight in pairs), 0.0
    for value, weight in sorted(pairs):
        sum_ += weight
        if sum_ >= share * whole - 1e-12:
            return value
    return max(value for value, _ in pairs)


def ends(found: Sequence[Residual], wider: float) -> tuple[float, float]:
    """Between which nine of ten residuals lie, each family of the same weight, both ends so many times as far off."""
    sizes: dict[str, int] = defaultdict(int)
    for one in found:
        sizes[one.family] += 1
    pairs = [(one.error, 1 / math.sqrt(sizes[one.family])) for one in found]
    tail = (1 - PROMISED) / 2
    return min(quantile(pairs, tail), 0.0) * wider, max(quantile(pairs, 1 - tail), 0.0) * wider


def learnt(found: Sequence[Residual], wider: float) -> dict[str, tuple[float, float, int]]:
    """Ends by cause, and how many runs they rest on."""
    by: dict[str, list[Residual]] = defaultdict(list)
    for one in found:
        kind, *special = one.causes
        routed = kind.startswith("experts")
        if kind.endswith(STATED):
            by[kind].append(one)
            continue
        by["experts" if routed else "a dense model"].append(one)
        # what is special shows where experts, whose range is wider, do not hide it
        for name in [kind] if routed or not special else special:
            by[name].append(one)
    return {
        name: (*ends(rows, wider), len(rows))
        for name, rows in by.items() if len(rows) >= (LEAST if " on " in name else LEAST_SPECIAL)
    }  # fmt: skip


def inside(one: Residual, by: dict[str, tuple[float, float, int]]) -> bool:
    """Whether a run lies in the range that its causes give it."""
    kind, *special = one.causes
    general = "experts" if kind.startswith("experts") else "a dense model"
    rows = [by.get(name) or by[general] for name in (kind, *special)]
    return min(row[0] for row in rows) + one.relief <= one.error <= max(row[1] for row in rows)


def left_out(found: Sequence[Residual], wider: float) -> dict[str, list[bool]]:
    """Of each family: which of its runs lie in the ranges that were learnt without it."""
    told: dict[str, list[bool]] = {}
    for name in sorted({one.family for one in found}):
        by = learnt([one for one in found if one.family != name], wider)
        told[name] = [inside(one, by) for one in found if one.family == name]
    return told


def held(told: dict[str, list[bool]]) -> float:
    """The share of runs inside, between that of all runs and that of families, of which some have few runs."""
    runs = [one for rows in told.values() for one in rows]
    return min(sum(runs) / len(runs), sum(sum(rows) / len(rows) for rows in told.values()) / len(told))


def after_a_measured_run(found: Sequence[Residual]) -> tuple[float, float, int]:
    """What two runs of one model on one kind of device differ by, once one has been measured."""
    by: dict[str, list[float]] = defaultdict(list)
    for one in found:
        if not one.model.endswith(STATED):
            by[one.model].append(one.error)
    pairs = [
        (other - one, 1 / len(rows) ** 1.5)
        for rows in by.values() if len(rows) > 1
        for at, one in enumerate(rows) for place, other in enumerate(rows) if at != place
    ]  # fmt: skip
    tail = (1 - PROMISED) / 2
    return quantile(pairs, tail), quantile(pairs, 1 - tail), sum(len(rows) for rows in by.values() if len(rows) > 1)


def table(found: Sequence[Residual], wider: float) -> dict[str, tuple[float, float, int]]:
    """Every cause by name."""
    return {**dict(sorted(learnt(found, wider).items())), MEASURED: after_a_measured_run(found)}


def written(by: dict[str, tuple[float, float, int]], wider: float) -> str:
    """The file, one cause a line."""
    rows = ",\n".join(
        json.dumps({"name": name, "low": round(math.exp(a), 3), "high": round(math.exp(b), 3), "runs": n})
        for name, (a, b, n) in by.items()
    )
    head = {
        "command": "python benchmarks/step_ranges.py --write",
        "unit": "low and high: measured over estimated seconds; nine of ten runs lie between them",
        "promised": PROMISED, "widened": round(wider, 2),
    }  # fmt: skip
    return json.dumps(head)[:-1] + ',\n"causes": [\n' + rows + "\n]}\n"


def page(found: Sequence[Residual], by: dict[str, tuple[float, float, int]], wider: float) -> str:
    """The table as Markdown."""
    lines = ["| what drives it | runs | measured ÷ estimated, nine of ten |", "| --- | --- | --- |"]
    lines += [f"| {name} | {n} | {math.exp(a):.2f} to {math.exp(b):.2f} |" for name, (a, b, n) in by.items()]
    told = left_out(found, wider)
    lines += ["", "| family left out | runs | inside the range that the others give |", "| --- | --- | --- |"]
    lines += [f"| {name} | {len(rows)} | {sum(rows) / len(rows):.0%} |" for name, rows in told.items()]
    runs = [one for rows in told.values() for one in rows]
    mean = sum(sum(rows) / len(rows) for rows in told.values()) / len(told)
    lines.append(
        f"\nOf {len(runs)} runs {sum(runs) / len(runs):.0%} lie inside a range that was fitted without their family; "
        f"the mean over the {len(told)} families is {mean:.0%}. Ranges are {wider:.2f} times as wide as the residuals."
    )
    return "\n".join(lines) + "\n"


def main(arguments: Iterable[str]) -> None:
    """Print the ranges, and write them where that is asked."""
    found = list(residuals())
    wider = next((w for w in STEPS if held(left_out(found, w)) >= PROMISED), STEPS[-1])
    by = table(found, wider)
    text = page(found, by, wider)
    print(text)
    if "--write" in arguments:
        TARGET.write_text(written(by, wider), encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{rest.partition(MARKS[1])[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
