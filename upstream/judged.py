"""The verdicts of one release on runs, from its interpreted source; nothing is executed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import preflight.program
from preflight.program.checkout.guarded_statements import REFUSALS, Site, sites
from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Refusal, Verdict
from preflight.source import cache_folder as kept
from upstream.checkout import Checkout
from upstream.examples import ENTRY, Run
from upstream.frameworks import Framework

CAPABILITIES = {"v100": (7, 0), "a100": (8, 0), "h100": (9, 0), "gb200": (10, 0)}
VERSIONS = {"torch": "2.9.0", "transformer-engine": "2.20"}
PRESENT = frozenset(
    "apex causal-conv1d emerging-optimizers flash-attn mamba-ssm multi-storage-client nvidia-resiliency-ext "
    "torch-memory-saver wandb".split()
)
"""A machine that has everything that a check may require, so that only the command decides."""
OLDER_ENTRIES = {"pretrain_hybrid.py": "pretrain_mamba.py"}
REFUSES, ACCEPTS, LACKS, UNKNOWN = "refuses", "accepts", "lacks", "unknown"
FOLDER = "behaviour"


class Told(NamedTuple):
    """The verdict of a release on a run.

    outcome: refuses, accepts, lacks (an option or a choice), unknown. place, function, hash: of the statement that
    refuses; hash is "" if an expression raises. also: other places at which it may refuse. says: the message, or why it
    is unknown.
    """

    outcome: str
    place: str = ""
    function: str = ""
    hash: str = ""
    also: tuple[str, ...] = ()
    says: str = ""

    @property
    def statement(self) -> str:
        """The hash of the statement, or the function with the expression that raises."""
        return self.hash or self.function


class Asked(NamedTuple):
    """A run, and the statements (by hash) or functions ("file:name") that must run before it certainly counts as
    accepted."""

    run: Run
    statements: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


class Judge:
    """Judges runs by one release; answers are kept by its commit and the interpreter's source."""

    def __init__(self, framework: Framework, source: Checkout) -> None:
        self.framework, self._source = framework, source
        self._name = f"{FOLDER}/{kept.digest(f'{framework.name} {source.commit} {_interpreter()}')}.json"
        self._told: dict[str, Told] = {}
        if (text := kept.read(self._name)) is not None:
            self._told = {key: Told._make([*row[:4], tuple(row[4]), row[5]]) for key, row in json.loads(text).items()}

    def __call__(self, runs: Iterable[Asked]) -> dict[Run, Told]:
        """The verdict on each run."""
        wanted = list(dict.fromkeys(runs))
        asked = [one for one in wanted if self._known(one) is None]
        if asked:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder).resolve()
                self._source.extract(root, _read_paths(self._source))
                self._told |= in_thread(lambda: _interpreted(self.framework, root, asked))
            kept.write(self._name, json.dumps(self._told))
        return {one.run: known for one in wanted if (known := self._known(one)) is not None}

    def _known(self, asked: Asked) -> Told | None:
        """The stored verdict on a run; required statements matter only if it is accepted."""
        bare = self._told.get(_key(Asked(asked.run)))
        return bare if bare is not None and bare.outcome != ACCEPTS else self._told.get(_key(asked))


def _read_paths(source: Checkout) -> list[str]:
    """The packages of a release and the scripts at its root."""
    scripts = {path for path in source.paths if path.endswith(".py") and "/" not in path}
    return ["megatron", *sorted(scripts)]


def _interpreted(framework: Framework, root: Path, asked: Iterable[Asked]) -> dict[str, Told]:
    found, sessions, texts = {}, dict[object, Session](), _Texts(framework, root)
    for one in sorted(asked, key=lambda one: (one.run.entry, one.run.environment, one.run.device)):
        run = one.run
        key = run.entry, run.environment, run.device
        if key not in sessions:
            sessions.clear()
            sessions[key] = _session(framework, root, run)
        verdict = sessions[key].judge(run.words, dict(run.environment), run.processes)
        told = _told(verdict, texts)
        if told.outcome == ACCEPTS and (left := texts.left(one, verdict.functions)):
            told = Told(UNKNOWN, says=f"{left} is not run")
        found[_key(one)] = told
    return found


def _session(framework: Framework, root: Path, run: Run) -> Session:
    entry = next((root / name for name in _entries(run) if (root / name).is_file()), None)
    machine = Machine(VERSIONS, CAPABILITIES.get(run.device, (9, 0)), devices=8, present=PRESENT)
    return Session(Program(framework.name, (str(root),), str(entry) if entry else None), machine, Budget())


def _entries(run: Run) -> list[str]:
    return [run.entry, OLDER_ENTRIES.get(run.entry, ENTRY), ENTRY]


class _Texts:
    """The sites in the files of a tree."""

    def __init__(self, framework: Framework, root: Path) -> None:
        self._framework, self._root = framework, root
        self._sites: dict[str, list[Site]] = {}

    def hash(self, refusal: Refusal) -> str:
        """The hash of the statement that refuses, "" if it was not written to refuse."""
        line = refusal.place.line
        found = self._in(refusal.place.file)
        hits = [site for site in found if site.kind in REFUSALS and site.line <= line <= site.end]
        return min(hits, key=lambda site: site.end - site.line).hash if hits else ""

    def left(self, asked: Asked, run: Collection[str]) -> str:
        """A required statement or function that was not run; "" if all were."""
        wanted = {place for hash in asked.statements for place in self._standing.get(hash, ())}
        return next((name for name in sorted({*wanted, *asked.functions}) if name not in run), "")

    def _in(self, file: str) -> list[Site]:
        if file not in self._sites:
            path = self._root / file
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            self._sites[file] = sites(file, text, self._framework.checking)
        return self._sites[file]

    @cached_property
    def _standing(self) -> dict[str, set[str]]:
        """The hash of each statement that refuses → the functions that contain it, "file:name"."""
        found: dict[str, set[str]] = {}
        aside = re.compile(self._framework.aside)
        for path in sorted(self._root.rglob("*.py")):
            file = path.relative_to(self._root).as_posix()
            if file.startswith(self._framework.roots) and not aside.search(file):
                for site in self._in(file):
                    if site.kind in REFUSALS:
                        found.setdefault(site.hash, set()).add(f"{file}:{site.function}")
        return found


def _told(verdict: Verdict, texts: _Texts) -> Told:
    certain = [one for one in verdict.refusals if one.certain]
    also = tuple(dict.fromkeys(str(one.place) for one in verdict.refusals if not one.certain))
    if not certain:
        says = "; ".join(one.message for one in verdict.refusals) or verdict.why
        return Told(ACCEPTS if verdict.outcome == "accepts" else UNKNOWN, also=also, says=says[:200])
    last = certain[-1]
    if last.error == "argparse":
        return Told(LACKS, says=last.message[:200])
    return Told(REFUSES, str(last.place), _function(last), texts.hash(last), also, last.message[:200])


def _function(refusal: Refusal) -> str:
    return f"{refusal.place.file}:{refusal.place.function}"


def _key(asked: Asked) -> str:
    return kept.digest(repr(asked))


@cache
def _interpreter() -> str:
    """A digest of everything else on which the answers depend."""
    folder = os.path.dirname(str(preflight.program.__file__))
    files = sorted(path for path in Path(folder).rglob("*.py"))
    own: Mapping[str, object] = {"machine": (VERSIONS, sorted(PRESENT), CAPABILITIES)}
    whole = b"".join(path.read_bytes() for path in (*files, Path(__file__))) + repr(own).encode()
    return hashlib.sha256(whole).hexdigest()
