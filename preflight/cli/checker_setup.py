"""Creates a checker from options: settings, plugins, the files of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

from preflight.checking.checked_sources import Workspace, display
from preflight.checking.configured_checker import Checker
from preflight.checking.discovery import Named, Wanted, discover
from preflight.checking.engine import Report
from preflight.checking.file_failures import unreadable
from preflight.checking.folder_settings import Nearest, own_devices, usable
from preflight.checking.request_validation import verify_program
from preflight.cli.options import AtSite, Inputs, JobFacts, Rules, listed
from preflight.loaders.file_kinds import is_script
from preflight.plugins import manager as plugins
from preflight.report.source_excerpts_and_escapes import plain
from preflight.run import project_settings
from preflight.run.project_settings import Choice, Facts, Settings
from preflight.run.request import SiteRequest
from preflight.run.settings_files import Search
from preflight.source.finding import Message
from preflight.source.source_file import InputError, Source, read_all
from preflight.source.spelling import did_you_mean
from preflight.source.translation import local
from preflight.source.typing_without_import import TextIO

STDIN = "-"
MANY = 20
SHELLS = ("bash", "sh", "sbatch", "source")
"""The commands that run the script given after them."""


class UnreadableSettings(InputError):
    """A pyproject.toml above the working directory that cannot be read: it may contain settings."""


def read_settings(rules: Rules, search: Search) -> Settings:
    """The settings that apply to a call. Raises InputError if they are unusable."""
    if rules.isolated:
        return Settings(root=Path.cwd())
    path = Path(rules.config) if rules.config else _nearest(search)
    if path is None:
        return Settings(root=Path.cwd())
    return usable(path)


def _nearest(search: Search) -> Path | None:
    """The settings file that applies here. Raises UnreadableSettings if a candidate cannot be read."""
    try:
        return search.nearest(Path.cwd())
    except InputError as error:
        raise UnreadableSettings(error.message, error.path, error.line, error.column) from None
    except OSError as error:
        raise UnreadableSettings(f"cannot be read: {error.strerror}", str(error.filename)) from None


def checker(facts: JobFacts, rules: Rules, *, lenient: bool = False, at: AtSite = AtSite()) -> Checker:
    """A checker for a call. Raises InputError, or PluginError if a plugin is broken.

    lenient: a pyproject.toml that cannot be read is reported together with what is found without it.
    """
    broken, search = None, Search(_tell_ignored)
    try:
        found = read_settings(rules, search)
    except UnreadableSettings as error:
        if not lenient:
            raise
        found, broken = Settings(root=Path.cwd()), error
    made = _checker(found, facts, rules, at)
    made.broken, made.isolated, made.ignored = broken, rules.isolated, search.ignored
    made.prove = _proved
    made.look_around(())
    if not (rules.isolated or rules.config):
        made.nearest = Nearest(made, lambda nested: _checker(nested, facts, rules, at), search)
    return made


def _tell_ignored(path: str, why: str) -> None:
    """Report which settings are ignored, and why."""
    text = local(Message("these settings are ignored: {why}; --config FILE uses them", why=why))
    print(f"preflight: {plain(display(Path(path)))}: {text}", file=sys.stderr)


def _proved(workspace: Workspace, report: Report, whole: Workspace | None) -> Report:
    """The proven fixes of a report; loaded only if something is offered."""
    from preflight.fix.proven_fixes import with_proven_offers

    return with_proven_offers(workspace, report, whole)


def _checker(found: Settings, facts: JobFacts, rules: Rules, at: AtSite) -> Checker:
    loaded = plugins.load(own_devices(found))
    least = rules.min_severity or ""
    if least and least not in project_settings.SEVERITIES:
        hint = did_you_mean(least, project_settings.SEVERITIES)
        raise InputError(
            f"--min-severity must be one of {', '.join(reversed(project_settings.SEVERITIES))}, not {least!r}{hint}"
        )
    made = Checker(found, loaded, facts_of(facts), Choice(listed(rules.select), listed(rules.ignore), least))
    made.site = site_of(at, found)
    for old, new in made.renamed.items():
        text = local(Message("rule {old!r} is now named {name!r}; the former name still works", old=old, name=new))
        print(f"preflight: {text}", file=sys.stderr)
    return made


SCHEDULERS = ("slurm",)


def site_of(at: AtSite, found: Settings) -> SiteRequest | None:
    """How to examine this machine as the place of the job; None without --site. Raises InputError for options that
    require --site."""
    if not at.site:
        for name, value in (("python", at.python), ("inventory", at.inventory), ("scheduler", at.scheduler)):
            if value is not None:
                raise InputError(f"--{name} needs --site, because no data, checkpoints or nodes are checked without it")
        return None
    if at.scheduler is not None and at.scheduler not in SCHEDULERS:
        raise InputError(
            f"--site={at.scheduler} names no scheduler that preflight can query; it must be {SCHEDULERS[0]}"
        )
    return found.site._replace(
        python=at.python or found.site.python,
        inventory=at.inventory or found.site.inventory,
        scheduler=at.scheduler or "",
    )


def facts_of(facts: JobFacts) -> Facts:
    """The options of a call about its jobs. Raises InputError for a name without a value."""
    said: dict[str, str] = {}
    for word in facts.set or ():
        name, equals, value = word.partition("=")
        if not equals or not name.lstrip("-"):
            raise InputError(f"--set {word} is not NAME=VALUE")
        said[name.lstrip("-")] = value
    stated = (facts.world_size, facts.nodes, facts.devices_per_node, facts.device, facts.target)
    made = Facts(*stated, said or None, facts.program, facts.network)
    verify_program(made)
    return made


def reports(check: Checker, inputs: Inputs, command: list[str] | None) -> Iterator[Report]:
    """One report per file, stdin and command of a call, in the order of completion."""
    yield from typed(check, inputs, command)
    files = named(check, inputs)
    progress = counter(len(files), sys.stderr)
    for number, item in enumerate(files, 1):
        progress(number)
        yield check.check_file(item, lenient=inputs.allow_unclaimed)
    progress(0)


def typed(check: Checker, inputs: Inputs, command: list[str] | None) -> Iterator[Report]:
    """The reports of inputs that are not files: stdin and a command. Raises InputError if a call names no input."""
    paths = inputs.paths or []
    if not paths and command is None:
        raise InputError(
            "nothing to check; pass files, folders (. for the working directory), - for stdin, or -- and a command"
        )
    if check.broken is not None:
        yield unreadable(check.broken)
    if STDIN in paths:
        yield check.check_source(read_stdin(inputs), asked=not inputs.allow_unclaimed)
    if command is not None:
        from preflight.loaders.command_line import load_command

        yield check.check_command(load_command(command))


def named(check: Checker, inputs: Inputs) -> list[Named]:
    """The files of a call, in order."""
    paths = [path for path in inputs.paths or [] if path != STDIN]
    check.look_around(paths)
    excluded = listed(inputs.exclude)
    wanted = Wanted(excluded, listed(inputs.include), markdown=inputs.include_markdown)
    ignored = None if inputs.no_gitignore or check.isolated else _ignored
    found = list(discover(paths, check.settings_of, wanted, force=inputs.force_exclude, ignored=ignored))
    for item in found:  # before worker processes start, so that faults in settings are reported once
        check.settings_of(item.path)
    return found


def _ignored(folder: Path, files: Sequence[Path]) -> Set[Path]:
    """The files below a folder that git ignores; explicitly named files are not looked up."""
    from preflight.checking.discovery import ignored_by_git

    return ignored_by_git(folder, files)


def read_stdin(inputs: Inputs) -> Source:
    """The text on stdin, under the name it is given."""
    name = inputs.stdin_filename or "<stdin>"
    return Source.decode(
        read_all(sys.stdin.buffer.read, name), name, path=Path(name) if inputs.stdin_filename else None
    )


def started(command: list[str]) -> Source:
    """The text in which a command is fixed: the script that it runs, with its arguments, or the command itself. Raises
    InputError if the script cannot be read.
    """
    at = next((i for i, word in enumerate(command) if is_script(Source("", word)) and Path(word).is_file()), None)
    if at is None or Path(command[0]).name not in (*SHELLS, Path(command[at]).name):
        from preflight.loaders.command_line import load_command

        return load_command(command).source
    found = Source.read(Path(command[at]), command[at])
    found.arguments = tuple(command[at + 1 :])
    return found


def sources(check: Checker, inputs: Inputs, errors: list[InputError]) -> Iterator[tuple[Source, bool]]:
    """The texts of a call, stdin and files, each with a flag: the caller states that it is a config. Unreadable ones
    become errors. An unrelated file is skipped if the caller did not name it, or with --allow-unclaimed.
    """
    if STDIN in (inputs.paths or []):
        yield read_stdin(inputs), not inputs.allow_unclaimed
    for item in named(check, inputs):
        asked = item.asked and not inputs.allow_unclaimed
        if item.fault:
            errors.append(InputError(item.fault, item.name))
            continue
        try:
            source = Source.read(item.path, item.name)
        except InputError as error:
            if asked or not error.line:
                errors.append(error)
            continue
        yield source, asked


def counter(total: int, stream: TextIO) -> Callable[[int], None]:
    """Prints a progress counter of files on a terminal if there are many; 0 clears the counter."""
    if total < MANY or not stream.isatty():
        return lambda number: None

    def progress(number: int) -> None:
        stream.write(f"\rchecking {number}/{total}" if number else "\r\x1b[K")
        stream.flush()

    return progress
