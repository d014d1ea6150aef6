"""preflight doctor: the installation, settings, cache and checkout, as text for a bug report."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import preflight
from preflight.cli import checker_setup
from preflight.cli.exit_codes import OK
from preflight.cli.exit_handling import say
from preflight.cli.options import JobFacts, Rules
from preflight.plugins.manager import GROUP, OWN, entry_points
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.report.documentation_urls import home
from preflight.report.rule_pages import documented
from preflight.report.source_excerpts_and_escapes import plain
from preflight.source import cache_folder
from preflight.source.extras import EXTRAS
from preflight.source.source_file import InputError
from preflight.source.translation import VARIABLE, spoken

VARIABLES = (VARIABLE, cache_folder.VARIABLE, "PREFLIGHT_NO_CACHE", "PREFLIGHT_DEBUG", "NO_COLOR", "FORCE_COLOR")


def doctor() -> int:
    """Print facts about this installation and folder, to paste into a bug report.

    Prints the version, Python, extras, settings, plugins, cache and checkout. It reads no config and sends nothing.
    """
    say("".join(f"{plain(name):<10}  {plain(value)}\n" for name, value in _facts()))
    return OK


def _facts() -> Iterator[tuple[str, str]]:
    yield "preflight", f"{preflight.__version__} at {Path(preflight.__file__).parent}"
    yield "python", f"{platform.python_version()} at {sys.executable}"
    yield "system", platform.platform()
    for extra in dict.fromkeys(EXTRAS.values()):
        missing = [module for module, other in EXTRAS.items() if other == extra and find_spec(module) is None]
        yield "extra", f"{extra}: {'not installed, missing ' + ', '.join(missing) if missing else 'installed'}"
    yield from _settings()
    yield "cache", _cache()
    yield "checkout", ", ".join(_checkouts()) or "none in this folder"
    yield "language", spoken().language
    for name in VARIABLES:
        if name in os.environ:
            yield "variable", f"{name}={os.environ[name]}"
    if (address := home()) is not None:
        yield "project", address


def _settings() -> Iterator[tuple[str, str]]:
    """The settings file of this folder, the rules that it turns off, and the plugins."""
    try:
        checker = checker_setup.checker(JobFacts(), Rules())
    except InputError as error:
        yield "settings", f"unusable: {error}"
        return
    found = checker.settings
    yield "settings", str(found.path) if found.path else "no settings file"
    for path, why in checker.ignored.items():
        yield "settings", f"ignored {path}: {why}"
    chosen = [f"select {', '.join(found.choice.select)}"] if found.choice.select else []
    chosen += [f"ignore {', '.join(found.choice.ignore)}"] if found.choice.ignore else []
    yield "rules", f"{len(documented(checker.plugins.rules(None)))} known; {'; '.join(chosen) or 'all on'}"
    yield "plugins", ", ".join(_plugins()) or "none besides preflight's own"


def _plugins() -> Iterator[str]:
    """The installed third-party plugins."""
    for point in entry_points(GROUP):
        if point.target != OWN:
            yield f"{point.name} of {point.distribution} {point.version}"


def _cache() -> str:
    where = cache_folder.folder()
    if not where:
        return "off: no folder"
    if not os.path.isdir(where):
        return f"{where} (empty)"
    number = sum(len(names) for _, _, names in os.walk(where))
    return f"{where} ({number} files, {'writable' if os.access(where, os.W_OK) else 'not writable'})"


def _checkouts() -> Iterator[str]:
    """The trainers whose sources are around this folder, with their releases."""
    here = Path.cwd()
    found = Checkouts([str(here)]).around(here / "run.yaml")
    if found is not None:
        for framework in sorted(found.frameworks):
            yield found.described(framework)
