"""Fresh runs of forks of Megatron-LM with the verdicts of their own validators: rows for `upstream.agreement`.

python -m upstream.forks LABELS OWNER+NAME... --python PYTHON [--count 60] > ROWS
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from upstream.agreement import extract
from upstream.checkout import NoRevision
from upstream.conform import Case, judged_in, labelled, mutated
from upstream.options import NoOptions, Table, options_in
from upstream.repositories import NoRepository, Repositories

NUMBER = re.compile(r"^(?:MAJOR|MINOR) = (\d+)", re.MULTILINE)


def rows(fork: str, labels: Sequence[Case], count: int, python: str, seed: int = 0) -> Iterator[Case]:
    """Runs of a fork with its verdicts: changes of what the nearest release accepts, by options that the fork has.

    Raises NoOptions if its parser or its validators do not run, NoRepository or NoRevision.
    """
    with tempfile.TemporaryDirectory() as folder:
        extract(fork, Path(folder), Repositories())
        table = options_in(folder, fork)
        bases = [_fitting(one, table) for one in _nearest(labels, _version(Path(folder)))]
        runs = list(mutated(bases, table, count, seed))
        verdicts = judged_in(folder, runs, python, fork)
    for run in runs:
        yield {**run, **verdicts[run["id"]], "fork": fork}


def _fitting(run: Case, table: Table) -> Case:
    """A run without the options that a fork of an older release lacks."""
    words: list[str] = []
    kept = True
    for word in run["args"]:
        kept = word.partition("=")[0] in table if word.startswith("--") else kept
        words += [word] if kept else []
    return {**run, "args": words}


def _version(folder: Path) -> tuple[int, ...]:
    """The release stated by a fork, (0, 0) if it states none."""
    path = folder / "megatron/core/package_info.py"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return tuple(map(int, NUMBER.findall(text)[:2])) or (0, 0)


def _nearest(labels: Sequence[Case], version: tuple[int, ...]) -> list[Case]:
    """The accepted runs of the first labelled release from this one on, otherwise those of the last one."""
    of: dict[tuple[int, ...], list[Case]] = {}
    for row in labels:
        if row["accept"]:
            of.setdefault(tuple(map(int, row["release"].split(".")[:2])), []).append(row)
    return of[min((one for one in of if one >= version), default=max(of))]


def main(words: Sequence[str]) -> int:
    """Print the rows of each fork; a fork whose validators do not run is reported on stderr."""
    parser = argparse.ArgumentParser(prog="python -m upstream.forks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("labels", type=Path, help="labelled runs of releases")
    parser.add_argument("forks", nargs="+", metavar="OWNER+NAME", help="below the folder of PREFLIGHT_UPSTREAM")
    parser.add_argument("--python", default=sys.executable, help="with torch")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    labels = [row for row in labelled(given.labels) if row.get("release")]
    for fork in given.forks:
        try:
            for row in rows(fork, labels, given.count, given.python, given.seed):
                print(json.dumps(row), flush=True)
        except (NoOptions, NoRepository, NoRevision) as error:
            print(f"{fork}: left out, {os.linesep.join(str(error).splitlines()[-3:])}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
