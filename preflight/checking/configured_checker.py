"""Checks files as the settings and the caller require: which rules run where, which facts hold for which file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path

from preflight.checking.checked_sources import Workspace
from preflight.checking.discovery import Named
from preflight.checking.engine import UNUSED, Policy, Report
from preflight.checking.file_failures import attempted, unreadable
from preflight.checking.request_validation import verify_facts, verify_ids, verify_options
from preflight.job import Job
from preflight.lint.suppression import present, renamed_by, with_present_names
from preflight.loaders.document import Document
from preflight.plugins.manager import Plugins
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.run.cluster import network_rate
from preflight.run.project_settings import SEVERITIES, Choice, Facts, Measured, Settings
from preflight.run.request import Given, NamesRead, Request, SiteRequest, Target
from preflight.source.budget import CHECK_SECONDS, SEARCH_SECONDS
from preflight.source.finding import Finding, Related
from preflight.source.record import dataclass, replace
from preflight.source.source_file import InputError, Source
from preflight.source.typing_without_import import Any

ALSO = "same message here"


def fold_alike(report: Report) -> Report:
    """The report with one finding for a fault that several launches of a manifest have on lines with the same text."""
    manifests = [job.documents[0].source.name for job in report.jobs if job.documents[0].kind == "manifest"]
    several = {name for name in manifests if manifests.count(name) > 1}
    if not several:
        return report
    first: dict[tuple[str, ...], int] = {}
    kept: list[Finding] = []
    for finding in report.findings:
        key = _identity(finding)
        if finding.path in several and key in first:
            at = first[key]
            kept[at] = replace(kept[at], related=(*kept[at].related, Related(finding.span, ALSO)))
            continue
        first.setdefault(key, len(kept))
        kept.append(finding)
    return replace(report, findings=tuple(kept))


def _identity(finding: Finding) -> tuple[str, ...]:
    line = finding.span.source.line(finding.line).strip()
    return finding.path, finding.rule, str(finding.severity), finding.message, line


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A measured run, as the settings describe it. Its figures raise InputError if there is no estimate."""

    run: Measured
    settings: Settings
    plugins: Plugins
    policy: Policy

    @property
    def beyond(self) -> float:
        """Bytes beyond the estimate; 0 if memory was not measured."""
        if self.run.peak is None:
            return 0.0
        from preflight.memory.device_need import beyond

        estimate = self._job().memory
        if estimate.worst is None:
            raise self._unknown(estimate.unknown)
        return beyond(estimate.worst, self.run.peak)

    @property
    def pace(self) -> float:
        """The estimated time divided by the measured time; 1 if no step was measured."""
        if self.run.step is None:
            return 1.0
        from preflight.steptime import estimate

        job = self._job()
        found = estimate(job.plan, job.cluster)
        if found.seconds is None:
            raise self._unknown(found.unknown)
        return found.seconds / self.run.step

    def _unknown(self, reasons: tuple[str, ...]) -> InputError:
        return InputError(f"cannot estimate the measured run: {'; '.join(reasons)}", self.run.config)

    def _job(self) -> Job:
        path = self.settings.root / self.run.config
        facts = self.run.facts.over(self.settings.facts)
        target = Target.parse(facts.target) if facts.target else None
        request = with_network(Request(*facts[:4], target), facts)
        report = Workspace([Source.read(path, self.run.config)], self.plugins, request, self.policy).check()
        if not report.jobs:
            raise self._unknown(("preflight does not know this config",))
        return report.jobs[0]


Suggest = Callable[[Workspace, Report], Report]
"""Adds layouts that would fix an error to the findings of a report."""
Prove = Callable[[Workspace, Report, "Workspace | None"], Report]
"""Keeps only the proven fixes in a report; they are proven under every rule if the last argument is given."""


def with_network(request: Request, facts: Facts) -> Request:
    """The request with the links and the software of the cluster, if they are stated."""
    network = network_rate(facts.network) if facts.network else None
    software = float(facts.software) if facts.software else None
    return request._replace(network=network, link=facts.link * 1e9 if facts.link else None, software=software)


def with_present_rules(choice: Choice, settings: Settings) -> tuple[Choice, Settings, Mapping[str, str]]:
    """A choice and settings with the present names of rules, and the former names that they used."""
    choices = (choice, settings.choice, *(part.choice for part in settings.per_file))
    patterns = [name for one in choices for name in (*one.select, *one.ignore)]
    if not patterns and not settings.options:
        return choice, settings, {}
    found = dict(renamed_by((*patterns, *settings.options)))
    if not found:
        return choice, settings, {}

    def now(one: Choice) -> Choice:
        return one._replace(select=with_present_names(one.select), ignore=with_present_names(one.ignore))

    settings = settings._replace(
        choice=now(settings.choice),
        per_file=tuple(part._replace(choice=now(part.choice)) for part in settings.per_file),
        options={present(rule): given for rule, given in settings.options.items()},
    )
    return now(choice), settings, found


class Checker:
    """Settings, the additions of the caller, and the plugins. Raises InputError for unknown ids and names.

    broken: why the settings could not be read; then the defaults apply. ignored: settings that another user may have
    written, with the reason. names: the names set by the call that the files read. isolated: nothing is opened outside
    of what the call names. renamed: former names of rules that the choice or the settings use, with the present ones.
    """

    def __init__(self, settings: Settings, plugins: Plugins, facts: Facts = Facts(), choice: Choice = Choice()) -> None:
        choice, settings, self.renamed = with_present_rules(choice, settings)
        self.settings, self.plugins, self.facts = settings, plugins, facts
        self.checkouts, self.isolated = Checkouts(), False
        self.broken: InputError | None = None
        self.ignored: Mapping[str, str] = {}
        self.names = NamesRead()
        self.site: SiteRequest | None = None  # the files that a run names are also checked
        self.folders: list[Checker] = []  # checkers for the settings of other folders
        self.suggest: Suggest | None = None  # adds other layouts to the findings that they fix
        self.prove: Prove | None = None  # keeps only the proven fixes; None if fixes are not shown
        self.nearest: Callable[[Path], Checker] | None = (
            None  # returns the checker for a file, according to the nearest settings
        )
        self.named = choice.over(settings.choice)
        """The choice as it is written, with the names of groups."""
        self.choice = self.named
        self._verify_names(choice)
        self._expand()
        self.policy = Policy(self._chooser(), settings.options, reported=self._reported())

    def look_around(self, paths: Iterable[str]) -> None:
        """The folders of a call, in and above which checkouts are looked for; isolated: only in them."""
        self.checkouts = Checkouts(paths, isolated=self.isolated)
        if self.site is not None:
            self.site = self.site._replace(kept={})

    @property
    def errors_only(self) -> bool:
        """Whether only those rules run whose findings can be errors."""
        return self.policy.errors_only

    def ask_for_errors_only(self) -> None:
        """Run only the rules whose findings can be errors, and offer no fixes: used when only the validity of a run
        matters."""
        self.policy, self.prove = self.policy._replace(errors_only=True), None

    def of(self, path: Path | None) -> Checker:
        """The checker for a file: the one whose settings are nearest to it. Raises InputError for broken settings."""
        return self if path is None or self.nearest is None else self.nearest(path)

    def settings_of(self, path: Path) -> Settings:
        """The settings that apply to a file; if they are broken, those of the call: checking the file reports
        why."""
        try:
            return self.of(path).settings
        except InputError:
            return self.settings

    def every_settings(self) -> tuple[Settings, ...]:
        """The settings of the call, and those of the folders searched so far."""
        return (self.settings, *(found.settings for found in self.folders))

    def request(self, path: Path | None) -> Request:
        """The facts that apply to a file."""
        facts = self.settings.facts
        for part in self.settings.matching(path) if path is not None and self.settings.per_file else ():
            facts = part.facts.over(facts)
        facts = self.facts.over(facts)
        target = Target.parse(facts.target) if facts.target else None
        given = Given(facts.set or {}, self.names)
        said = Request(*facts[:4], target, given=given, program=facts.program or "")
        said = said._replace(measured=self.measured, pace=self.pace, factors=self.settings.factors)
        said = with_network(said, facts)
        return said._replace(source_path=self.settings.source_path, site=self.site)

    @cached_property
    def measured(self) -> float:
        """Bytes that the measured run of the settings needed beyond its estimate. Raises InputError if there is
        none."""
        return self._run.beyond if self._run is not None else 0.0

    @cached_property
    def pace(self) -> float:
        """The estimated time of the measured run divided by its measured time. Raises InputError if there is none."""
        return self._run.pace if self._run is not None else 1.0

    @cached_property
    def _run(self) -> MeasuredRun | None:
        if (run := self.settings.measured) is None:
            return None

        return MeasuredRun(run, self.settings, self.plugins, self.policy)

    def workspace(self, sources: Iterable[Source]) -> Workspace:
        """The sources with the facts of the first of them."""
        sources = tuple(sources)
        path = sources[0].path if sources else None
        near = self.of(path)
        return Workspace(sources, near.plugins, near.request(path), near.policy, self.checkouts)

    def _suggested(self, workspace: Workspace, report: Report) -> Report:
        """The report with alternative layouts if they are requested, and with only the proven fixes."""
        report = report if self.suggest is None else self.suggest(workspace, report)
        if self.prove is None or all(finding.fix is None for finding in report.findings):
            return report
        return self.prove(workspace, report, self._under_every_rule(workspace))

    def _under_every_rule(self, workspace: Workspace) -> Workspace | None:
        """The same texts with every rule enabled; None if the workspace has every rule enabled."""
        near = self.of(workspace.sources[0].path)
        if near.choice == Choice() and not near.settings.per_file:
            return None
        every = Policy(options=workspace.policy.options)
        return Workspace(workspace.sources, workspace.plugins, workspace.request, every, workspace.checkouts)

    def check_command(self, document: Document) -> Report:
        """Check a command line."""
        workspace = self.workspace([document.source])
        try:
            return attempted(document.source.name, lambda: self._suggested(workspace, workspace.check()), self._seconds)
        except InputError as error:
            return unreadable(error)

    def check_source(self, source: Source, *, asked: bool = True) -> Report:
        """Check a file that has been read. asked: the caller states that it is a config, so it must be readable."""
        return attempted(source.name, lambda: self._checked(source, asked), self._seconds)

    @property
    def _seconds(self) -> float:
        return CHECK_SECONDS if self.suggest is None else SEARCH_SECONDS

    def _checked(self, source: Source, asked: bool) -> Report:
        try:
            workspace = self.workspace([source])
        except InputError as error:  # settings next to it
            return unreadable(error)
        try:
            report = fold_alike(self._suggested(workspace, workspace.check()))
            if not asked or report.skipped != (source.name,):
                return report
            from preflight.checking.file_failures import with_refused_scripts, with_refused_shape

            report = with_refused_scripts(report, (source,), workspace.policy.wants)
            return with_refused_shape(report, source, self.plugins, workspace.request)
        except InputError as error:
            return unreadable(error) if self.ours(source, error, asked=asked) else Report(skipped=(source.name,))

    def whole(self, source: Source) -> Workspace:
        """A source under all rules, selected or not: fixes are proven against it."""
        near = self.of(source.path)
        every = Policy(options=near.settings.options)
        return Workspace([source], near.plugins, near.request(source.path), every, self.checkouts)

    def check_file(self, named: Named, *, lenient: bool = False) -> Report:
        """Check one file. lenient: a broken file that is not a config passes even if it was named."""
        if named.fault:
            return unreadable(InputError(named.fault, named.name))
        try:
            source = Source.read(named.path, named.name)
        except InputError as error:
            foreign = os.path.isfile(named.path) and (lenient or not named.asked) and bool(error.line)
            return Report(skipped=(named.name,)) if foreign else unreadable(error)
        return self.check_source(source, asked=named.asked and not lenient)

    def ours(self, source: Source, error: InputError, *, asked: bool = False) -> bool:
        """Whether an unreadable file is a config: the caller states so, or a dialect claims its readable lines."""
        from preflight.checking.file_failures import claimed_in_part, is_template

        if is_template(source):
            return False
        return asked or claimed_in_part(source, error, self.plugins.dialects, self.request(source.path))

    def _chooser(self) -> Any:
        if not self.settings.per_file:
            if self.choice == Choice():
                return lambda rule, path: True
            cache: dict[str, bool] = {}

            def chosen(rule: str, path: str) -> bool:
                found = cache.get(rule)
                if found is None:
                    found = cache[rule] = self.choice.takes(rule)
                return found

            return chosen
        return lambda rule, path: all(choice.takes(rule) for choice in self._choices(path))

    def _expand(self) -> None:
        """Replace the name of a group with its rules."""
        parts = self.settings.per_file
        if not any((*choice.select, *choice.ignore) for choice in (self.named, *(part.choice for part in parts))):
            return
        from preflight.checking.request_validation import expanded, grouped

        groups = grouped(self.plugins.rules(None))
        self.choice = expanded(self.named, groups)
        per_file = tuple(part._replace(choice=expanded(part.choice, groups)) for part in parts)
        self.settings = self.settings._replace(per_file=per_file)

    def _reported(self) -> Callable[[Finding], bool] | None:
        """Whether a finding of a rule that ran is reported; None if every one is."""
        if not any(choice.by_severity for choice in (self.choice, *(part.choice for part in self.settings.per_file))):
            return None
        return lambda f: all(choice.keeps(f.rule, str(f.severity)) for choice in self._choices(f.path))

    def _choices(self, path: str) -> tuple[Choice, ...]:
        return (self.choice, *(part.choice for part in self.settings.matching(Path(path))))

    def _verify_names(self, choice: Choice) -> None:
        self._verify([choice], [self.facts], {})
        settings = self.settings
        try:
            choices = (settings.choice, *(part.choice for part in settings.per_file))
            facts = (settings.facts, *(part.facts for part in settings.per_file))
            self._verify(choices, facts, settings.options)
        except InputError as error:
            raise InputError(error.message, str(settings.path or "")) from None

    def _verify(
        self, choices: Iterable[Choice], every_facts: Iterable[Facts], every_options: Mapping[str, Mapping[str, Any]]
    ) -> None:
        patterns = list(chain.from_iterable((*choice.select, *choice.ignore) for choice in choices))
        if patterns or every_options:
            from preflight.checking.request_validation import grouped

            rules = {rule.id: rule for rule in self.plugins.rules(None)}
            verify_ids(patterns, [*rules, UNUSED], (*SEVERITIES, *grouped(rules.values())))
            verify_ids(every_options, rules)
            for id, options in every_options.items():
                verify_options(rules[id], options)
        for facts in every_facts:
            verify_facts(facts, self.plugins)
