"""The accuracy of estimated step times for published runs: `python benchmarks/step_time.py [--fit] [--write PAGE]`.

--fit: also fit the constants without each family of models in turn, and test them on that family (takes minutes).
--write: put the result into a page, between its two marks.
"""

from __future__ import annotations

import ast
import gzip
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bridge import EARLIER, Published, published

import preflight
from preflight.memory.inputs_from_plan import Shape, shape
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Plan
from preflight.source.record import replace
from preflight.steptime.achieved_rates import RATES, Machine, Rates, family, machine
from preflight.steptime.error_ranges import kind_of, untimed
from preflight.steptime.estimate import completed, estimate, machine_of_era, timed
from preflight.steptime.layout_and_plan_traits import Traits, traits

SHARED = next((up / "shared" for up in Path(__file__).parents if (up / "shared").is_dir()), Path("shared"))
DATA = SHARED / "data" / "steptime.jsonl.gz"
MIRRORS = next((up / ".mirror" for up in Path(__file__).parents if (up / ".mirror").is_dir()), Path(".mirror"))
SCRIPTS = Path(__file__).with_name("mindspeed.tsv")
PUBLISHED = {
    "mf": ("mindspore-lab+mindformers", "v1.5.0", "mindformers@1.5.0"),
    "ms": ("Ascend+MindSpeed-LLM", "v1.0.RC2.0", "mindspeed-llm@1.0.0"),
}
GROUPS = {
    "h100": ("NVIDIA's recipes on H100, not used for the fit", 0.08),
    "h100-moe": ("the same source, mixture of experts", 0.12),
    "blackwell": ("NVIDIA on B200, 25.02 containers, not used for the fit", 0.15),
    "bloom": ("BLOOM's layout search on A100", 0.10),
    "ascend": ("MindSpeed-LLM's RC3 tables on 910B, not used for the fit", 0.12),
    "ascend-moe": ("the same source, mixture of experts", 0.20),
    "nv-16bit": ("NVIDIA, 16-bit, dense", 0.12),
    "nv-fp8": ("NVIDIA, FP8, dense", 0.12),
    "nv-moe": ("NVIDIA, mixture of experts", 0.20),
    "unseen-dense": ("NVIDIA, FP8 and FP4, dense, not used for the fit", 0.12),
    "unseen-moe": (
        "NVIDIA's recipes for mixture-of-experts models; the software factors are fitted to these runs",
        0.20,
    ),
    "unseen-moe-bare": ("the same rows, with only the options that the tables state", math.inf),
    "unseen-earlier": ("NVIDIA, spring 2025 containers; the software factors are fitted to these runs", math.inf),
    "aa": ("A100 sweep of another framework", 0.12),
    "unseen-ms": ("MindSpeed-LLM on Ascend 910B, not used for the fit", 0.12),
    "mf": ("MindFormers on Ascend 910B", 0.12),
    "ms": ("MindSpeed-LLM on Ascend 910B", 0.12),
}
# fmt: off
FITTED = {
    "ampere": ("matmul", "attention", "attention_back", "memory", "link", "reduction", "crowd", "neighbour", "gap",
        "coupling"),
    "nvidia": ("matmul", "fp8", "scaled", "attention", "attention_back", "memory", "link", "network", "routed_gap",
        "exchange"),
    "ascend": ("matmul", "attention", "attention_back", "memory", "link", "hidden", "gap", "routed_gap"),
}
# fmt: on
PULL = 0.5
"""The penalty for a constant that differs from its start by a factor of e; equal to an error of 50 %."""
MARKS = ("<!-- figures -->", "<!-- end of figures -->")


class Row(NamedTuple):
    """A measured run, read once. span: the ends of its range in seconds."""

    name: str
    group: str
    model: str
    sweep: str
    seconds: float
    numbers: Shape
    how: Traits
    where: Machine
    container: float | None = None
    kind: str = ""
    span: tuple[float, float] = (0.0, math.inf)

    def estimate(self, rates: Mapping[str, Rates] = RATES) -> float:
        """Seconds of a step by these constants."""
        where = self.where._replace(rates=rates[family(self.where.device)])
        return float(timed(self.numbers, self.how, where).step.seconds)


def rows() -> Iterator[Row]:
    """The timed rows of the file that are available and have an estimate."""
    for line in gzip.decompress(DATA.read_bytes()).decode().splitlines():
        row = json.loads(line)
        # rows of a separate family are rated separately, not in these groups
        job = None if row.get("oom") or row.get("group") else _job(row)
        if job is None or preflight.estimate_step_time(job).seconds is None:
            continue
        plan = completed(job.plan)[0]
        assert job.cluster.device is not None
        numbers = shape(plan, job.cluster.device.architecture)
        how = traits(plan, numbers)
        name = row["id"]
        yield Row(
            name, _group(row), _model(name), row["sweep"] or "", row["seconds"], numbers, how, machine(job.cluster),
            span=_span(job.plan, job.cluster),
        )  # fmt: skip


def further() -> Iterator[Row]:
    """The rows of the file that are rated separately."""
    for line in gzip.decompress(DATA.read_bytes()).decode().splitlines():
        row = json.loads(line)
        if row.get("oom") or not row.get("group"):
            continue
        if row["kind"] == "published":
            PUBLISHED[row["id"][:2]] = (row["repo"], row["tag"], row["target"])
        job = _job(row)
        if job is None or preflight.estimate_step_time(job).seconds is None:
            continue
        plan = completed(job.plan)[0]
        assert job.cluster.device is not None
        numbers = shape(plan, job.cluster.device.architecture)
        yield Row(
            row["id"], row["group"], "", "", row["seconds"], numbers, traits(plan, numbers), machine(job.cluster),
            span=_span(job.plan, job.cluster),
        )  # fmt: skip


def unseen() -> Iterator[Row]:
    """The rows of Megatron-Bridge's tables that no constant was fitted on."""
    for row in published(EARLIER):
        yield _read(row, row.argv + (row.options or []), "unseen-earlier")
    for row in published():
        if "--num-experts" in row.argv:
            yield _read(row, row.argv, "unseen-moe-bare")
            yield _read(row, row.argv + (row.options or []), "unseen-moe")
        else:
            yield _read(row, row.argv, "unseen-dense")


def _read(row: Published, argv: list[str], group: str) -> Row:
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    report = preflight.check_command(argv, world_size=row.ranks, device=row.device, target="megatron@0.20.0", env=env)
    job = report.jobs[0]
    plan = completed(job.plan)[0]
    numbers = shape(plan, job.cluster.device.architecture if job.cluster.device else 0)
    cluster = replace(job.cluster, software=float(row.container))
    return Row(
        row.name, group, "", "", row.seconds, numbers, traits(plan, numbers),
        machine_of_era(numbers, job.plan, cluster), cluster.software, kind_of(numbers, untimed(job.plan)),
        _span(job.plan, cluster),
    )  # fmt: skip


def _span(plan: Plan, cluster: Cluster) -> tuple[float, float]:
    found = estimate(plan, cluster)
    return found.low or 0.0, found.high or math.inf


def unseen_scripts() -> Iterator[Row]:
    """Scripts of MindSpeed-LLM's model pages that no constant was fitted on; none if the repository is not
    available."""
    for line in SCRIPTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        path, ranks, tokens = line.split("\t")
        job = _job({"id": "ms:", "kind": "", "path": path, "world": int(ranks), "device": "910B1"})
        if job is None or (found := preflight.estimate_step_time(job)).seconds is None:
            continue
        plan = completed(job.plan)[0]
        numbers = shape(plan, 0)
        measured = found.seconds * found.tokens / float(tokens)
        yield Row(
            path, "unseen-ms", "", "", measured, numbers, traits(plan, numbers), machine(job.cluster),
            span=_span(job.plan, job.cluster),
        )  # fmt: skip


def _job(row: Mapping[str, Any]) -> Any:
    if row["kind"] == "command":
        env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        how = {"world_size": row["world"], "device": row["device"], "target": "megatron@0.20.0", "env": env}
        jobs = preflight.check_command(_words(row["argv"]), **how).jobs
    else:
        repository, tag, target = PUBLISHED[row["id"][:2]]
        git = ["git", f"--git-dir={MIRRORS / repository / 'repo'}", "show", f"{tag}:{row['path']}"]
        text = subprocess.run(git, capture_output=True, text=True)
        if text.returncode:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(row["path"]).name
            path.write_text(text.stdout)
            jobs = preflight.check(path, world_size=row["world"], device=row["device"], target=target).jobs
    return jobs[0] if jobs else None


def _words(argv: Any) -> list[str]:
    """A command, which some rows have as Python writes a list."""
    return list(ast.literal_eval(argv) if isinstance(argv, str) else argv)


def _group(row: Mapping[str, Any]) -> str:
    text = " ".join(_words(row.get("argv") or []))
    group = str(row["id"][:2])
    if group != "nv":
        return group
    return "nv-moe" if "--num-experts" in text else "nv-fp8" if "--fp8" in text else "nv-16bit"


def _model(name: str) -> str:
    """The family of a row; families are left out as a whole."""
    found = re.search(r"aa:(\d+B)|nv:([A-Za-z]+)|(?:mf:(?:configs|research)|ms:?)[:/]?([a-z]+)", name)
    return next(part for part in found.groups() if part) if found else name


def errors(found: Iterable[Row], rates: Mapping[str, Rates] = RATES) -> dict[str, list[float]]:
    """Relative errors by group."""
    by: dict[str, list[float]] = defaultdict(list)
    for row in found:
        by[row.group].append(row.estimate(rates) / row.seconds - 1)
    return by


def held(found: Iterable[Row]) -> dict[str, float]:
    """The share of runs that lie inside their range, by group."""
    by: dict[str, list[bool]] = defaultdict(list)
    for row in found:
        by[row.group].append(row.span[0] <= row.seconds <= row.span[1])
    return {group: statistics.mean(told) for group, told in by.items()}


def sweeps(found: Iterable[Row], rates: Mapping[str, Rates] = RATES) -> dict[str, tuple[int, float, float, float]]:
    """For each sweep: runs, rank correlation, the time of the first choice relative to the best, mean error."""
    by: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in found:
        if row.sweep:
            by[row.sweep].append((row.estimate(rates), row.seconds))
    return {
        name: (
            len(pairs), spearman(*zip(*pairs, strict=True)), min(pairs)[1] / min(m for _, m in pairs),
            statistics.mean(e / m - 1 for e, m in pairs),
        )
        for name, pairs in by.items() if len(pairs) >= 5
    }  # fmt: skip


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of ranks."""
    ranks = [[sorted(values).index(x) for x in values] for values in (one, other)]
    return statistics.correlation(*ranks)


def fitted(found: Sequence[Row], kind: str, start: Mapping[str, Rates] = RATES) -> Mapping[str, Rates]:
    """Constants of one kind of device fitted by coordinate descent, with a penalty for leaving their start."""
    kinds = ("hopper", "blackwell", "blackwell-ultra") if kind == "nvidia" else (kind,)
    names = FITTED[kind]
    factors = dict.fromkeys(names, 1.0)

    def apply(by: Mapping[str, float]) -> dict[str, Rates]:
        changed = {k: start[k]._replace(**{n: getattr(start[k], n) * f for n, f in by.items()}) for k in kinds}
        return {**start, **changed}

    def cost(by: Mapping[str, float]) -> float:
        rates = apply(by)
        groups: dict[str, list[float]] = defaultdict(list)
        for row in found:
            groups[row.sweep or row.group].append(math.log(row.estimate(rates) / row.seconds))
        means = [statistics.mean(map(abs, values)) for values in groups.values()]
        return statistics.mean(means) + PULL * sum(math.log(f) ** 2 for f in by.values())

    return apply(_descend(factors, cost))


def _descend(factors: dict[str, float], cost: Callable[[Mapping[str, float]], float]) -> dict[str, float]:
    best = cost(factors)
    for step in (1.2, 1.1, 1.05):
        for name in list(factors):
            for factor in (step, 1 / step):
                while (new := cost(tried := {**factors, name: factors[name] * factor})) < best - 1e-6:
                    best, factors = new, tried
    return factors


def held_out(found: Sequence[Row]) -> Iterator[tuple[str, str, int, float, float]]:
    """For each family: kind of device, runs, mean absolute error with constants fitted without it, and with all."""
    for kind in FITTED:
        own = [row for row in found if row.model and _kind(row) == kind]
        for model in sorted({row.model for row in own}):
            left = [row for row in own if row.model == model]
            rest = [row for row in own if row.model != model]
            rates = fitted(rest, kind, PRIOR)
            without = statistics.mean(abs(row.estimate(rates) / row.seconds - 1) for row in left)
            whole = statistics.mean(abs(row.estimate() / row.seconds - 1) for row in left)
            yield kind, model, len(left), without, whole


_TYPICAL = {
    "matmul": 0.75, "attention": 0.5, "attention_back": 0.35, "memory": 0.6, "gap": 1e-4, "routed_gap": 7e-4,
}  # fmt: skip
PRIOR = {name: rates._replace(**_TYPICAL) for name, rates in RATES.items()}
"""The start of a fit that is independent of the constants in use."""


def _kind(row: Row) -> str:
    kind = family(row.where.device)
    return "nvidia" if kind in ("hopper", "blackwell", "blackwell-ultra") else kind


def page(found: Sequence[Row], fit: bool) -> str:
    """The figures as Markdown."""
    by, inside = errors(found), held(found)
    lines = ["| rows | runs | mean absolute error | mean error | 90% are within | within the estimated range |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for group, (words, _) in GROUPS.items():
        if values := by.get(group):
            size = sorted(map(abs, values))
            share = size[math.ceil(0.9 * len(size)) - 1]
            mean, bias = statistics.mean(size), statistics.mean(values)
            lines.append(f"| {words} | {len(values)} | {mean:.1%} | {bias:+.1%} | {share:.0%} | {inside[group]:.0%} |")
    lines += ["", "| sweep | runs | rank correlation | first choice ÷ best | mean error |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    told = sweeps(found)
    lines += [
        f"| {name} | {count} | {rho:.2f} | {regret:.2f} | {error:+.0%} |"
        for name, (count, rho, regret, error) in sorted(told.items())
    ]
    lines.append(f"\nThe median rank correlation is {statistics.median(rho for _, rho, _, _ in told.values()):.2f}.")
    if fit:
        lines += ["", "| device | held-out family | runs | error if held out | error with the constants in use |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        lines += [f"| {k} | {m} | {n} | {a:.1%} | {b:.1%} |" for k, m, n, a, b in held_out(found)]
    lines += ["", *causes(found), "", *containers()]
    return "\n".join(lines) + "\n"


def causes(found: Sequence[Row]) -> Iterator[str]:
    """Errors on rows of NVIDIA devices by possible cause."""
    yield "| NVIDIA's rows, fitted or not | runs | mean absolute error | mean error |"
    yield "| --- | --- | --- | --- |"
    by: dict[str, list[float]] = defaultdict(list)
    for row in found:
        if _kind(row) == "nvidia" and row.group != "unseen-moe-bare":
            for cause in _traits_of(row):
                by[cause].append(row.estimate() / row.seconds - 1)
    for cause, values in sorted(by.items()):
        size, bias = statistics.mean(map(abs, values)), statistics.mean(values)
        yield f"| {cause} | {len(values)} | {size:.1%} | {bias:+.1%} |"


def _traits_of(row: Row) -> Iterator[str]:
    """The properties that distinguish a row: model, precision, graphs, experts' exchange, container."""
    t, s = row.how, row.numbers
    yield f"precision: {t.recipe or '16-bit'}, {'experts' if s.experts else 'dense'}"
    if s.experts is None:
        return
    graphs = "one for the whole iteration" if t.one_graph else "for some modules" if t.graphs else "none, or not stated"
    yield f"experts, CUDA graphs: {graphs}"
    yield f"experts, exchange: {'between' if s.expert * s.expert_tensor > row.where.domain else 'within'} fast domains"
    yield f"experts, model: {row.name.removeprefix('nv:').lower().split()[0]}"
    if container := re.search(r"\((\d\d\.\d\d)\)", row.name):
        yield f"experts, container: {container[1]}"


def containers() -> Iterator[str]:
    """How far apart measurements of one command are in several containers: no estimate can be right about both."""
    yield "| row of NVIDIA's tables | containers | slowest ÷ fastest |"
    yield "| --- | --- | --- |"
    by: dict[tuple[str, ...], list[Published]] = defaultdict(list)
    for row in published():
        by[row.layout].append(row)
    for (model, device, ranks, precision, *_), rows in sorted(by.items()):
        if len(rows) > 1:
            names = ", ".join(sorted(row.container for row in rows))
            ratio = max(row.seconds for row in rows) / min(row.seconds for row in rows)
            yield f"| {model} on {ranks} {device.upper()}, {precision} | {names} | {ratio:.2f} |"


def residuals(found: Iterable[Row], most: int = 12) -> str:
    """The largest errors, next to their hand-written reasons."""
    pairs = sorted(((row.estimate() / row.seconds - 1, row.name) for row in found), key=lambda pair: -abs(pair[0]))
    return "".join(f"{error:+.0%} {name}\n" for error, name in pairs[:most])


def main(arguments: Sequence[str]) -> None:
    """Print the figures, and write them if requested."""
    found = list(rows())
    text = page([*found, *further(), *unseen(), *unseen_scripts()], "--fit" in arguments)
    print(text + "\n" + residuals(found))
    if "--write" in arguments:
        path = Path(arguments[arguments.index("--write") + 1])
        before, _, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        path.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
