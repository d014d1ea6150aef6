"""preflight from Python: check files, a command, or a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Policy, Report
from preflight.checking.file_failures import with_refused_shape
from preflight.checking.request_validation import verify_facts, verify_program
from preflight.job import Job
from preflight.memory import MemoryEstimate, estimate
from preflight.plugins.manager import Plugins
from preflight.plugins.manager import load as load_plugins
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.run.cluster import Cluster, Device, find_device
from preflight.run.project_settings import Choice, Facts, Settings
from preflight.run.request import Request, Target
from preflight.run.training_plan import Plan
from preflight.source.finding import Finding, Severity
from preflight.source.source_file import InputError, Source
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.checking.comparison import Comparison
    from preflight.steptime import StepTimeEstimate


@lru_cache(maxsize=1)
def installed() -> Plugins:
    """The installed plugins, loaded once per process."""
    return load_plugins()


def request(
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    env: Mapping[str, str] | None = None,
    follow: bool = True,
    program: str | PathLike[str] | None = None,
    machine: Mapping[str, str] | None = None,
) -> Request:
    """A Request from plain values. target: "mindformers@1.5.0" or a Target. Raises InputError for a device or framework
    that is unknown, and for a program that is not a folder."""
    source = str(program) if program is not None else None
    facts = Facts(world_size, device=device, target=str(target) if target else None, program=source)
    verify_facts(facts, installed())
    verify_program(facts)
    wanted = Target.parse(target) if isinstance(target, str) else target
    return Request(
        world_size=world_size,
        device=device,
        target=wanted,
        environment=dict(env or {}),
        follow=follow,
        program=source or "",
        machine=dict(machine or {}),
    )


def policy(select: Iterable[str] = ()) -> Policy:
    """The rules that run: those selected by id (with `*`), group or severity, or all if none is selected. Raises
    InputError for an unknown one."""
    if not (wanted := tuple(select)):
        return Policy()
    from preflight.checking.configured_checker import Checker

    return Checker(Settings(), installed(), choice=Choice(wanted)).policy


def check(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    env: Mapping[str, str] | None = None,
    program: str | PathLike[str] | None = None,
    machine: Mapping[str, str] | None = None,
    select: Iterable[str] = (),
) -> Report:
    """Check config files. Raises InputError for a file that cannot be read.

    program: the source that runs, a checkout or an environment. machine: versions of packages where it will run.
    select: the rules to run; all if none is given.
    """
    names = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    sources = [Source.read(Path(name), str(name)) for name in names]
    around = Checkouts([str(name) for name in names])
    asked = request(world_size, device, target, env, program=program, machine=machine)
    report = _proven(Workspace(sources, installed(), asked, policy(select), around))
    if len(sources) != 1:
        return report
    return with_refused_shape(_told(report, sources[0], policy(select)), sources[0], installed(), asked)


def _told(report: Report, source: Source, asked: Policy) -> Report:
    """A report of one source; for a script that bash refuses, with the place."""
    from preflight.checking.file_failures import with_refused_scripts

    return with_refused_scripts(report, (source,), asked.wants)


def _proven(workspace: Workspace) -> Report:
    """The report of a workspace, with only those of its fixes that are proven."""
    report = workspace.check()
    if all(finding.fix is None for finding in report.findings):
        return report
    from preflight.fix.proven_fixes import with_proven_offers

    return with_proven_offers(workspace, report)


def check_text(
    text: str,
    *,
    name: str = "run.yaml",
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    program: str | PathLike[str] | None = None,
    machine: Mapping[str, str] | None = None,
    select: Iterable[str] = (),
) -> Report:
    """Check a config given as text; YAML or script by its name. program, machine, select: as for check."""
    source = Source.decode(text.encode("utf-8"), name, path=Path(name))
    try:
        asked = request(world_size, device, target, program=program, machine=machine)
        report = _proven(Workspace([source], installed(), asked, policy(select)))
        return with_refused_shape(_told(report, source, policy(select)), source, installed(), asked)
    except InputError as error:
        return unreadable(source, error, target)


def unreadable(source: Source, error: InputError, target: str | Target | None = None) -> Report:
    """The report of a text that cannot be parsed: one error at the place,
    and where the target's framework makes the same check."""
    known = 0 < error.line <= len(source.starts)  # a parser may point beyond the last line
    at = source.offset(error.line, error.column) if known else len(source.text) if error.line else 0
    wanted = Target.parse(target) if isinstance(target, str) else target
    tellers = (
        [dialect.refuses_text for dialect in installed().dialects if hasattr(dialect, "refuses_text")] if wanted else []
    )
    where = next((place for tell in tellers if (place := tell(wanted))), None)
    finding = Finding(
        error.message,
        source.span(min(at, len(source.text))),
        rule="unreadable",
        severity=Severity.ERROR,
        upstream=where,
    )
    return Report(findings=(finding,), checked=(source.name,))


def check_command(
    argv: Sequence[str],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    env: Mapping[str, str] | None = None,
    program: str | PathLike[str] | None = None,
    machine: Mapping[str, str] | None = None,
    select: Iterable[str] = (),
) -> Report:
    """Check a command given as a list of words: an entry script and its flags, with or without a launcher. program,
    machine, select: as for check."""
    from preflight.loaders.command_line import load_command

    asked = request(world_size, device, target, env, program=program, machine=machine)
    return _proven(Workspace([load_command(argv).source], installed(), asked, policy(select)))


def diff(
    before: str | PathLike[str],
    after: str | PathLike[str],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
) -> list[Comparison]:
    """What a change of a config, or of the configs of a folder, means for their runs, file by file.

    Raises InputError for a file that cannot be read.
    """
    from preflight.checking.comparison import comparisons
    from preflight.checking.configured_checker import Checker

    facts = Facts(world_size, device=device, target=str(target) if target else None)
    checker = Checker(Settings(root=Path.cwd()), installed(), facts)
    return list(comparisons(checker, (str(before), str(after))))


def estimate_memory(plan: Plan, device: Device | str | None = None) -> MemoryEstimate:
    """Memory per pipeline stage of a plan. Raises InputError for an unknown device name."""
    if isinstance(device, str):
        verify_facts(Facts(device=device), installed())
        device = find_device(installed().devices, device)
    return estimate(plan, Cluster(device=device))


def estimate_step_time(job: Job) -> StepTimeEstimate:
    """Seconds of a training step of a job, with its terms; if `.seconds` is None, `.unknown` gives the reason."""
    from preflight.steptime import estimate

    return estimate(job.plan, job.cluster)
