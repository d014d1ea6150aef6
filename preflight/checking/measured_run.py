"""The run of the settings that was measured: how its memory and its step time differ from what is estimated."""

from __future__ import annotations

from preflight.checking.engine import Policy
from preflight.checking.workspace import Workspace
from preflight.job import Job
from preflight.plugins.manager import Plugins
from preflight.run.request import Request, Target
from preflight.run.settings import Measured, Settings
from preflight.source.text import InputError, Source


def bytes_beyond(run: Measured, peak: float, settings: Settings, plugins: Plugins, policy: Policy) -> float:
    """Bytes that a measured run needed beyond its estimate. Raises InputError where there is no estimate."""
    from preflight.memory.device_need import beyond

    estimate = _job(run, settings, plugins, policy).memory
    if estimate.worst is None:
        raise InputError(f"the measured run cannot be estimated: {'; '.join(estimate.unknown)}", run.config)
    return beyond(estimate.worst, peak)


def pace_of(run: Measured, step: float, settings: Settings, plugins: Plugins, policy: Policy) -> float:
    """How many times as fast as its estimate a measured run was. Raises InputError where there is no estimate."""
    from preflight.steptime import estimate

    job = _job(run, settings, plugins, policy)
    found = estimate(job.plan, job.cluster)
    if found.seconds is None:
        raise InputError(f"the measured run cannot be estimated: {'; '.join(found.unknown)}", run.config)
    return found.seconds / step


def _job(run: Measured, settings: Settings, plugins: Plugins, policy: Policy) -> Job:
    path = settings.root / run.config
    facts = run.facts.over(settings.facts)
    target = Target.parse(facts.target) if facts.target else None
    request = Request(facts.world_size, facts.nodes, facts.devices_per_node, facts.device, target)
    report = Workspace([Source.read(path, run.config)], plugins, request, policy).check()
    if not report.jobs:
        raise InputError("the measured run cannot be estimated: preflight does not know this config", run.config)
    return report.jobs[0]
