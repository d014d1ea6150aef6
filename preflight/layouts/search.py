"""The search: candidates that fit, fastest first, each proven by the same rules; with FP8 as one dimension."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from preflight.job import Job
from preflight.layouts.candidate_memory import listed_bytes, required
from preflight.layouts.candidate_step_time import Time, step_time
from preflight.layouts.candidate_verification import RISKY, Proof, Try, as_found
from preflight.layouts.candidates import COUNTED, LISTED, Columns, Space, cost, grid, present
from preflight.layouts.result import Result, in_classes, price
from preflight.layouts.search_inputs import Limits, everywhere, space
from preflight.memory.inputs_from_plan import Missing
from preflight.run.cluster import Device
from preflight.run.training_plan import Sizes
from preflight.source.finding import Edit, Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.layer import PASSES

SCALED, CURRENT, DELAYED = "mxfp8", "tensorwise", "delayed"
"""Scales per block of 32 applied by the matrix units, from the current tensor, from the tensor in earlier steps
(Transformer Engine: MXFP8BlockScaling, Float8CurrentScaling, DelayedScaling)."""
BLACKWELL = 10


class InFP8(NamedTuple):
    """The job with products in FP8 in its present layout, and the recipe; or the reason why it is unchanged."""

    job: Job
    recipe: str = ""
    why: str = ""


def in_fp8(job: Job, edits_for: Callable[[Sizes], tuple[Edit, ...]], attempt: Try) -> InFP8:
    """The first recipe that the rules accept in the present layout."""
    device, now = job.cluster.device, job.plan.precision.fp8
    if device is None or not device.fp8:
        name = f"{device.name} does not compute in FP8" if device is not None else "no device is named (--device)"
        return InFP8(job, why=name)
    if now.known and now.raw:
        return InFP8(job, why=f"the run already computes in FP8 ({now.raw})")
    before = _errors(attempt(()))
    same = edits_for(job.sizes)
    why = f"{job.target} has no option for it"
    for recipe in _recipes(device):
        edits = edits_for(job.sizes._replace(fp8=recipe))
        tried = attempt(edits)
        if isinstance(tried, str):
            why = tried
            continue
        changed = tried[0]
        if new := sorted(_errors(tried) - before):
            why = f"rule {new[0][0]} refuses it"
        elif changed.plan.precision.fp8.known and changed.plan.precision.fp8.raw:
            return InFP8(changed, recipe)
        elif edits != same:
            why = "the layers of this run do not compute in FP8: their implementation does not support it"
    return InFP8(job, why=why)


def _errors(tried: tuple[Job, tuple[Finding, ...]] | str) -> set[tuple[str, str]]:
    found = () if isinstance(tried, str) else tried[1]
    return {(finding.rule, finding.message) for finding in found if finding.severity is Severity.ERROR}


def _recipes(device: Device) -> tuple[str, ...]:
    """The best first: blocks if the matrix units scale them (Blackwell, and Ascend devices that compute in FP8)."""
    scaled = device.architecture >= BLACKWELL or device.vendor == "ascend"
    return (SCALED, CURRENT, DELAYED) if scaled else (CURRENT, DELAYED)


MOST_TRIED = 200
MOST_RANKED = 1000
SLACK = 1.05
"""The maximum overestimate of memory by the columns; candidates beyond it are not tried."""
KEPT_FREE = 0.02
"""The share of device memory that a layout leaves free if possible: idle usage on devices of the same kind differs by
0.5 GiB and more (npu-smi: 2.8 to 3.3 GiB of 64), and one run in twenty needs more than the estimate's high end."""
RANK_TRIES = 300
"""The maximum number of faster candidates that are tried to find the rank of the present layout."""
BEYOND = 4
"""The number of additional layouts proven beyond those shown: their exact times may move them forward."""
KIND = ("tensor", "pipeline", "expert")
KIND_ROWS, MOST_OF_A_KIND = 20, 6
Progress = Callable[[int, int], None]
"""Called with the number of proven layouts and the number wanted."""


def search(
    job: Job,
    edits_for: Callable[[Sizes], tuple[Edit, ...]],
    attempt: Try,
    limits: Limits = Limits(),
    progress: Progress | None = None,
) -> Result:
    """Layouts for a job's model, devices and unchanged global batch. edits_for writes sizes in the document's spelling.

    progress: called with the number of proven layouts and the number wanted.
    """
    result = Result(device=job.cluster.device.name if job.cluster.device else "")
    sought = in_fp8(job, edits_for, attempt) if limits.fp8 else InFP8(job)
    result.fp8, result.not_fp8 = sought.recipe, sought.why
    try:
        where = space(sought.job, limits)
    except Missing as missing:
        return Result(unknown=str(missing))
    where = replace(where, fp8=sought.recipe, cheap=_cheap(where, edits_for, attempt))
    columns, result.rejected = grid(where)
    result.considered = len(columns["tensor"])
    if not result.considered:
        return result
    call = Call(job, where, columns, limits, edits_for, attempt, progress)
    budget = job.cluster.budget if job.cluster.budget is not None else math.inf
    arithmetic = result.rejected
    for room in (budget * (1 - KEPT_FREE), budget) if limits.near is None else (budget,):
        result.rejected = Counter(arithmetic)
        proof, rows = _candidates(result, call, room)
        _prove(proof, rows, job.sizes, progress)
        if result.layouts or room == math.inf:
            break
    if limits.near is None:
        result.layouts = in_classes(result.layouts, budget)[: limits.show]
    _compare(result, call, budget)
    return result


class Call(NamedTuple):
    """The parameters of a search."""

    job: Job
    where: Space
    columns: Columns
    limits: Limits
    edits_for: Callable[[Sizes], tuple[Edit, ...]]
    attempt: Try
    progress: Progress | None


def _candidates(result: Result, call: Call, available: float) -> tuple[Proof, list[int]]:
    """The function that tries candidates within a memory limit, and the candidates that may fit, in order."""
    job, where, columns = call.job, call.where, call.columns
    need = required(where, columns, job.cluster) if where.measured else np.zeros(result.considered)
    listed, share = _shares(where, columns, need, job, available)
    need = np.where(
        (columns["recompute"] == COUNTED) & ((np.maximum(listed, share) <= 0) | (share > 1)), math.inf, need
    )
    times = step_time(where, columns, job.cluster.device, np.clip(share, 0, 1), _moved(where, columns, listed - share))
    result.rejected[RISKY] += int((need > available * SLACK).sum())
    proof = Proof(result, job.cluster, where, columns, times, available, call.limits, call.edits_for, call.attempt)
    return proof, _ranked(where, columns, need, times, available)


def _prove(proof: Proof, rows: list[int], now: Sizes, progress: Progress | None) -> None:
    """Try candidates in order until enough are proven, some of each kind; if none passes, try those nearest to the
    present layout."""
    result, limits = proof.result, proof.limits
    _try_each(proof, rows[: MOST_RANKED * (KIND_ROWS if limits.kinds else 1)], progress)
    if not result.layouts and limits.near is None:
        proof.tried, proof.limits = 0, limits._replace(kinds=False)
        steps = cost(proof.columns, now, stated=proof.where.stated)
        _try_each(proof, sorted(rows, key=lambda row: float(steps[row]))[:MOST_TRIED], progress)
        proof.limits = limits


def _try_each(proof: Proof, rows: list[int], progress: Progress | None) -> None:
    """Try candidates until enough are proven."""
    result, limits = proof.result, proof.limits
    seen = Kinds(proof.columns, limits.kinds)
    wanted = limits.show + (BEYOND if limits.near is None else 0)
    for row in rows:
        if len(result.layouts) >= wanted or proof.tried >= MOST_TRIED:
            break
        if seen.enough(row):
            continue
        before = len(result.layouts)
        proof.take(row)
        seen.note(row, len(result.layouts) > before)
        if progress is not None:
            progress(len(result.layouts), wanted)


def _compare(result: Result, call: Call, budget: float) -> None:
    """The present layout, and its rank among those that pass the rules and fit."""
    job, where = call.job, call.where
    result.pace, result.assumed = where.pace, where.assumed
    result.tokens = float(where.batch * where.shape.sequence)
    if where.near is not None or not where.measured:
        return
    result.present, result.withheld = job.sizes, job.withheld
    result.current = as_found(job, job.sizes, where, budget) if not job.withheld else None
    if result.current is not None and call.limits.ranked:
        _rank(result, call, budget, result.current.seconds * (1 - 1e-6))


def _rank(result: Result, call: Call, budget: float, now: float) -> None:
    """Count the layouts that are faster than the present one, each tried by the rules and the memory model."""
    scratch = Result(considered=result.considered)
    proof, rows = _candidates(scratch, call, budget)
    faster = [row for row in rows if proof.times.total[row] < now]
    found = [seconds for row in faster[:RANK_TRIES] if (seconds := proof.accepted(row)) is not None and seconds < now]
    shown = sum(one.seconds < now for one in result.layouts)
    result.at_least = len(faster) > RANK_TRIES or len(found) < shown
    result.rank = 1 + max(len(found), shown)


class Kinds:
    """The degrees of parallelism already shown, so that their neighbours are skipped."""

    def __init__(self, columns: Columns, on: bool) -> None:
        self.columns, self.on = columns, on
        self.tries: Counter[tuple[int, ...]] = Counter()

    def enough(self, row: int) -> bool:
        """Whether a layout of the kind is shown, or enough of them were refused."""
        return self.on and self.tries[self._kind(row)] >= MOST_OF_A_KIND

    def note(self, row: int, shown: bool) -> None:
        """Count a layout that was tried."""
        self.tries[self._kind(row)] += MOST_OF_A_KIND if shown else 1

    def _kind(self, row: int) -> tuple[int, ...]:
        return tuple(int(self.columns[name][row]) for name in KIND)


def _cheap(where: Space, edits_for: Callable[[Sizes], tuple[Edit, ...]], attempt: Try) -> frozenset[str]:
    """Outputs that the framework can recompute by operator, found by setting this in the present layout."""
    if (
        where.split != "any"
        or where.near is not None
        or not where.measured
        or where.even
        or len(where.shape.stages) > 1
    ):
        return frozenset()
    held = where.shape.stages[0]
    tried = attempt(edits_for(present(where)._replace(full_layers=(0,) * len(held), listed=held)))
    if isinstance(tried, str) or not (repeated := tried[0].plan.recompute.repeated).known or repeated.raw:
        return frozenset()
    return everywhere(tried[0].plan)


def _shares(where: Space, columns: Columns, need: Any, job: Job, available: float) -> tuple[Any, Any]:
    """The shares of its layers that a candidate must recompute to fit: cheap operators, and in full. The second is
    above 1 if all layers are not enough."""
    counted = columns["recompute"] == COUNTED
    listed, share = np.zeros(len(need)), np.zeros(len(need))
    if not where.measured or available == math.inf or not counted.any():
        return listed, share
    rows = {name: values[counted] for name, values in columns.items()}
    without, some = (
        required(where, {**rows, "recompute": np.full_like(rows["recompute"], code)}, job.cluster)
        for code in (0, LISTED)
    )
    layers = np.ceil(sum(map(sum, where.shape.stages)) / rows["pipeline"])
    share[counted] = np.maximum(
        np.ceil((some - available) / np.maximum(some - need[counted], 1.0) * layers) / layers, 0
    )
    part = np.clip(np.ceil((without - available) / np.maximum(without - some, 1.0) * layers) / layers, 0, 1)
    listed[counted] = np.where(without - some > 1.0, part, 0.0)
    return listed, share


def _moved(where: Space, columns: Columns, listed: Any) -> Any:
    """Bytes that recomputed cheap operators read and write per device and step."""
    if not where.cheap:
        return 0.0
    layers = sum(map(sum, where.shape.stages)) / columns["pipeline"]
    return np.maximum(listed, 0) * layers * PASSES * listed_bytes(where, columns) * columns["micro_batches"]


def _ranked(where: Space, columns: Columns, need: Any, times: Time, available: float) -> list[int]:
    """Rows that fit, fastest first (or least changed first); on ties the simpler layout first."""
    simple = columns["virtual"] + columns["pipeline"] + columns["context"] + columns["tensor"]
    seconds = times.total * price(available - need, available)
    order = np.lexsort(
        (simple, seconds) if where.near is None else (times.total, cost(columns, where.near, stated=where.stated))
    )
    return [int(row) for row in order if need[row] <= available * SLACK]
