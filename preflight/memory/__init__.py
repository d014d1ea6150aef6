"""Training memory per pipeline stage: Plan → MemoryEstimate."""

from preflight.memory.result import MemoryEstimate, Stage, Term, Verdict
from preflight.memory.estimate import estimate

__all__ = ["MemoryEstimate", "Stage", "Term", "Verdict", "estimate"]
