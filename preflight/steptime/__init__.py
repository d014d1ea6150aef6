"""Step time of a run: Plan and Cluster → StepTimeEstimate."""

from preflight.steptime.estimate import StepTimeEstimate, estimate

__all__ = ["StepTimeEstimate", "estimate"]
