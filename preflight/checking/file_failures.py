"""A failure on one file as the report of that file: unreadable, refused by its shell, or of another format."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from preflight.checking.engine import Crash, Report, Unreadable
from preflight.dialects import Dialect, claim
from preflight.job import fix_of
from preflight.loaders import load
from preflight.loaders.document import Document, Problem
from preflight.loaders.file_kinds import MANIFEST, is_script
from preflight.loaders.text_limits import SMALL
from preflight.plugins.manager import PluginError, Plugins
from preflight.run.request import Request
from preflight.source.budget import CHECK_SECONDS, Exceeded, watched
from preflight.source.extras import missing
from preflight.source.finding import Finding, Related, Safety, Severity
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace
from preflight.source.source_file import InputError, Source

_LAUNCHERS = ("torchrun", "torch.distributed.launch", "torch.distributed.run")
_TRAINS = lazy_pattern(r"(?:^|[/_])(?:pre)?train(?:er|ing)?(?:[_.]|$)|(?:^|[/_])finetune")
TOO_DEEP = "is nested too deeply to be read"


def unreadable(error: InputError) -> Report:
    """The report of a file that cannot be read."""
    return Report(errors=(Unreadable(error.path, error.line, error.column, error.message),))


def attempted(name: str, call: Callable[[], Report], seconds: float = CHECK_SECONDS) -> Report:
    """The report of a call on a file, or of its failure. seconds: limit of processor time.
    Raises InputError and PluginError."""
    try:
        with watched(name, seconds):
            return call()
    except Exceeded as error:
        return unreadable(error)
    except (InputError, PluginError):
        raise
    except RecursionError:
        return unreadable(InputError(TOO_DEEP, name))
    except Exception as error:
        return failed(name, error)


def failed(name: str, error: Exception) -> Report:
    """The report of a file on which preflight itself failed outside of a rule. Re-raises the error if an extra is
    missing."""
    import traceback

    if isinstance(error, ModuleNotFoundError) and missing(error):
        raise error

    frame = traceback.extract_tb(error.__traceback__)[-1]
    folder, file = os.path.split(frame.filename)
    what = f"{type(error).__name__} at {os.path.basename(folder)}/{file}:{frame.lineno}: {error}"
    return Report(crashes=(Crash("", name, what, "".join(traceback.format_exception(error))),))


def crash_line(crash: Crash) -> str:
    """A crash as a sentence."""
    who = f"rule {crash.rule} crashed" if crash.rule else "preflight itself failed"
    return f"{who} on {crash.path}: {crash.error}"


def with_refused_scripts(
    report: Report,
    sources: Iterable[Source],
    wants: Callable[[Finding], bool],
    ours: Callable[[Source, int], bool] | None = None,
) -> Report:
    """A report with the places at which bash stops in scripts without a run, and with line ends that hide a run. ours:
    decides whether a script with a fault on a line is reported; if it is None, every script that bash refuses is
    reported."""
    found = [finding for source in sources if source.name in report.skipped for finding in _refused(source, ours)]
    if not found:
        return report
    names = tuple(finding.path for finding in found)
    return replace(
        report,
        findings=(*report.findings, *filter(wants, found)),
        skipped=tuple(name for name in report.skipped if name not in names),
        checked=(*report.checked, *names),
    )


def _refused(source: Source, ours: Callable[[Source, int], bool] | None) -> Iterable[Finding]:
    if not is_script(source):
        return
    from preflight.loaders.shell.syntax_errors import refusal, stops_at_line_ends

    refused = refusal(source)
    if refused is not None:
        if ours is None or ours(source, source.position(refused.start).line):
            yield _as_finding(refused.problem(source))
    elif "\r\n" in source.text and len(source.text) <= SMALL:  # the script is read a second time
        plain = source.changed(source.text.replace("\r\n", "\n"))
        if stops_at_line_ends(source) if ours is None else ours(plain, 1):
            from preflight.loaders.shell.cut_commands_and_unused_variables import carriage_returns

            yield from map(_as_finding, carriage_returns(source))


def _as_finding(problem: Problem) -> Finding:
    related = tuple(Related(span) for span in problem.related)
    fix = fix_of(problem, Safety.SAFE)
    return Finding(problem.message, problem.span, related, fix, rule=problem.kind, severity=Severity.ERROR)


def starts_a_run(dialects: Sequence[Dialect], request: Request) -> Callable[[Source, int], bool]:
    """Whether a run is in the part that bash never reads, or hidden by a quote on the faulty line."""

    def starts(source: Source, line: int) -> bool:
        from preflight.loaders.shell import load_script

        lines = source.text.split("\n")
        without = source.changed("\n".join((*lines[: line - 1], "", *lines[line:])))
        documents = (document for text in (source, without) for document in load_script(text, whole=True))
        return any(claim(document, dialects, request) or _trains(document) for document in documents)

    return starts


def _trains(document: Document) -> bool:
    """Whether a launcher of distributed programs starts a program with a typical name of a training script."""
    launch = document.launch
    return (
        launch is not None
        and launch.launcher.endswith(_LAUNCHERS)
        and _TRAINS.search(launch.entry.text or "") is not None
    )


def with_refused_shape(report: Report, source: Source, plugins: Plugins, request: Request) -> Report:
    """The report of a named file; if no dialect claims it and the framework of the target refuses such a file, with
    that error."""
    named_yaml = source.path is not None and source.path.suffix in (".yaml", ".yml")
    if report.skipped != (source.name,) or request.target is None or not named_yaml:
        return report
    for dialect in plugins.dialects:
        refuses = getattr(dialect, "refuses_shape", None)
        for place in filter(None, (refuses(document, request.target) for document in load(source))) if refuses else ():
            message = "the file is not a mapping of sections, so it is not a config"
            finding = Finding(message, source.span(0), rule="unreadable", severity=Severity.ERROR, upstream=place)
            return replace(report, findings=(finding,), skipped=(), checked=(source.name,))
    return report


RETRIES = 5
CONFIG = 60_000
"""Characters of a file that is read repeatedly; only the first and last lines of a larger one are read."""
WORK = 1_000_000
"""Total characters read until a file counts as foreign."""
_LONGEST = 500

_SECTION = lazy_pattern(r"[^\s#}\]-]")
_TEMPLATE = lazy_pattern(r"\{\{|\{%|<%")


def claimed_in_part(source: Source, error: InputError, dialects: Sequence[Dialect], request: Request) -> bool:
    """Whether an unreadable file is a config of a dialect, judged by its readable part."""
    if len(source.text) > CONFIG:
        part = Source("\n".join(_ends(source.text)), source.name, path=source.path)
        first = _load(part.text.split("\n"), part.name)
        readable = _readable(part, first) if isinstance(first, InputError) else iter([first])
    else:
        readable = _readable(source, error)
    for documents in readable:
        try:
            return any(claim(document, dialects, request) for document in documents)
        except InputError:
            return False
    return False


def is_template(source: Source) -> bool:
    """A manifest template of Helm or a similar tool: it is YAML only after rendering, so syntax errors are not
    reported."""
    return MANIFEST in source.text and _TEMPLATE.search(source.text) is not None


def _ends(text: str) -> list[str]:
    """The first and the last lines of a long text, without comments, empty lines and lines too long for a config."""
    lines = [
        line
        for line in text.split("\n")
        if 0 < len(line) <= _LONGEST and not line.isspace() and not line.lstrip().startswith("#")
    ]
    sizes = list(accumulate(len(line) + 1 for line in lines))
    if not sizes or sizes[-1] <= CONFIG:
        return lines
    return lines[: bisect_left(sizes, CONFIG // 2)] + lines[bisect_left(sizes, sizes[-1] - CONFIG // 2) + 1 :]


def _readable(source: Source, error: InputError) -> Iterator[tuple[Document, ...]]:
    """The text that can be read without a few broken lines, otherwise without the ends of a few broken sections."""
    lines = source.text.split("\n")
    for _ in range(RETRIES):
        if not 0 < error.line <= len(lines):
            break
        lines[error.line - 1] = ""
        found = _load(lines, source.name)
        if not isinstance(found, InputError):
            yield found
            return
        error = found
    if not _TEMPLATE.search(source.text):
        yield from _without_sections(source.text.split("\n"), source.name)


def _without_sections(lines: list[str], name: str) -> Iterator[tuple[Document, ...]]:
    """An unclosed bracket or quote is reported at the end of the file; the section that opens it is the first one that
    makes the text unreadable."""
    starts = [0, *(number for number, line in enumerate(lines) if number and _SECTION.match(line))]
    ends = [*starts[1:], len(lines)]

    def broken(end: int) -> bool:
        return isinstance(_load(lines[:end], name), InputError)

    for _ in range(min(RETRIES, WORK // (len(ends).bit_length() * sum(map(len, lines)) + 1))):
        at = bisect_left(ends, True, key=broken)
        if at == len(ends):
            return
        first = bisect_left(range(ends[at]), True, lo=starts[at], key=lambda number: broken(number + 1))
        lines[first : ends[at]] = [""] * (ends[at] - first)
        found = _load(lines, name)
        if not isinstance(found, InputError):
            yield found
            return


def _load(lines: list[str], name: str) -> tuple[Document, ...] | InputError:
    try:
        return load(Source("\n".join(lines), name))
    except InputError as error:
        return error
