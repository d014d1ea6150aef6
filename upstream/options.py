"""The option table of a release, from its own parser in a separate process, and the tables of all releases as
intervals."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from preflight.source import cache_folder as kept
from upstream.frameworks import FRAMEWORKS, Framework, Release
from upstream.keys import keys
from upstream.repositories import Repositories

FIELDS = ("dest", "kind", "default", "nargs", "choices", "also", "required")
"""The columns of an option's row, in order; trailing None and false values are omitted."""
Row = list[Any]
Table = dict[str, Row]
HERE = "<current directory>"
"""The default that represents the folder in which a run starts."""
FOLDER = "options"
"""The folder of the cache with the tables."""
_SECONDS = 300
"""Maximum processor time of a parser."""
_WAIT = 12 * _SECONDS
"""Maximum time to wait for it: on a busy machine it takes longer."""


class NoOptions(Exception):
    """Raised if the parser of a release does not run here."""


def options(framework: Framework, repositories: Repositories, release: Release, python: str = sys.executable) -> Table:
    """Option, or key, → row, for one release and everything that it is built on. Raises NoOptions."""
    source = repositories.checkout(framework, release.revision)
    under = tuple(repositories.checkout(FRAMEWORKS[name], below).commit for name, below in release.on)
    if (known := _tables.get(key := (framework.name, python, source.commit, *under))) is None:
        known = _tables[key] = _kept(framework, repositories, release, python, key)
    return dict(known)


_tables: dict[tuple[str, ...], Table] = {}
"""The tables that this process has read, by commits."""


def _kept(
    framework: Framework, repositories: Repositories, release: Release, python: str, key: tuple[str, ...]
) -> Table:
    """The table of a release; a parser runs once for each commit, Python and version of the code that runs it."""
    about = (key, framework.parser, framework.extracted, _interpreter(python), _reader())
    name = f"{FOLDER}/{kept.digest(repr(about))}.json"
    if (text := kept.read(name)) is None:
        text = json.dumps(_options(framework, repositories, release, python))
        kept.write(name, text)
    found: Table = json.loads(text)
    return found


def _interpreter(python: str) -> tuple[str, int]:
    """The file of a Python, and when it was written."""
    path = Path(shutil.which(python) or python).resolve()
    return str(path), path.stat().st_mtime_ns if path.is_file() else 0


@cache
def _reader() -> str:
    """A digest of the code that reads options."""
    here = Path(__file__).parent
    files = (*sorted((here / "inside").rglob("*.py")), Path(__file__), here / "keys.py")
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _options(framework: Framework, repositories: Repositories, release: Release, python: str) -> Table:
    if framework.parser == "keys":
        return keys(repositories.checkout(framework, release.revision).texts(framework.extracted))
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder, framework.name)]
        repositories.checkout(framework, release.revision).extract(roots[0], framework.extracted)
        for name, under in release.on:
            roots.append(Path(folder, f"under-{name}"))
            base = FRAMEWORKS[name]
            repositories.checkout(base, under).extract(roots[-1], base.extracted)
        printed = _run(
            [python, "-W", "ignore", "-m", f"upstream.inside.{framework.parser}", *map(str, roots)],
            folder,
            f"{framework.name} {release.name}",
        )
    for root in roots:  # a default may be a path
        printed = printed.replace(f"{root}/", "")
    return _table(printed.replace(folder, HERE))


def options_in(folder: str, whose: str, python: str = sys.executable) -> Table:
    """Option → row, from only the parser of a Megatron in a folder. Raises NoOptions."""
    words = [python, "-W", "ignore", "-m", "upstream.inside.megatron_parser", folder, "alone"]
    return _table(_run(words, folder, whose))


def _table(printed: str) -> Table:
    found: list[dict[str, Any]] = json.loads(printed)["options"]
    return {option["names"][0]: row(option) for option in sorted(found, key=lambda one: str(one["names"][0]))}


def _run(words: list[str], folder: str, whose: str) -> str:
    """The output of a command that runs in a folder. Raises NoOptions."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "PYTHONHASHSEED": "0",
        "ASCEND_HOME_PATH": folder,
    }
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=_WAIT,
            cwd=folder,
            env=environment,
            check=False,
            preexec_fn=_limited,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoOptions(f"the parser of {whose} does not run: {error}") from error
    if done.returncode:
        raise NoOptions(f"the parser of {whose} does not run: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _limited() -> None:
    """Limit the processor time of a process that is about to start."""
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))


def row(option: Mapping[str, Any]) -> Row:
    """An option without its name, compactly."""
    whole = {**option, "also": option["names"][1:] or None}
    values = [whole.get(field) for field in FIELDS]
    while values and (values[-1] is None or values[-1] is False) and len(values) > 2:
        if values[-1] is False and len(values) == 1 + FIELDS.index("default"):
            break  # the default of a switch
        values.pop()
    return values


def delta(table: Table, base: Table) -> dict[str, Row | None]:
    """The differences of a table from its base; None for missing options."""
    changed: dict[str, Row | None] = {name: values for name, values in table.items() if base.get(name) != values}
    return {**changed, **{name: None for name in base if name not in table}}


def intervals(tables: Sequence[Mapping[str, Row | None]]) -> dict[str, list[list[Any]]]:
    """Option → its rows, each with the first and the last release to which it applies, from the tables of all releases
    in order."""
    found: dict[str, list[list[Any]]] = {}
    for number, table in enumerate(tables):
        for name, values in table.items():
            rows = found.setdefault(name, [])
            if rows and rows[-1][1] == number - 1 and rows[-1][2] == values:
                rows[-1][1] = number
            else:
                rows.append([number, number, values])
    return dict(sorted(found.items()))
