"""Training memory per pipeline stage: Plan → MemoryEstimate."""

from preflight.memory.estimate import estimate
from preflight.memory.result import MemoryEstimate, Stage, Term, Verdict

__all__ = ["MemoryEstimate", "Stage", "Term", "Verdict", "estimate"]
