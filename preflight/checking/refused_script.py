"""Scripts that bash refuses before it comes to a launch, so that there is no run to tell it of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from preflight.checking.engine import Report
from preflight.dialects import Dialect, claim
from preflight.loaders import is_script
from preflight.run.request import Request
from preflight.source.finding import Finding, Related, Severity
from preflight.source.record import replace
from preflight.source.text import Source


def with_refused_scripts(
    report: Report,
    sources: Iterable[Source],
    wants: Callable[[Finding], bool],
    ours: Callable[[Source, int], bool] = lambda source, line: True,
) -> Report:
    """A report with the places at which bash stops in scripts without a run. ours: whether a script with a fault on a
    line is to be told of."""
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


def _refused(source: Source, ours: Callable[[Source, int], bool]) -> Iterable[Finding]:
    if not is_script(source):
        return
    from preflight.loaders.shell.refusal import refusal

    refused = refusal(source)
    if refused is not None and ours(source, source.position(refused.start).line):
        problem = refused.problem(source)
        related = tuple(Related(span) for span in problem.related)
        yield Finding(problem.message, problem.span, related, rule=problem.kind, severity=Severity.ERROR)


def starts_a_run(dialects: Sequence[Dialect], request: Request) -> Callable[[Source, int], bool]:
    """Says whether there is a run in what bash never reads, also where a quote on the line of the fault hides it."""

    def starts(source: Source, line: int) -> bool:
        from preflight.loaders.shell import load_script

        lines = source.text.split("\n")
        without = source.changed("\n".join((*lines[: line - 1], "", *lines[line:])))
        documents = (document for text in (source, without) for document in load_script(text, whole=True))
        return any(claim(document, dialects, request) for document in documents)

    return starts
