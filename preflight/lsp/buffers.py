"""The open files as they are being typed, each with its report."""

from __future__ import annotations

from pathlib import Path

from preflight.checking.checked_sources import Workspace, display
from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.checking.file_failures import unreadable
from preflight.checking.folder_settings import own_devices, usable
from preflight.job import Job
from preflight.lsp.positions import path_of
from preflight.plugins import manager as plugins
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.run.project_settings import Choice, Facts, Settings
from preflight.run.settings_files import Search, Tell
from preflight.source.budget import watched
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source


class Buffer(NamedTuple):
    """An open file: its text, the report on it, and the last report with a run, which applies while the text is broken
    in the middle of a word."""

    source: Source
    report: Report
    workspace: Workspace
    last: Report
    uri: str = ""
    parsed: Report = Report()
    """The last report on a text that could be parsed."""

    @property
    def job(self) -> Job | None:
        """The present or last run in the text."""
        return next(iter(self.report.jobs), None) or next(iter(self.last.jobs), None)


class Buffers:
    """The open files of an editor, by URI. Files that they name are read from the editor as well. `tell`: reports which
    settings are ignored, and why.
    """

    def __init__(self, tell: Tell = lambda path, why: None) -> None:
        self._search = Search(tell)
        self._open: dict[str, Buffer] = {}
        self._checkers: dict[Path | None, tuple[float, Checker]] = {}
        self._around: dict[Path, Checkouts] = {}
        self._facts, self._choice = Facts(), Choice()

    def configure(self, facts: Facts, choice: Choice) -> bool:
        """Apply the editor's settings over those of settings files; returns whether anything changed."""
        changed = (self._facts, self._choice) != (facts, choice)
        self._facts, self._choice = facts, choice
        self._checkers.clear()
        return changed

    def get(self, uri: str) -> Buffer | None:
        """An open file."""
        return self._open.get(uri)

    def uris(self) -> tuple[str, ...]:
        """The open files."""
        return tuple(self._open)

    def close(self, uri: str) -> None:
        """Forget a file."""
        self._open.pop(uri, None)

    def update(self, uri: str, text: str, language: str = "") -> Buffer:
        """Accept a text and check it. language: the editor's name of its language, which decides how a buffer without a
        file is read."""
        path = path_of(uri)
        if path is not None:
            source = Source(text, display(path), path=path)
        else:
            source = Source(text, f"{uri.rpartition(':')[2]}{ENDINGS.get(language, '')}")
        others = [buffer.source for other, buffer in self._open.items() if other != uri]
        source.beside = {other.path: other for other in others if other.path is not None}
        before = self._open.get(uri)
        last = before.last if before is not None else Report()
        buffer = self._checked(source, {other.name: other for other in others}, last)
        parsed = buffer.report if not buffer.report.errors else before.parsed if before is not None else Report()
        self._open[uri] = buffer = buffer._replace(uri=uri, parsed=parsed)
        return buffer

    def _checked(self, source: Source, others: dict[str, Source], last: Report) -> Buffer:
        try:
            checker = self.checker(source)
            workspace = checker.workspace([source])
            with watched(source.name):
                report = workspace.check(others)
        except InputError as error:
            workspace = Workspace([source], plugins.load(), Checker(Settings(), plugins.load()).request(source.path))
            named = error.path in ("", source.name)
            error = error if named else InputError(str(error), source.name, 1, 1)
            report = unreadable(InputError(error.message, source.name, error.line or 1, error.column or 1))
        return Buffer(source, report, workspace, report if report.jobs else last)

    def checker(self, source: Source) -> Checker:
        """The checker of a file, with the settings nearest to it, reloaded when they change. Raises InputError."""
        folder = source.path.parent if source.path is not None else Path.cwd()
        found = self._found(folder)
        changed = found.stat().st_mtime if found is not None else 0.0
        known = self._checkers.get(found)
        if known is None or known[0] != changed:
            held = usable(found) if found is not None else Settings(root=folder)
            self._checkers[found] = known = changed, self._made(held)
        checker = known[1]
        checker.checkouts = self._around.setdefault(folder, Checkouts([str(folder)]))
        return checker

    def _made(self, held: Settings) -> Checker:
        return Checker(held, plugins.load(own_devices(held)), self._facts, self._choice)

    def _found(self, folder: Path) -> Path | None:
        """The settings file that applies in a folder. Raises InputError."""
        try:
            return self._search.nearest(folder)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", str(error.filename)) from None

    def look_around(self) -> None:
        """Inspect the checkouts around the files again, because a file was saved."""
        self._around.clear()

    def forget(self) -> None:
        """Reload settings and checkouts, because files changed on disk."""
        self._around.clear()
        self._checkers.clear()


ENDINGS = {"yaml": ".yaml", "shellscript": ".sh", "python": ".py"}
"""The file extension for an editor language."""
