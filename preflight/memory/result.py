"""What an estimate says: terms per stage, steady and peak bytes, what the device needs, the verdict. Bytes throughout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

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


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Stages in pipeline order. unknown: why nothing (or not everything) could be estimated. budget: bytes of the device, None unknown."""

    stages: tuple[Stage, ...] = ()
    verdict: Verdict = "unknown"
    budget: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def worst(self) -> Stage | None:
        """The stage that decides: the one that needs most."""
        return max(self.stages, key=lambda stage: stage.required, default=None)
