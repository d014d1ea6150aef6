"""The values of an estimate: terms per stage, steady and peak bytes, the need of the device, the verdict. Bytes
throughout."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.source.hints import Literal
from preflight.source.record import NamedTuple, dataclass

LOW = 0.92
"""The minimum allocation relative to the predicted low end: no measured dense run was below 0.96
(benchmarks/memory.py)."""
LOW_MIXED = 0.87
"""The same with experts or FP8, for which a bound from dense runs is not valid: 1 / the margin of such runs; the lowest
had 0.92."""

WIDE = 2.0
"""A range wider than this factor shows the possible need of a run, not the likely one."""

Verdict = Literal["does-not-fit", "at-risk", "fits", "unknown"]


class Term(NamedTuple):
    """One contribution, as a range in bytes, with its formula. kind: the total that it enters."""

    name: str
    low: float
    high: float
    formula: str = ""
    kind: Literal["steady", "dynamic", "device"] = "dynamic"


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline rank. steady: allocated after a step; allocated_peak: the maximum during one; required: device
    need."""

    index: int
    terms: tuple[Term, ...]
    steady: float
    allocated_peak: float
    required: float
    parameters: float = 0.0
    first_step: float = 0.0
    """The maximum during the first step, before the optimizer has created its moments: the value reported by short
    benchmark runs."""
    sure: float = LOW

    @property
    def low(self) -> float:
        """The minimum allocation at the peak: the terms' low ends, and the error of the estimate."""
        return self.sure * sum(term.low for term in self.terms if term.kind != "device")


KINDS = ("steady", "dynamic", "device")


def term_names(stages: Iterable[Stage]) -> list[str]:
    """Names of all terms, each once: steady ones, those at the peak, and those outside allocated bytes."""
    terms = [term for stage in stages for term in stage.terms if term.high]
    return list(dict.fromkeys(term.name for kind in KINDS for term in terms if term.kind == kind))


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Stages in pipeline order. unknown: why nothing (or not everything) could be estimated. budget: bytes of the
    device, None unknown. taken: unknown values counted as a range. assumed: values assumed to be usual, from a
    published name or as the nearest that the framework accepts."""

    stages: tuple[Stage, ...] = ()
    verdict: Verdict = "unknown"
    budget: float | None = None
    unknown: tuple[str, ...] = ()
    outside: float = 0.0
    """Bytes of communication buffers for which a memory pool of fixed size leaves no room (Ascend)."""

    taken: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    supposed: bool = False
    """Whether the run itself states too little, or values that the framework refuses: no rule reports this."""

    replaced: tuple[str, ...] = ()
    """Explicit values that the estimate replaced, in words: then there is no verdict on the run."""

    @property
    def low(self) -> float:
        """The minimum device memory: the highest low end of all stages."""
        return max((stage.low for stage in self.stages), default=0.0)

    @property
    def span(self) -> tuple[float, float]:
        """The required device memory, from the low end to the possible need of the decisive stage."""
        worst = self.worst
        return self.low, max(self.low, worst.required if worst is not None else 0.0)

    @property
    def wide(self) -> bool:
        """Whether the two ends are too far apart for a warning about the high one."""
        worst = self.worst
        return worst is not None and self.low * WIDE < worst.allocated_peak

    @property
    def worst(self) -> Stage | None:
        """The decisive stage: the one with the highest need."""
        return max(self.stages, key=lambda stage: stage.required, default=None)
