"""Completions for a word in a shell: rules, devices, frameworks, formats."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.cli.exit_handling import LEVELS
from preflight.plugins import manager as plugins
from preflight.report.rule_pages import documented
from preflight.run.project_settings import SEVERITIES
from preflight.source.translation import LANGUAGES


def begun(words: Iterable[str], incomplete: str) -> list[str]:
    """The words with this beginning; in a comma-separated list of rules the last one is completed."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def rules(incomplete: str) -> list[str]:
    """Ids of rules."""
    return begun((rule.id for rule in documented(plugins.load().rules(None))), incomplete)


def devices(incomplete: str) -> list[str]:
    """Names of devices, in lower case if the word starts in lower case; aliases if no name matches."""
    known = plugins.load().devices
    names = [device.name.lower() if incomplete.islower() else device.name for device in known]
    return begun(names, incomplete) or begun((alias for device in known for alias in device.aliases), incomplete)


def targets(incomplete: str) -> list[str]:
    """Frameworks, each alone and at its versions."""
    known = [target for dialect in plugins.load().dialects for target in dialect.targets]
    return begun(dict.fromkeys([*(target.framework for target in known), *map(str, known)]), incomplete)


def frameworks(incomplete: str) -> list[str]:
    """Frameworks alone."""
    return [name for name in targets(incomplete) if "@" not in name]


def formats(incomplete: str) -> list[str]:
    """Output formats."""
    return begun(sorted(plugins.load().reporters()), incomplete)


def levels(incomplete: str) -> list[str]:
    """The values of `--fail-on`."""
    return begun(LEVELS, incomplete)


def severities(incomplete: str) -> list[str]:
    """Severities of rules."""
    return begun(SEVERITIES, incomplete)


def languages(incomplete: str) -> list[str]:
    """Languages of messages."""
    return begun(LANGUAGES, incomplete)
