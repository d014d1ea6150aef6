"""The run of the settings that was measured: what it needed beyond its estimate, how much faster it was."""

from __future__ import annotations

from preflight.checking.engine import Policy
from preflight.checking.workspace import Workspace
from preflight.job import Job
from preflight.plugins.manager import Plugins
from preflight.run.request import Request, Target
from preflight.run.settings import Measured, Settings
from preflight.source.record import dataclass
from preflight.source.text import InputError, Source


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A measured run, read as the settings say. Its figures raise InputError where there is no estimate."""

    run: Measured
    settings: Settings
    plugins: Plugins
    policy: Policy

    @property
    def beyond(self) -> float:
        """Bytes beyond the estimate; 0 where memory was not measured."""
        if self.run.peak is None:
            return 0.0
        from preflight.memory.device_need import beyond

        estimate = self._job().memory
        if estimate.worst is None:
            raise self._unknown(estimate.unknown)
        return beyond(estimate.worst, self.run.peak)

    @property
    def pace(self) -> float:
        """How many times as fast as its estimate; 1 where no step was measured."""
        if self.run.step is None:
            return 1.0
        from preflight.steptime import estimate

        job = self._job()
        found = estimate(job.plan, job.cluster)
        if found.seconds is None:
            raise self._unknown(found.unknown)
        return found.seconds / self.run.step

    def _unknown(self, reasons: tuple[str, ...]) -> InputError:
        return InputError(f"the measured run cannot be estimated: {'; '.join(reasons)}", self.run.config)

    def _job(self) -> Job:
        path = self.settings.root / self.run.config
        facts = self.run.facts.over(self.settings.facts)
        target = Target.parse(facts.target) if facts.target else None
        request = Request(facts.world_size, facts.nodes, facts.devices_per_node, facts.device, target)
        report = Workspace([Source.read(path, self.run.config)], self.plugins, request, self.policy).check()
        if not report.jobs:
            raise self._unknown(("preflight does not know this config",))
        return report.jobs[0]
