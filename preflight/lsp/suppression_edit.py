"""The edit that suppresses a finding: a comment on the line above, or at the start of its statement in a script."""

from __future__ import annotations

from lsprotocol import types

from preflight.checking.engine import Report
from preflight.lsp.buffers import Buffer, Buffers
from preflight.source.source_file import Source

REASON = "TODO: reason"
"""The placeholder of the reason until the user writes it."""
MOST = 8
"""Lines above a finding at which a comment is tried."""


def suppression(buffers: Buffers, buffer: Buffer, rule: str, line: int) -> types.TextEdit | None:
    """A comment that suppresses a finding of a rule on a line; None if no line above can hold one."""
    lines = buffer.source.text.splitlines()
    before = _count(buffer.report, rule)
    for number in range(min(line, len(lines)), max(line - MOST, 0), -1):
        if number > 1 and lines[number - 2].rstrip().endswith("\\"):
            continue  # a comment would end the command above
        text = lines[number - 1]
        comment = f"{text[: len(text) - len(text.lstrip())]}# preflight: ignore[{rule}] {REASON}\n"
        changed = "".join(f"{one}\n" for one in [*lines[: number - 1], comment.rstrip("\n"), *lines[number - 1 :]])
        if _count(_tried(buffers, buffer.source, changed), rule) < before:
            at = types.Position(number - 1, 0)
            return types.TextEdit(types.Range(at, at), comment)
    return None


def _tried(buffers: Buffers, source: Source, text: str) -> Report:
    changed = source.changed(text)
    return buffers.checker(source).workspace([changed]).check()


def _count(report: Report, rule: str) -> int:
    """Findings of a rule; the maximum for a text that cannot be read."""
    if not report.checked:
        return 1 << 30
    return sum(finding.rule == rule for finding in report.findings)
