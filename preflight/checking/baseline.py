"""Findings that existed before preflight was adopted: a file names them by rule and key path, and only new ones are
reported."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from preflight.checking.engine import Report
from preflight.lint.suppression import present
from preflight.source.finding import Finding
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source
from preflight.source.writing import write_report

FILE = "preflight-baseline.json"


class Known(NamedTuple):
    """Identifies a finding without its line number, so that edits elsewhere do not change it.

    about: the key path, otherwise the text of the line.
    """

    path: str
    rule: str
    about: str


class Baseline:
    """The findings to suppress, each with its number of occurrences."""

    def __init__(self, folder: Path, known: Iterable[Known] | Mapping[Known, int] = ()) -> None:
        self.folder, self.known = folder, Counter(known)

    @classmethod
    def of(cls, report: Report, folder: Path) -> Baseline:
        """All findings of a report; paths become relative to the folder that the file will be in."""
        made = cls(folder)
        made.known.update(made.identify(finding) for finding in report.findings)
        return made

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read a baseline. Raises InputError if the file is not one."""
        try:
            data = json.loads(Source.read(path).text)
            entries = [(file, entry) for file, entries in data["files"].items() for entry in entries]
            known = Counter[Known]()
            for file, entry in entries:
                known[Known(file, present(entry["rule"]), entry["about"])] += int(entry.get("times", 1))
            if data["preflight-baseline"] != 1:
                raise ValueError("its version is not 1")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"is not a baseline; write one with `preflight baseline`: {error}", str(path)) from None
        return cls(path.parent, known)

    def write(self, path: Path) -> None:
        """Write the file, sorted. Raises InputError."""
        files: dict[str, list[dict[str, object]]] = {}
        for known, times in sorted(self.known.items()):
            more = {"times": times} if times > 1 else {}
            files.setdefault(known.path, []).append({"rule": known.rule, "about": known.about, **more})
        text = json.dumps({"preflight-baseline": 1, "files": files}, indent=1, ensure_ascii=False)
        write_report(str(path), f"{text}\n")

    def identify(self, finding: Finding) -> Known:
        """The identity of a finding, as this file names it."""
        about = ".".join(map(str, finding.key)) or finding.span.source.line(finding.line).strip()
        return Known(Path(os.path.relpath(finding.path, self.folder)).as_posix(), finding.rule, about)

    def hide(self, report: Report) -> tuple[Report, Counter[Known]]:
        """The report without the known findings, and the entries of checked files that matched nothing."""
        left, kept = Counter(self.known), []
        for finding in report.findings:
            known = self.identify(finding)
            if left[known]:
                left[known] -= 1
            else:
                kept.append(finding)
        checked = {Path(os.path.relpath(path, self.folder)).as_posix() for path in report.checked}
        stale = Counter({known: times for known, times in left.items() if times and known.path in checked})
        return replace(
            report, findings=tuple(kept), suppressed=report.suppressed + len(report.findings) - len(kept)
        ), stale
