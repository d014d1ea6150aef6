"""The accuracy of memory estimates for measured runs: `python benchmarks/memory.py [FOLDER]`.

The runs are those of measured.py: Megatron-LM's functional tests, MindSpeed-LLM's on Ascend.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from measured import Unit, ascend, megatron

DATA = Path(__file__).parents[2] / "shared" / "data" / "memory"
LARGE = 20e9


FEATURES: tuple[tuple[str, Callable[[dict[str, Any]], object]], ...] = (
    ("all", lambda a: True),
    ("dense", lambda a: "--num-experts" not in a),
    ("mixture of experts", lambda a: "--num-experts" in a),
    ("full recomputation", lambda a: a.get("--recompute-granularity") == "full"),
    (
        "selective recomputation",
        lambda a: a.get("--recompute-granularity") == "selective" or "--recompute-activations" in a,
    ),
    ("virtual stages", lambda a: any("virtual" in k for k in a)),
    ("context parallel", lambda a: int(a.get("--context-parallel-size") or 1) > 1),
    ("latent attention", lambda a: "--multi-latent-attention" in a),
    ("multi-token prediction", lambda a: "--mtp-num-layers" in a),
    ("FP8", lambda a: any(k.startswith("--fp8") for k in a)),
    ("FSDP", lambda a: any("fsdp" in k for k in a)),
    ("Muon", lambda a: "muon" in str(a.get("--optimizer"))),
    ("CUDA graphs", lambda a: any("cuda-graph" in k for k in a)),
)

ESTIMATORS = (
    ("Megatron-LM theoretical_memory_usage", 42.1, 86, 47.2, 42),
    ("Megatron-Bridge estimate", 39.6, 90, 30.7, 58),
    ("mbridge estimator, patched to run", 21.3, 55, 19.3, 37),
    ("llm-analysis", 24.5, 34, 53.7, 38),
    ("EleutherAI cookbook", 37.5, 47, 105.5, 9),
    ("calculon (dense multi-head only)", 31.4, 65, 9.4, 0),
    ("DeepSpeed ZeRO-2 states", 87.9, 100, 66.7, 100),
)
"""Published estimators on the same recordings: MAPE in % and share under by more than 10 %,
from 2 GB and from 20 GB."""


def worst(stages: list[Unit]) -> list[float]:
    """The error of each configuration: its largest estimated stage compared with its largest measured stage."""
    found: dict[str, list[Unit]] = {}
    for unit in stages:
        if unit.estimate is not None:
            found.setdefault(unit.name.partition(" stage ")[0], []).append(unit)
    return [
        max(unit.estimate or 0.0 for unit in units) / max(unit.measured for unit in units) - 1
        for units in found.values()
    ]


def bounds(units: list[Unit], stages: list[Unit]) -> Iterator[str]:
    """The low bound as each family of runs would have it, and how many of all others are below it."""
    sure = [unit for unit in (*units, *stages) if unit.estimate is not None and unit.least]
    families: dict[str, list[Unit]] = {"Ascend": [unit for unit in stages if unit in sure]}
    for name, present in (
        ("dense", lambda u: "--num-experts" not in u.args),
        ("mixtures", lambda u: "--num-experts" in u.args),
    ):
        families[name] = [unit for unit in units if unit in sure and present(unit)]
    families |= {
        name: [unit for unit in units if unit in sure and unit.name.endswith(name)]
        for name in ("A100-80GB", "H100", "GB200")
    }
    for name, family in families.items():
        bound = min(unit.measured / unit.least for unit in family)
        others = [unit for unit in sure if unit not in family]
        below = sum(unit.measured / unit.least < bound for unit in others)
        yield f"{name}: {len(family)} runs, none below {bound:.3f} of its low end; of {len(others)} others {below} are"
    for name, rare in (("dense", False), ("with experts or FP8", True)):
        part = [u for u in sure if ("--num-experts" in u.args or any(k.startswith("--fp8") for k in u.args)) is rare]
        yield f"{name}: lowest of {len(part)} is {min(u.measured / u.least for u in part):.3f}"


class Summary(NamedTuple):
    """Figures of a set of units, in %."""

    units: int
    mape: float
    p90: float
    under: float


def summary(errors: Iterable[float]) -> Summary | None:
    """Mean and 90th percentile of the absolute error, and the share under by more than 10 %; None for no errors."""
    found = list(errors)
    if not found:
        return None
    sizes = sorted(map(abs, found))
    return Summary(
        len(found),
        100 * statistics.mean(sizes),
        100 * sizes[int(0.9 * (len(sizes) - 1))],
        100 * sum(e < -0.1 for e in found) / len(found),
    )


def figures(units: list[Unit]) -> dict[str, Summary]:
    """The figures that are held: peaks of dense models, of mixtures, from 20 GB on; bytes after the step."""
    sure = [unit for unit in units if unit.estimate is not None]
    parts = {
        "dense": (unit.error for unit in sure if "--num-experts" not in unit.args),
        "mixture": (unit.error for unit in sure if "--num-experts" in unit.args),
        "large": (unit.error for unit in sure if unit.measured >= LARGE),
        "steady": (unit.steady_estimate / unit.steady - 1 for unit in sure if unit.steady and unit.steady_estimate),
    }
    return {name: found for name, errors in parts.items() if (found := summary(errors)) is not None}


def held_out(units: list[Unit]) -> Iterator[str]:
    """The two measured constants, found on one family and tried on the other: the workspaces, and the margin."""
    sure = [unit for unit in units if unit.estimate is not None and unit.steady and unit.steady_estimate]
    families = [[unit for unit in sure if ("--num-experts" in unit.args) is mixed] for mixed in (False, True)]
    for (one, other), names in zip(
        (families, families[::-1]), (("dense", "mixtures"), ("mixtures", "dense")), strict=True
    ):
        fitted = statistics.median(
            unit.steady - unit.steady_estimate + unit.workspace for unit in one if unit.steady and unit.steady_estimate
        )
        errors = [
            (u.steady_estimate - u.workspace + fitted) / u.steady - 1 for u in other if u.steady and u.steady_estimate
        ]
        now = summary(u.steady_estimate / u.steady - 1 for u in other if u.steady and u.steady_estimate)
        tried = summary(errors)
        if tried and now:
            shown = (
                f"{fitted / 2**20:.0f} MiB gives {names[1]} a steady MAPE of {tried.mape:.1f} %, the constants as "
                f"they are {now.mape:.1f} %"
            )
            yield f"workspaces fitted on {names[0]}: {shown}"
        factor = sorted(1 / (1 + unit.error) for unit in one)[int(0.95 * (len(one) - 1))]
        covered = sum(1 / (1 + unit.error) <= factor for unit in other) / max(1, len(other))
        yield f"margin from {names[0]}: x {factor:.2f} covers {covered:.0%} of {names[1]}"


def show(units: list[Unit]) -> Iterator[str]:
    """The tables as lines."""
    sure = [unit for unit in units if unit.estimate is not None]
    yield f"{'':36}units   MAPE    p90   under by >10 %"
    for label, present in FEATURES:
        found = summary(unit.error for unit in sure if present(unit.args))
        refused = sum(unit.estimate is None and bool(present(unit.args)) for unit in units)
        line = f"{found.units:5d} {found.mape:5.1f}% {found.p90:5.1f}% {found.under:5.1f}%" if found else "    –"
        yield f"{label:36}{line}" + (f"   ({refused} not estimated)" if refused else "")
    for label, part in figures(units).items():
        yield f"held: {label:30}{part.units:5d} {part.mape:5.1f}% {part.p90:5.1f}% {part.under:5.1f}%"
    yield "beyond 10 %:"
    yield from (
        f"  {unit.error:+.0%} {unit.name}"
        for unit in sorted(sure, key=lambda unit: unit.error)
        if abs(unit.error) > 0.1
    )
    yield "not estimated:"
    yield from sorted({f"  {unit.name}: {unit.why}" for unit in units if unit.estimate is None})


def main(folder: Path) -> int:
    """Print everything; returns 2 if there is no data."""
    if not (folder / "megatron-measured.jsonl").is_file():
        print(f"no measured runs in {folder}", file=sys.stderr)
        return 2
    units = megatron(folder)
    print("Megatron-LM, NVIDIA, last pipeline stage, peak", *show(units), sep="\n")
    print("\nother estimators on these recordings   from 2 GB: MAPE, under   from 20 GB: MAPE, under")
    for name, *numbers in ESTIMATORS:
        print(f"{name:40}{numbers[0]:16.1f}% {numbers[1]:5d}% {numbers[2]:18.1f}% {numbers[3]:5d}%")
    print("\nconstants found on one family, tried on the other", *held_out(units), sep="\n")
    stages = ascend(folder)
    print("\nMindSpeed-LLM, Ascend, every recorded stage, first step", *show(stages), sep="\n")
    decides = summary(worst(stages))
    if decides:
        print(
            f"worst stage of each of {decides.units} configurations: {decides.mape:.1f}%, under by >10 % in "
            f"{decides.under:.1f}%"
        )
    print("\nlow bounds found on one family, tried on the others", *bounds(units, stages), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA))
