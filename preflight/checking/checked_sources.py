"""The files of one call: from disk, or as edited in memory while a fix is tested."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from preflight.checking.engine import Policy, Report, check_documents
from preflight.checking.nearby_file_access import Beside
from preflight.dialects import folders
from preflight.job import Job
from preflight.loaders import load
from preflight.loaders.document import Document
from preflight.plugins.manager import Plugins
from preflight.program.checkout.enclosing_checkout import Checkout, Checkouts
from preflight.run.request import Given, Request
from preflight.source.budget import READ, Exceeded, may_read, of_one_check
from preflight.source.record import replace
from preflight.source.source_file import InputError, Source, bounded, bytes_of

MOST = 5000
"""The number of names that a misspelling is compared with."""


def names_read(given: Given, jobs: Sequence[Job]) -> tuple[str, ...]:
    """The names set by a caller that the runs read: arguments, and variables of their scripts."""
    left = [name for name in given if name not in given.read]
    for text in _texts(jobs) if left else ():
        given.mark(name for name in left if name in text and _mentions(name, text))
    if not given.read.issuperset(given) and len(given.call.known) < MOST:
        given.call.known.update(dict.fromkeys(islice(_candidates(jobs), MOST)))
    return tuple(sorted(given.read))


def _candidates(jobs: Iterable[Job]) -> Iterator[str]:
    """Everything that can be set for runs: the variables of their scripts and explicit arguments, then every
    argument."""
    for text in _texts(jobs):
        yield from re.findall(r"\$\{?([A-Za-z_]\w*)", text)
    for job in jobs:
        for name in job.arguments.written:
            yield name.rpartition(".")[2]
    for job in jobs:
        yield from job.arguments.names()


def _texts(jobs: Iterable[Job]) -> Iterator[str]:
    """The texts that may have variables, each once."""
    sources = {id(s): s for job in jobs for d in job.documents if _has_variables(d) for s in (d.source, *d.also)}
    return (source.text for source in sources.values())


def _has_variables(document: Document) -> bool:
    return document.kind != "yaml" or document.launch is not None


def _mentions(name: str, text: str) -> bool:
    """Whether a text sets or reads a variable of that name."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None


LONGEST = 4096
"""Maximum characters of a path: no system supports longer ones."""


class Workspace:
    """Sources to check, and the files they name; `edited` replaces the text of files by name."""

    def __init__(
        self,
        sources: Iterable[Source],
        plugins: Plugins,
        request: Request,
        policy: Policy = Policy(),
        checkouts: Checkouts | None = None,
    ) -> None:
        self.checkouts = checkouts if checkouts is not None else Checkouts()
        self.sources = tuple(_with_variables(source, request) for source in sources)
        if checkouts is not None:
            for source in self.sources:
                source.in_checkout = request.follow and not checkouts.isolated
        for source in self.sources if request.source_path else ():
            source.search = request.source_path
        self.plugins, self.request, self.policy = plugins, request, policy
        self._opened: dict[Path, tuple[Document, ...]] = {}
        self._looked: dict[str, None] = {}
        self._read_now: set[Path] = set()

    def check(
        self, edited: Mapping[str, Source] | None = None, known: Mapping[str, Sequence[Document]] = MappingProxyType({})
    ) -> Report:
        """Check every source. known: the documents of edited texts by name, if they have already been read. Raises
        InputError if one cannot be read."""
        edited = edited or {}
        sources = [edited.get(source.name, source) for source in self.sources]
        with of_one_check():
            report = self.judge([d for source in sources for d in known.get(source.name) or load(source)], edited)
            if not report.skipped:
                return report
            from preflight.checking.file_failures import starts_a_run, with_refused_scripts

            ours = starts_a_run(self.plugins.dialects, self.request)
            return with_refused_scripts(report, sources, self.policy.wants, ours)

    def judge(self, documents: Sequence[Document], edited: Mapping[str, Source] | None = None) -> Report:
        """Check documents of the sources, loaded or edited. Raises InputError if a file that they name cannot be
        read."""
        edited = edited or {}

        def read(document: Document, name: str) -> Document | None:
            return self._read(document, name, edited)

        beside = Beside(read, self._checkout, self._around(), self._data)
        with of_one_check():
            self._read_now.clear()
            report = check_documents(documents, self.plugins, self.request, self.policy, beside)
        looked = dict.fromkeys(path for document in documents for path in document.looked) | self._looked
        if self.request.follow:
            looked |= dict.fromkeys(path for source in self.sources for path in self.checkouts.looked(source.path))
        judged = [vars(job).get("judged") for job in report.jobs]  # the names that were set
        looked |= dict.fromkeys(path for one in judged if one is not None for path in one.looked)
        if self.request.given:
            report = replace(report, reads=names_read(self.request.given, report.jobs))
        return replace(report, looked=tuple(looked)) if looked else report

    def _around(self) -> Checkouts | None:
        return self.checkouts if self.request.follow or self.request.program else None

    def _checkout(self, document: Document) -> Checkout | None:
        """The source of a document's run; None if files next to it must not be opened."""
        if not (self.request.follow or self.request.program):
            return None
        return self.checkouts.run_by(document, self.request.program)

    def _read(self, document: Document, name: str, edited: Mapping[str, Source]) -> Document | None:
        """Another file that a document names; None when it is missing or must not be opened."""
        path = self._found(document, name) if self.request.follow and 0 < len(name) <= LONGEST else None
        if path is None:
            return None
        shown = display(path)
        if shown in edited:
            return next(iter(load(edited[shown])), None)
        if path not in self._opened:
            source = Source.read(path, shown)
            if not may_read(len(source.text)):
                raise Exceeded(
                    f"is not read, because the files that a config names have more than {READ:,} bytes in total", shown
                )
            self._opened[path] = load(source)
        return next(iter(self._opened[path]), None)

    def _data(self, document: Document, name: str) -> bytes | None:
        """The bytes of another file; None if it must not be opened, cannot be read, or the limit of bytes is
        reached."""
        open_ = self.request.follow and not self.checkouts.isolated and 0 < len(name) <= LONGEST
        path = self._found(document, name) if open_ else None
        try:
            if path is None or (path not in self._read_now and not may_read(path.stat().st_size)):
                return None
            self._read_now.add(path)
            return bounded(bytes_of(path), name)
        except (OSError, InputError):
            return None

    def _found(self, document: Document, name: str) -> Path | None:
        """The first file of that name in the folders of a document; all of them were searched."""
        for folder in folders(document):
            self._looked[os.path.join(folder, name)] = None
            if (path := _file(folder / name)) is not None:
                return path
        return None


def _with_variables(source: Source, request: Request) -> Source:
    """A source with the variables and the allocation that the caller states."""
    allocation = (request.nodes, request.devices_per_node)
    if not request.given and allocation == (None, None):
        return source
    made = source.changed(source.text)
    made.variables, made.allocation = request.given or made.variables, allocation
    return made


def _file(path: Path) -> Path | None:
    try:
        resolved = path.resolve()
        return resolved if resolved.is_file() else None
    except (OSError, RuntimeError, ValueError):  # a name too long, a loop of links, a NUL
        return None


def display(path: Path) -> str:
    """The display name of a path: relative to the working directory if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
