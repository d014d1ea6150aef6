"""Step time of a run: Plan and Cluster → StepTimeEstimate."""

from preflight.steptime.estimate import estimate
from preflight.steptime.result import StepTimeEstimate

__all__ = ["StepTimeEstimate", "estimate"]
