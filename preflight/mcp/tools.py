"""The functions behind the server's tools: from a folder and arguments to JSON data."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflight.checking.configured_checker import Checker, Suggest
from preflight.checking.discovery import Named, Wanted, discover
from preflight.checking.engine import Report
from preflight.checking.file_failures import unreadable
from preflight.checking.folder_settings import own_devices, usable
from preflight.checking.merged_reports import merge
from preflight.mcp.folder import Folder
from preflight.plugins import manager as plugins
from preflight.run.project_settings import Facts, Settings
from preflight.run.settings_files import Search
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source

MOST_FILES = 500
"""Maximum number of files checked by one call."""
TEXT = "<text>"
"""The name of a log that is not a file."""


class Job(NamedTuple):
    """Facts about the job, accepted by every tool; None means that the files determine it."""

    world_size: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    device: str | None = None
    target: str | None = None
    set: Mapping[str, str] | None = None

    @property
    def facts(self) -> Facts:
        """The same for a checker."""
        return Facts(*self)


def checker(folder: Folder, job: Job, near: Path) -> Checker:
    """The checker of a file, with the nearest settings inside the folder. Raises InputError."""
    start = near if near.is_dir() else near.parent
    found = next(
        (path for one in (start, *start.parents) if folder.holds(one) if (path := _settings(one, start))), None
    )
    held = usable(found) if found is not None else Settings(root=folder.root)
    made = Checker(held, plugins.load(own_devices(held)), job.facts)
    made.prove = _proved
    made.look_around([str(near)])
    return made


def _settings(folder: Path, start: Path) -> Path | None:
    return Search().within(folder, start)


def _proved(workspace: Any, report: Report, whole: Any) -> Report:
    from preflight.fix.proven_fixes import with_proven_offers

    return with_proven_offers(workspace, report, whole)


def either(path: str | None, paths: Sequence[str] | None) -> list[str]:
    """The paths of a call, which names one or several. Raises InputError."""
    found = [*([path] if path is not None else []), *(paths or ())]
    if not found:
        raise InputError("check needs `path` or `paths`")
    return found


def check(folder: Folder, paths: Iterable[str], text: str | None, job: Job) -> dict[str, Any]:
    """The report on files and folders, by the schema `report`. text: unsaved content of the single path."""
    from preflight.report.json import as_dict

    names = list(paths)
    if text is not None:
        if len(names) != 1:
            raise InputError("text needs exactly one path")
        source = folder.source(names[0], text)
        return as_dict(checker(folder, job, folder.path(names[0])).check_source(source))
    reports = []
    for item in _named(folder, names):
        try:
            made = checker(folder, job, item.path)
        except InputError as error:
            reports.append(unreadable(error))
            continue
        reports.append(made.check_file(item))
    return as_dict(merge(reports))


def _named(folder: Folder, names: Iterable[str]) -> list[Named]:
    """The files of a call, named relative to the folder. Raises InputError."""
    paths = [str(folder.path(name)) for name in names]
    held = Settings(root=folder.root)
    found = [item for item in discover(paths, lambda path: held, Wanted()) if folder.holds(item.path)]
    if len(found) > MOST_FILES:
        raise InputError(f"{len(found)} files, but a call checks at most {MOST_FILES}; name a smaller folder")
    return [item._replace(name=_shown(folder, item.path)) for item in found]


def _shown(folder: Folder, path: Path) -> str:
    try:
        return path.relative_to(folder.root).as_posix()
    except ValueError:
        return str(path)


def fix(folder: Folder, path: str, text: str | None, unsafe: bool, job: Job) -> dict[str, Any]:
    """The proven fixes of a file as a unified diff; nothing is written."""
    from preflight.fix.fixer import fix_source

    source = folder.source(path, text)
    suggest = _suggest() if unsafe else None
    made = checker(folder, job, folder.path(path))
    result = fix_source(made, source, unsafe=unsafe, suggest=suggest, inside=lambda one: _inside(folder, one))
    outcomes = [
        {
            "rule": one.finding.rule,
            "line": one.finding.line,
            "message": one.finding.message,
            "state": one.state,
            "detail": one.detail,
        }
        for one in result.outcomes
    ]
    return {
        "schema": 1,
        "patch": "".join(_patch(result.before[name], new) for name, new in result.edited.items()),
        "files": {name: new.text for name, new in result.edited.items()},
        "outcomes": outcomes,
    }


def _suggest() -> Suggest:
    from preflight.layouts.layout_fixes import suggest

    return suggest


def _inside(folder: Folder, source: Source) -> bool:
    return source.path is not None and folder.holds(source.path)


def _patch(old: Source, new: Source) -> str:
    """A change in the format of `git apply` and `patch -p1`."""
    lines = difflib.unified_diff(
        old.text.splitlines(keepends=True), new.text.splitlines(keepends=True), f"a/{old.name}", f"b/{new.name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def explain(rule: str) -> dict[str, Any]:
    """The page of a rule. Raises InputError for an unknown one."""
    from preflight.report.rule_pages import documented, named, rule_page, section_url

    known = {item.id: item for item in documented(plugins.load().rules(None))}
    found = known[named(rule, known)]
    return {
        "rule": found.id,
        "severity": str(found.severity),
        "summary": found.summary,
        "page": rule_page(found),
        "url": section_url(found.id),
    }


def memory(folder: Folder, path: str, text: str | None, job: Job) -> dict[str, Any]:
    """The memory of each run of a file, as `preflight memory -f json` prints it."""
    from preflight.report.memory import answer, memory_dict

    report = _report(folder, path, text, job)
    runs = [{"answer": answer(one), **memory_dict(one)} for one in report.jobs]
    return {"schema": 1, "runs": runs, "errors": _errors(report)}


def layouts(folder: Folder, path: str, text: str | None, show: int, job: Job) -> dict[str, Any]:
    """Layouts of each run of a file that pass the rules and fit, as `preflight layouts -f json` prints them."""
    from preflight.layouts.multi_file_search import every_run
    from preflight.layouts.search_inputs import Limits
    from preflight.report.layouts import layouts_dict

    workspace = checker(folder, job, folder.path(path)).workspace([folder.source(path, text)])
    found = every_run(workspace, Limits(show=max(1, show)), None)
    return {"schema": 1, "files": [layouts_dict(path, result, number) for number, result in enumerate(found, 1)]}


def why(folder: Folder, paths: Iterable[str], text: str | None, run: str | None, job: Job) -> dict[str, Any]:
    """Why a job died, in the schema `why`. text: log content that is not in a file; run: the config."""
    from preflight.logs.diagnosis import diagnosed
    from preflight.logs.failures import Failures
    from preflight.logs.files import log
    from preflight.logs.matching_findings import behind
    from preflight.logs.relevant_lines import lines_of_interest
    from preflight.report.failure_diagnosis import why_dict

    logs, failures = _logs(folder, paths), Failures()
    if not logs and text is None:
        raise InputError("no log given; pass paths of files or folders, or text")
    for path in logs:
        with log(str(path)) as file:
            failures.read(_shown(folder, path), lines_of_interest(file, failures.full))
    if text is not None:
        failures.read(TEXT, lines_of_interest(io.BytesIO(text.encode("utf-8", "replace"))))
    found = diagnosed(failures.found)
    report = checker(folder, job, folder.path(run)).check_source(folder.source(run)) if run is not None else None
    names = [*(_shown(folder, path) for path in logs), *([TEXT] if text is not None else [])]
    return why_dict(found, behind(found, report) if report is not None else None, names)


def _logs(folder: Folder, names: Iterable[str]) -> list[Path]:
    """The log files of these names; pipes are refused. Raises InputError."""
    from preflight.logs.files import opened

    paths = [Path(path) for path in opened([str(folder.path(name)) for name in names]) if folder.holds(path)]
    for path in paths:
        if not path.is_file():
            raise InputError("is not a file", _shown(folder, path))
    return paths


def migrate(folder: Folder, path: str, to: str, job: Job) -> dict[str, Any]:
    """The changes for each run of a file in another release, as printed by `preflight migrate -f json`."""
    from preflight.checking.migration_effects import migrations
    from preflight.checking.request_validation import verify_facts, verify_release
    from preflight.report.migration import migration_dict
    from preflight.run.request import Target

    made = checker(folder, job, folder.path(path))
    verify_facts(Facts(target=to), made.plugins)
    verify_release(to, made.plugins)
    found = migrations(made, folder.source(path), Target.parse(to))
    return {"schema": 1, "runs": [migration_dict(one) for one in found]}


def _report(folder: Folder, path: str, text: str | None, job: Job) -> Report:
    made = checker(folder, job, folder.path(path))
    made.ask_for_errors_only()
    return made.check_source(folder.source(path, text))


def _errors(report: Report) -> list[dict[str, Any]]:
    return [error._asdict() for error in report.errors]
