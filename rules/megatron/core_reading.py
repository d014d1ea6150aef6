"""Reading a run's arguments in the rule functions over Megatron core."""

from __future__ import annotations

from preflight import Job, Unverified, Value
from preflight.lint.evidence import evidence
from preflight.loaders.document import Unknown
from preflight.source.hints import Any


def read(job: Job, *names: str) -> list[Any] | Unverified:
    """The effective values, None for what is not set; or what keeps them from being known."""
    values = [job.arguments.get(name) for name in names]
    unknown = next((value for value in values if isinstance(value.raw, Unknown)), None)
    return [value.raw for value in values] if unknown is None else Unverified(unknown.because)


def typed(job: Job, *names: str) -> list[Value]:
    """The typed values of the names, in their order."""
    return [value for name in names if (value := job.arguments.given(name)) is not None and value.setting is not None]


def place_of(job: Job, site: str) -> str | None:
    """The file and line of one statement of Megatron at the release that takes part."""
    known = evidence("megatron")
    return None if known is None else known.site(site, job.versions["megatron"])


def core(job: Job) -> str:
    """The version of Megatron core that takes part."""
    return job.versions["megatron"]
