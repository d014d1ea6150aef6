"""An identity of findings that is stable when lines shift: rule, file, key path, and line text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from preflight.source.finding import Finding

LONGEST = 2000
"""Characters of a line that are hashed."""


def fingerprints(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Each finding with its hash; equal hashes are numbered in order."""
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        about = (
            finding.rule,
            finding.path.replace("\\", "/"),
            ".".join(map(str, finding.key)),
            finding.span.source.line(finding.line).strip()[:LONGEST],
        )
        seen[about] += 1
        text = "\0".join((*about, str(seen[about])))
        yield finding, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
