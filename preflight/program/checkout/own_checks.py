"""Whether a checkout has the checks that a rule repeats, as they stand in a described release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from preflight.lint.evidence import REFUSALS
from preflight.program.checkout.files import Files

RECKONED = 12
"""Files of a checkout that are compared for one rule."""


class OwnChecks:
    """The checks in the files of one package.

    renamed: upstream's package, where it has another name here, and that name. arguments: arguments that have another
    name in the described release, each with that name.
    """

    def __init__(
        self,
        framework: str,
        files: Files,
        calls: str,
        renamed: tuple[str, str] | None = None,
        arguments: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.framework, self._files, self._calls, self._renamed = framework, files, re.compile(calls), renamed
        self._arguments = arguments
        self._hashes: dict[str, frozenset[str]] = {}
        self._answers: dict[str, bool | None] = {}

    def has(self, rule: str) -> bool | None:
        """Whether one of the statements that a rule repeats is in the checkout.

        None where the rule repeats none of this framework, or where the run dies at what is no check.
        """
        if rule not in self._answers:
            self._answers[rule] = self._compared(rule)
        return self._answers[rule]

    def _compared(self, rule: str) -> bool | None:
        data = _evidence(self.framework)
        sites = data["rules"].get(rule, ((),))[0]
        statements = [data["sites"][id] for id in sites if id in data["sites"]]
        if not statements:
            return None
        if any(self._holds(kind, runs, data["files"]) for kind, runs, *_ in statements):
            return True
        return False if any(kind in REFUSALS for kind, *_ in statements) else None

    def _holds(self, kind: str, runs: list[list[Any]], files: list[str]) -> bool:
        wanted = {run[2] for run in runs}
        paths = dict.fromkeys(path for run in reversed(runs) for path in self._places(files[run[0]]))
        everything = kind in ("statement", "parser", "text")
        return any(wanted & self._in(path, everything) for path in list(paths)[:RECKONED])

    def _places(self, path: str) -> Iterator[str]:
        """Where a file of upstream may lie here: under its name, under the old name of the package, in the parser."""
        ours = path.replace(*self._renamed, 1) if self._renamed else path
        package = ours.partition("/")[0]
        yield from (ours, f"{package}/training/arguments.py", f"{package}/arguments.py")

    def _in(self, path: str, everything: bool) -> frozenset[str]:
        key = f"{path} {everything}"
        if key not in self._hashes:
            text = self._files.code(path)
            self._hashes[key] = frozenset(self._read(path, text, everything)) if text is not None else frozenset()
        return self._hashes[key]

    def _read(self, path: str, text: str, everything: bool) -> Iterable[str]:
        from preflight.program.checkout.statements import lines, sites  # only errors in an altered checkout need it

        if not path.endswith(".py"):
            return (site.hash for site in lines(path, text))
        for ours, theirs in self._arguments.items():
            text = re.sub(rf"\bargs\.{re.escape(ours)}\b", f"args.{theirs}", text)
        try:
            return [site.hash for site in sites(path, text, self._calls, everything=everything)]
        except (RecursionError, MemoryError):
            return ()


@cache
def _evidence(framework: str) -> dict[str, Any]:
    folder = Path(str(import_module("preflight.schemas").__file__)).parent / framework
    data: dict[str, Any] = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))
    return data
