"""What is set beside the files, with `--set` or in settings, and nothing reads: a slip that would change nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from preflight.job import Job
from preflight.loaders.document import Document
from preflight.run.request import Given

MOST = 5000
"""Names that a slip is compared with."""


def names_read(given: Given, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Of the names that a caller sets, those that the runs read: arguments, and variables of their scripts."""
    left = [name for name in given if name not in given.read]
    for text in _texts(jobs) if left else ():
        given.mark(name for name in left if name in text and _mentions(name, text))
    if not given.read.issuperset(given) and len(given.call.known) < MOST:
        given.call.known.update(dict.fromkeys(islice(_candidates(jobs), MOST)))
    return tuple(sorted(given.read))


def _candidates(jobs: Iterable[Job]) -> Iterator[str]:
    """What may be set of runs: the variables of their scripts and what is typed, then every argument."""
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
    """Whether a text has a variable of that name, set or read."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None
