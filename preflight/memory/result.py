"""The values of an estimate: terms per stage, steady and peak bytes, what the device needs, the verdict.
Bytes throughout."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.source.hints import Literal
from preflight.source.record import NamedTuple, dataclass

LOW = 0.92
"""Of the predicted low end, what is allocated at the least:
no measured dense run was below 0.96 (benchmarks/memory.py)."""
LOW_MIXED = 0.87
"""The same with experts or FP8, where a bound from dense runs does not hold: 1 / the margin of such runs;
the lowest had 0.92."""

WIDE = 2.0
"""A range wider than this factor shows what a run may need, not what it is likely to."""

Verdict = Literal["does-not-fit", "at-risk", "fits", "unknown"]


class Term(NamedTuple):
    """One contribution, as a range in bytes, with the formula that gave it. kind: which total it enters."""

    name: str
    low: float
    high: float
    formula: str = ""
    kind: Literal["steady", "dynamic", "device"] = "dynamic"


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline rank. steady: allocated after a step; allocated_peak: the most during one; required: device need."""

    index: int
    terms: tuple[Term, ...]
    steady: float
    allocated_peak: float
    required: float
    parameters: float = 0.0
    first_step: float = 0.0
    """The most during the first step, before the optimizer has made its moments: what short benchmark runs report."""
    sure: float = LOW

    @property
    def low(self) -> float:
        """What is allocated at the peak at the least: the terms' low ends, and the estimate's own error."""
        return self.sure * sum(term.low for term in self.terms if term.kind != "device")


KINDS = ("steady", "dynamic", "device")


def term_names(stages: Iterable[Stage]) -> list[str]:
    """Names of all terms, each once: what stays, what is alive at the peak, what is outside allocated bytes."""
    terms = [term for stage in stages for term in stage.terms if term.high]
    return list(dict.fromkeys(term.name for kind in KINDS for term in terms if term.kind == kind))


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Stages in pipeline order. unknown: why nothing (or not everything) could be estimated. budget: bytes of the
    device, None unknown. taken: what is not known, and counted as a range. assumed: what is taken to be as it usually
    is, from a published name or as the nearest that the framework takes."""

    stages: tuple[Stage, ...] = ()
    verdict: Verdict = "unknown"
    budget: float | None = None
    unknown: tuple[str, ...] = ()
    outside: float = 0.0
    """Bytes of communication buffers that a memory pool of fixed size leaves no room for by itself (Ascend)."""

    taken: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    supposed: bool = False
    """Whether the run itself states too little, or what the framework refuses: no rule reports it."""

    replaced: tuple[str, ...] = ()
    """Typed values that the estimate replaced, in words: it then gives no verdict on the run."""

    @property
    def low(self) -> float:
        """What the device must have at the least: the low end of the stage where it is highest."""
        return max((stage.low for stage in self.stages), default=0.0)

    @property
    def span(self) -> tuple[float, float]:
        """What the device must have, from the low end on to what the stage that decides may need."""
        worst = self.worst
        return self.low, max(self.low, worst.required if worst is not None else 0.0)

    @property
    def wide(self) -> bool:
        """Whether the two ends are too far apart to warn of the high one."""
        worst = self.worst
        return worst is not None and self.low * WIDE < worst.allocated_peak

    @property
    def worst(self) -> Stage | None:
        """The stage that decides: the one that needs most."""
        return max(self.stages, key=lambda stage: stage.required, default=None)
