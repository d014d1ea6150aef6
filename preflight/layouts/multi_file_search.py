"""Layouts of many files, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from os import PathLike
from pathlib import Path

from preflight.checking.checked_sources import Workspace
from preflight.fix.trial_edits import Attempts
from preflight.layouts.result import Result
from preflight.layouts.search import Progress, search
from preflight.layouts.search_inputs import Limits
from preflight.plugins.manager import Plugins, load
from preflight.run.request import Request, Target
from preflight.source.source_file import Source
from preflight.source.typing_without_import import Any, Protocol

NO_CONFIG = "this is not recognized as a training config"


class Executor(Protocol):
    """Objects that run work: executors of concurrent.futures, a dask.distributed client, and similar ones."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


def layouts(
    path: str | PathLike[str],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    limits: Limits = Limits(),
) -> tuple[Result, ...]:
    """The layouts of every run of a file. Raises InputError for a file that cannot be read."""
    wanted = Target.parse(target) if isinstance(target, str) else target
    request = Request(world_size=world_size, device=device, target=wanted)
    return every_run(Workspace([Source.read(Path(path), str(path))], _installed(), request), limits)


@cache
def _installed() -> Plugins:
    """Loaded once per process."""
    return load()


def every_run(workspace: Workspace, limits: Limits, progress: Progress | None = None) -> tuple[Result, ...]:
    """The layouts of every run of a workspace; one result with the reason if there is none."""
    report = workspace.check()
    found = []
    for job in report.jobs:
        if job.arguments.relayout is None:
            found.append(Result(unknown=f"layouts of {job.target} cannot be written"))
        else:
            others = frozenset((f.rule, f.message) for f in report.findings)
            found.append(
                search(
                    job,
                    job.arguments.relayout,
                    Attempts(workspace, report, job),
                    limits._replace(others=others),
                    progress,
                )
            )
    return tuple(found) or (Result(unknown=NO_CONFIG),)


def sweep(
    paths: Iterable[str | PathLike[str]], *, executor: Executor | None = None, **how: Any
) -> dict[str, tuple[Result, ...]]:
    """Layouts of many files by path, in order. executor: runs the work; how: the arguments of `layouts`."""
    names = [str(path) for path in paths]
    work: Callable[..., tuple[Result, ...]] = partial(layouts, **how)
    if executor is None:
        return {name: work(name) for name in names}
    futures = [executor.submit(work, name) for name in names]
    return {name: future.result() for name, future in zip(names, futures, strict=True)}
