"""Ranges of step times from residuals of published runs: `python benchmarks/step_ranges.py [--write]`.

Each cause gets the two factors between which nine of ten measured times lie; every family of models weighs the same. A
family is then left out in turn, the factors are fitted to the others, and the runs inside their ranges are counted:
both ends of each cause are moved by one factor until the promised share is inside. The factors of older and newer
software (schemas/step_time_eras.json) are also fitted without the family. --write: both files and the tables in
docs/step-time.md.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import step_time
from step_time import DATA, PUBLISHED, Row, unseen, unseen_scripts

import preflight
from preflight.memory.inputs_from_plan import shape
from preflight.run.unmodelled_features import Unmodelled
from preflight.steptime.achieved_rates import machine
from preflight.steptime.error_ranges import (
    DENSE,
    EXPERTS,
    FACTORS,
    MEASURED,
    SINKS,
    STATED,
    Era,
    names,
    on_a_good_network,
)
from preflight.steptime.estimate import completed, timed
from preflight.steptime.layout_and_plan_traits import traits

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "schemas" / "step_time_ranges.json"
ERAS = ROOT / "schemas" / "step_time_eras.json"
TIMES = ((0.0, 25.09), (25.1, 26.05), (26.06, 99.12))
"""Containers between which NVIDIA's tables differ."""
LAST = 99
DIFFERS, SURELY = 0.05, 1.65
LEAST_ALONE = 6
"""The minimum difference of an era, and its minimum distance from no difference in standard errors of its mean."""
SOURCES = {
    25.09: "NVIDIA/dgxc-benchmarking v25.05.05, containers 25.04",
    26.05: "NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md, containers 25.11 to 26.04",
    99.12: "NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md, containers 26.06 and 26.08",
}
PAGE = ROOT / "docs" / "step-time.md"
MARKS = ("<!-- ranges -->", "<!-- end of ranges -->")
PROMISED = 0.90
STEPS = [0.7 + 0.02 * n for n in range(116)]
LEAST, LEAST_SPECIAL = 20, 8
"""The number of runs that a kind of model on a device, or a special feature, needs for a separate range; with fewer,
the range is that of the kind on any device, because the largest of a few residuals is not a percentile."""


class Software(NamedTuple):
    """The facts that determine the software of a run: its device, its kind of model, its container."""

    device: str
    kind: str
    container: float


class Residual(NamedTuple):
    """Measured over estimated seconds of a run, as a logarithm, with its possible causes. relief: the logarithm of the
    gain from a good network; stated: that of the possible effect of options without a term, if no era includes it."""

    family: str
    model: str
    causes: tuple[str, ...]
    error: float
    relief: float = 0.0
    software: Software | None = None
    stated: float = 0.0


def every_row() -> Iterator[Row]:
    """Every available published run, once."""
    seen: set[tuple[str, float]] = set()
    for row in (*published_rows(), *unseen(), *unseen_scripts()):
        if row.group != "unseen-moe-bare" and (row.name, row.seconds) not in seen:
            seen.add((row.name, row.seconds))
            yield row


def residuals(rows: Iterable[Row]) -> Iterator[Residual]:
    """The residuals of every run, with any software."""
    for row in rows:
        row = row._replace(where=row.where._replace(era=1.0))
        found = row.estimate()
        better = on_a_good_network(row.where)
        relief = math.log(float(timed(row.numbers, row.how, better).step.seconds) / found) if better else 0.0
        causes = names(row.numbers, row.how, row.where)
        software = Software(row.where.device.name, row.kind, row.container) if row.container is not None else None
        error = math.log(row.seconds / found)
        stated = math.log(FACTORS[Unmodelled.ATTENTION_SINKS][1]) if row.kind == SINKS else 0.0
        yield Residual(family_of(row), model_of(row), causes, error, min(relief, 0.0), software, stated)
        if better:
            causes = names(row.numbers, row.how, better)
            yield Residual(family_of(row), f"{model_of(row)}{STATED}", causes, error - relief)


def learnt_eras(found: Iterable[Residual]) -> list[Era]:
    """The factors of containers with runs that differ from the estimate: for mixtures of experts if two families of
    models were measured, because they differ more than dense ones; for dense models one family with many runs is
    enough."""
    by: dict[tuple[str, str, tuple[float, float]], list[Residual]] = defaultdict(list)
    for one in found:
        if one.software is not None:
            device, kind, container = one.software
            by[device, kind, next(time for time in TIMES if time[0] <= container <= time[1])].append(one)
    eras = []
    for (device, kind, (since, until)), runs in sorted(by.items()):
        errors = [one.error for one in runs]
        alone = len({one.family for one in runs}) < 2
        if len(errors) < 2 or (alone and (kind == EXPERTS or (kind == DENSE and len(errors) < LEAST_ALONE))):
            continue
        mean, spread = statistics.mean(errors), statistics.stdev(errors)
        if abs(mean) >= max(DIFFERS, SURELY * spread / math.sqrt(len(errors))):
            eras.append(Era(device, kind, since, until, round(math.exp(mean), 3), len(errors), SOURCES[until]))
    return eras


def in_their_eras(found: Iterable[Residual], eras: Sequence[Era]) -> list[Residual]:
    """Residuals of estimates that know the software of their runs."""
    told = []
    for one in found:
        if one.software is not None:
            device, kind, container = one.software
            own = (era for era in eras if (era.device, era.kind) == (device, kind))
            factor = next((era.factor for era in own if era.since <= container <= era.until), None)
            if factor is not None:
                one = one._replace(error=one.error - math.log(factor), stated=0.0)
        told.append(one)
    return told


def published_rows() -> Iterator[Row]:
    """Every timed row of the file that is available, with those that are evaluated separately."""
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
    """Runs that are left out together: a model at any run size, or the model of a sweep."""
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
    """One model on one device: the runs that a measured run of the user represents."""
    s = row.numbers
    return f"{row.where.device.name} {s.hidden} {sum(map(sum, s.stages))} {s.heads} {s.sequence} {row.how.recipe}"


def quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """The quantile of weighted values."""
    whole, sum_ = sum(weight for _, weight in pairs), 0.0
    for value, weight in sorted(pairs):
        sum_ += weight
        if sum_ >= share * whole - 1e-12:
            return value
    return max(value for value, _ in pairs)


def ends(found: Sequence[Residual], wider: float) -> tuple[float, float]:
    """The ends between which nine of ten residuals are, with equal weight per family; both ends are moved by a
    factor."""
    sizes: dict[str, int] = defaultdict(int)
    for one in found:
        sizes[one.family] += 1
    pairs = [(one.error, 1 / math.sqrt(sizes[one.family])) for one in found]
    tail = (1 - PROMISED) / 2
    return min(quantile(pairs, tail), 0.0) * wider, max(quantile(pairs, 1 - tail), 0.0) * wider


def grouped(found: Iterable[Residual]) -> dict[str, list[Residual]]:
    """Residuals by cause."""
    by: dict[str, list[Residual]] = defaultdict(list)
    for one in found:
        kind, *special = one.causes
        routed = kind.startswith("experts")
        if kind.endswith(STATED):
            by[kind].append(one)
            continue
        by["experts" if routed else "a dense model"].append(one)
        # special features are visible if the wider range of experts does not hide them
        for name in [kind] if routed or not special else special:
            by[name].append(one)
    return {
        name: rows for name, rows in by.items() if len(rows) >= (LEAST if " on " in name else LEAST_SPECIAL)
    }  # fmt: skip


Widths = dict[str, float]
"""By cause: the distance of the ends of its range relative to that of the residuals."""


def learnt(found: Iterable[Residual], widths: Widths) -> dict[str, tuple[float, float, int]]:
    """Ends by cause, and how many runs they rest on."""
    rows = {name: rows for name, rows in grouped(found).items() if widths.get(name)}
    return {name: (*ends(runs, widths[name]), len(runs)) for name, runs in rows.items()}


Views = dict[str, tuple[list[Residual], list[Residual]]]
"""For each family: the residuals of the others and its own, with eras fitted to the others."""


def widths_of(found: Sequence[Residual]) -> Widths:
    """The smallest factor with which the ranges of other families contain the promised share: for each kind of run
    separately, then for special features in addition to the kind. A kind that needs more than `MOST` has too few
    families to tell."""
    views = {name: view_without(found, name) for name in {one.family for one in found}}
    kinds = [name for name in grouped(found) if " on " in name or name in GENERAL]
    widths = {name: _width(name, views) for name in kinds}
    widths = {name: width for name, width in widths.items() if width <= MOST or name in GENERAL}
    for name in grouped(found).keys() - set(kinds):
        widths[name] = _width_beside(name, views, widths)
    return widths


GENERAL = ("a dense model", "experts")
MOST = 2.5


def _width(cause: str, views: Views) -> float:
    """The factor of a kind of run."""
    pairs = [(grouped(others).get(cause), grouped_all(own).get(cause)) for others, own in views.values()]
    both = {str(at): (rest, left) for at, (rest, left) in enumerate(pairs) if rest and left}
    for wider in STEPS:
        told = {}
        for at, (rest, left) in both.items():
            low, high = ends(rest, wider)
            told[at] = [low + one.relief <= one.error <= high + one.stated for one in left]
        if not told or held(told) >= PROMISED:
            return wider if told else 1.0
    return math.inf


def _width_beside(cause: str, views: Views, widths: Widths) -> float:
    """The factor of a special feature: the widening in addition to the range of the kind."""
    for wider in (0.0, *STEPS):
        told = {}
        for name, (others, own) in views.items():
            by = learnt(others, {**widths, cause: wider})
            if left := [one for one in own if cause in one.causes]:
                told[name] = [inside(one, by) for one in left]
        if not told or held(told) >= PROMISED:
            return wider
    return STEPS[-1]


def grouped_all(found: Iterable[Residual]) -> dict[str, list[Residual]]:
    """Residuals under every cause that they have, few or many."""
    by: dict[str, list[Residual]] = defaultdict(list)
    for one in found:
        for name in (*one.causes, "experts" if one.causes[0].startswith("experts") else "a dense model"):
            by[name].append(one)
    return by


def view_without(found: Sequence[Residual], family: str) -> tuple[list[Residual], list[Residual]]:
    """The residuals of the others and of a family, in eras that are learnt from the others."""
    others = [one for one in found if one.family != family]
    eras = learnt_eras(others)
    return in_their_eras(others, eras), in_their_eras((one for one in found if one.family == family), eras)


def inside(one: Residual, by: dict[str, tuple[float, float, int]]) -> bool:
    """Whether a run is in the range of its causes."""
    kind, *special = one.causes
    general = "experts" if kind.startswith("experts") else "a dense model"
    rows = [by.get(kind) or by[general], *(by[name] for name in special if name in by)]
    return min(row[0] for row in rows) + one.relief <= one.error <= max(row[1] for row in rows) + one.stated


def left_out(found: Sequence[Residual], widths: Widths) -> dict[str, list[bool]]:
    """For each family: its runs that are in the ranges fitted without it, including eras."""
    told: dict[str, list[bool]] = {}
    for name in sorted({one.family for one in found}):
        others, own = view_without(found, name)
        by = learnt(others, widths)
        told[name] = [inside(one, by) for one in own]
    return told


def held(told: dict[str, list[bool]]) -> float:
    """The share of runs inside, between that of all runs and that of families, of which some have few runs."""
    runs = [one for rows in told.values() for one in rows]
    return min(sum(runs) / len(runs), sum(sum(rows) / len(rows) for rows in told.values()) / len(told))


def after_a_measured_run(found: Sequence[Residual]) -> tuple[float, float, int]:
    """The difference between two runs of one model on one kind of device, once one has been measured."""
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


def table(found: Sequence[Residual], widths: Widths) -> dict[str, tuple[float, float, int]]:
    """Every cause by name."""
    found = in_their_eras(found, learnt_eras(found))
    return {**dict(sorted(learnt(found, widths).items())), MEASURED: after_a_measured_run(found)}


def written(by: dict[str, tuple[float, float, int]]) -> str:
    """The file, one cause a line."""
    rows = ",\n".join(
        json.dumps({"name": name, "low": round(math.exp(a), 3), "high": round(math.exp(b), 3), "runs": n})
        for name, (a, b, n) in by.items()
    )
    head = {
        "command": "python benchmarks/step_ranges.py --write",
        "unit": "low and high: measured over estimated seconds; nine of ten runs lie between them",
        "promised": PROMISED,
    }  # fmt: skip
    return json.dumps(head)[:-1] + ',\n"causes": [\n' + rows + "\n]}\n"


def written_eras(eras: Iterable[Era]) -> str:
    """The file of eras, one a line."""
    head = {"command": "python benchmarks/step_ranges.py --write", "unit": "factor: measured over estimated seconds"}
    rows = ",\n".join(json.dumps(era._asdict()) for era in eras)
    return json.dumps(head)[:-1] + ',\n"eras": [\n' + rows + "\n]}\n"


def page(found: Sequence[Residual], by: dict[str, tuple[float, float, int]], widths: Widths) -> str:
    """The tables as Markdown."""
    lines = ["| kind of run | runs | measured ÷ estimated, nine of ten | widening factor |"]
    lines.append("| --- | --- | --- | --- |")
    lines += [
        f"| {name} | {n} | {math.exp(a):.2f} to {math.exp(b):.2f} | {widths.get(name, 1.0):.2f} |"
        for name, (a, b, n) in by.items()
    ]
    lines += ["", "| device | kind of model | containers | runs | measured ÷ estimated |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [f"| {e.device} | {e.kind} | {_time(e)} | {e.runs} | {e.factor:.2f} |" for e in learnt_eras(found)]
    told = left_out(found, widths)
    lines += ["", "| held-out family | runs | within the range fitted to the other families |"]
    lines += ["| --- | --- | --- |"]
    lines += [f"| {name} | {len(rows)} | {sum(rows) / len(rows):.0%} |" for name, rows in told.items()]
    runs = [one for rows in told.values() for one in rows]
    mean = sum(sum(rows) / len(rows) for rows in told.values()) / len(told)
    lines.append(
        f"\n{sum(runs) / len(runs):.0%} of the {len(runs)} runs are within the range that was fitted without their "
        f"family. The mean over the {len(told)} families is {mean:.0%}."
    )
    return "\n".join(lines) + "\n"


def _time(era: Era) -> str:
    if not era.since:
        return f"up to {era.until:.2f}"
    return f"from {era.since:.2f}" if era.until > LAST else f"{era.since:.2f} to {era.until:.2f}"


def main(arguments: Iterable[str]) -> None:
    """Print the ranges, and write them if requested."""
    found = list(residuals(every_row()))
    eras = learnt_eras(found)
    widths = widths_of(found)
    by = table(found, widths)
    text = page(found, by, widths)
    print(text)
    if "--write" in arguments:
        TARGET.write_text(written(by), encoding="utf-8")
        ERAS.write_text(written_eras(eras), encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{rest.partition(MARKS[1])[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
