"""The line about checks that were skipped: how many, and which values most of them need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from preflight.report.escapes import counted
from preflight.source.language import joined, local

GIVE = "give "
WAYS = (
    ("number of devices", f"{GIVE}--world-size"),
    ("device is not", f"{GIVE}--device"),
    ("what the device gives", f"{GIVE}--device"),
    ("the placeholder", "fill in the placeholders"),
    (".json is not read", f"{GIVE}the model's config.json"),
    ("size of the vocabulary", f"{GIVE}the size of the vocabulary"),
)
"""Part of a reason, what is to be done. The first that fits counts."""
NAMED = 2
"""Ways that are named."""


def skipped_checks(reasons: Iterable[str]) -> str:
    """One sentence. A check may wait for more than the value that it names, so the numbers are upper bounds."""
    reasons = list(reasons)
    ways = Counter(way for reason in reasons if (way := _way(reason)))
    found = [local(f"{local(way)} for {number}") for way, number in ways.most_common(NAMED)]
    if len(found) > 1 and found[0].startswith(GIVE):
        found[1:] = [way.removeprefix(GIVE) for way in found[1:]]
    why = f"{joined(found)}; " if found else ""
    many = counted(len(reasons), "check")
    return local(
        f"Skipped {many} that {'depends' if len(reasons) == 1 else 'depend'} on unknown values "
        f"({why}--show-unknown lists them)."
    )


def _way(reason: str) -> str:
    return next((way for part, way in WAYS if part in reason), "")
