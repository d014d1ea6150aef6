"""Checks files as the settings and the caller want: which rules run where, which facts hold for which file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from preflight.cluster import Device
from preflight.discovery import Named
from preflight.document import Document
from preflight.engine import UNUSED, Policy, Report, Unreadable, order
from preflight.plugins import Plugins
from preflight.request import Request, Target
from preflight.settings import Choice, Facts, Settings
from preflight.source import InputError, Source
from preflight.verification import verify_facts, verify_ids, verify_options
from preflight.workspace import Workspace

if TYPE_CHECKING:
    from preflight.fixer import Fixed


class OwnDevices:
    """The devices of the settings, as a plugin."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices = devices

    def preflight_devices(self) -> tuple[Device, ...]:
        return self._devices


class Checker:
    """Settings, what the caller says beside them, and the plugins. Raises InputError for ids and names that nobody knows."""

    def __init__(self, settings: Settings, plugins: Plugins, facts: Facts = Facts(), choice: Choice = Choice()) -> None:
        self.settings, self.plugins, self.facts = settings, plugins, facts
        self.suggest = False  # put other layouts on the findings that they cure
        self.choice = Choice(choice.select or settings.choice.select, settings.choice.ignore + choice.ignore)
        self._verify_names(choice)
        self.policy = Policy(self._chooser(), settings.options)

    def request(self, path: Path | None) -> Request:
        """What is said about a file."""
        facts = self.settings.facts
        for part in self.settings.matching(path) if path is not None and self.settings.per_file else ():
            facts = part.facts.over(facts)
        facts = self.facts.over(facts)
        target = Target.parse(facts.target) if facts.target else None
        return Request(facts.world_size, facts.nodes, facts.devices_per_node, facts.device, target, measured=self.measured)

    @cached_property
    def measured(self) -> float:
        """Bytes that the measured run of the settings needed beyond its estimate; raises InputError where that cannot be estimated."""
        if (run := self.settings.measured) is None:
            return 0.0
        from preflight.memory.need import beyond

        path = self.settings.root / run.config
        facts = run.facts.over(self.settings.facts)
        target = Target.parse(facts.target) if facts.target else None
        request = Request(facts.world_size, facts.nodes, facts.devices_per_node, facts.device, target)
        report = Workspace([Source.read(path, run.config)], self.plugins, request, self.policy).check()
        estimates = [job.memory for job in report.jobs]
        if not estimates or estimates[0].worst is None:
            why = "; ".join(estimates[0].unknown) if estimates else "it is no config that is known"
            raise InputError(f"the measured run cannot be estimated: {why}", run.config)
        return beyond(estimates[0].worst, run.peak)

    def workspace(self, sources: Iterable[Source]) -> Workspace:
        """The sources with the facts of the first of them."""
        sources = tuple(sources)
        return Workspace(sources, self.plugins, self.request(sources[0].path if sources else None), self.policy)

    def _suggested(self, workspace: Workspace, report: Report) -> Report:
        if not self.suggest:
            return report
        from preflight.search.suggest import suggest

        return suggest(workspace, report)

    def check_command(self, document: Document) -> Report:
        """Check a command line."""
        workspace = self.workspace([document.source])
        try:
            return self._suggested(workspace, workspace.check())
        except InputError as error:
            return _unreadable(error)

    def check_source(self, source: Source, *, asked: bool = True) -> Report:
        """Check one file that was read. asked: the caller holds it for ours, so it must be readable."""
        workspace = self.workspace([source])
        try:
            return self._suggested(workspace, workspace.check())
        except InputError as error:
            return _unreadable(error) if self.ours(source, error, asked=asked) else Report(skipped=(source.name,))

    def fix(self, source: Source, *, unsafe: bool = False) -> Fixed:
        """Fix one file by the chosen rules, proven against all of them. Raises InputError where it cannot be read."""
        from preflight.fixer import fix
        from preflight.search.suggest import suggest

        workspace = Workspace([source], self.plugins, self.request(source.path), Policy(options=self.settings.options))
        return fix(workspace, unsafe=unsafe, wanted=self.policy.chosen, suggest=suggest if unsafe else None)

    def check_file(self, named: Named, *, lenient: bool = False) -> Report:
        """Check one file. lenient: a broken file that is not ours passes even when it was named."""
        try:
            source = Source.read(named.path, named.name)
        except InputError as error:
            foreign = os.path.isfile(named.path) and (lenient or not named.asked) and bool(error.line)
            return Report(skipped=(named.name,)) if foreign else _unreadable(error)
        return self.check_source(source, asked=named.asked and not lenient)

    def ours(self, source: Source, error: InputError, *, asked: bool = False) -> bool:
        """Whether a file that cannot be read is a config: because the caller says so, or of a dialect as far as its readable lines tell."""
        from preflight.salvage import claimed_in_part, is_template

        return not is_template(source) and (asked or claimed_in_part(source, error, self.plugins.dialects, self.request(source.path)))

    def _chooser(self) -> Any:
        if not self.settings.per_file:
            cache: dict[str, bool] = {}

            def chosen(rule: str, path: str) -> bool:
                found = cache.get(rule)
                if found is None:
                    found = cache[rule] = self.choice.takes(rule)
                return found

            return chosen
        return lambda rule, path: all(choice.takes(rule) for choice in self._choices(path))

    def _choices(self, path: str) -> tuple[Choice, ...]:
        return (self.choice, *(part.choice for part in self.settings.matching(Path(path))))

    def _verify_names(self, choice: Choice) -> None:
        self._verify([choice], [self.facts], {})
        settings = self.settings
        try:
            choices, facts = zip((settings.choice, settings.facts), *((part.choice, part.facts) for part in settings.per_file), strict=True)
            self._verify(choices, facts, settings.options)
        except InputError as error:
            raise InputError(error.message, str(settings.path or "")) from None

    def _verify(self, choices: Iterable[Choice], every_facts: Iterable[Facts], every_options: Mapping[str, Mapping[str, Any]]) -> None:
        patterns = list(chain.from_iterable((*choice.select, *choice.ignore) for choice in choices))
        if patterns or every_options:
            rules = {rule.id: rule for rule in self.plugins.rules(None)}
            verify_ids(patterns, [*rules, UNUSED])
            verify_ids(every_options, rules)
            for id, options in every_options.items():
                verify_options(rules[id], options)
        for facts in every_facts:
            verify_facts(facts, self.plugins)


def merge(reports: Iterable[Report]) -> Report:
    """One report of many."""
    reports = list(reports)
    if len(reports) == 1:
        return reports[0]

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple(item for report in reports for item in getattr(report, name))

    return Report(
        findings=tuple(sorted(all_of("findings"), key=order)),
        jobs=all_of("jobs"),
        unknown=all_of("unknown"),
        crashes=all_of("crashes"),
        skipped=all_of("skipped"),
        suppressed=sum(report.suppressed for report in reports),
        checked=all_of("checked"),
        errors=all_of("errors"),
        looked=tuple(dict.fromkeys(all_of("looked"))),
        rules=tuple({rule.id: rule for rule in sorted(all_of("rules"), key=lambda rule: rule.id)}.values()),
    )


def _unreadable(error: InputError) -> Report:
    return Report(errors=(Unreadable(error.path, error.line, error.column, error.message),))
