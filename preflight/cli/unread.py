"""What a call or settings set and no file reads: refused where the call says it, a warning where settings do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from preflight.checking.checker import Checker
from preflight.cli.options import Inputs
from preflight.report.escapes import plain
from preflight.source.language import local
from preflight.source.message import Message
from preflight.source.spelling import meant, nearest
from preflight.source.text import InputError


def refuse_unread(check: Checker, inputs: Inputs, checked: Iterable[str], reads: Iterable[str] = ()) -> None:
    """Raise InputError where the call sets a name that none of its files reads; warn where settings do.

    checked: the files with a run. reads: names that were read in other processes, or earlier.
    """
    if not any(True for _ in checked):
        return
    check.names.read.update(reads)
    for name, value in (check.facts.set or {}).items():
        if name not in check.names.read:
            known = {_folded(one): one for one in reversed(check.names.known)}
            close = known.get(nearest(_folded(name), known) or "")
            raise InputError(f"--set {name}={value}: no file that was checked reads {name}{meant(close)}")
    for found in check.every_settings():
        said = [name for name in found.facts.set or () if name not in check.names.read]
        if said and found.path is not None and _covered(str(found.root), inputs.paths or []):
            told = Message("[set] {names:and}: no file that was checked reads it", names=tuple(said))
            print(f"preflight: {plain(os.path.relpath(found.path))}: {local(told)}", file=sys.stderr)


def _covered(root: str, paths: Iterable[str]) -> bool:
    """Whether a call looks at the whole folder that settings are for: else they may be meant for other files."""
    real = os.path.realpath(root)
    tops = (os.path.realpath(path) for path in paths if os.path.isdir(path))
    return any(os.path.commonpath([real, top]) == top for top in tops)


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
