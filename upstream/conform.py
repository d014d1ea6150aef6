"""Compares labels, new mutations and preflight's verdicts with the validators of a release."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from upstream.frameworks import Framework, Release
from upstream.options import NoOptions, Table
from upstream.repositories import Repositories

Case = dict[str, Any]
ROOT = Path(__file__).parent.parent
NUMBERS = ("0", "1", "2", "3", "4", "8", "128", "-1")
"""Values that a mutation assigns to an option that takes a number."""


def cases(path: Path, release: str) -> list[Case]:
    """The labelled runs of a file for a release, or without a release."""
    return [row for row in labelled(path) if row.get("release", release) == release]


def labelled(path: Path) -> list[Case]:
    """The labelled runs of `pretrain_gpt.py` in a file (JSON lines, packed or not)."""
    packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text(encoding="utf-8")
    return [row for row in map(json.loads, text.splitlines()) if row.get("entry", "gpt") == "gpt"]


def mutated(bases: Sequence[Case], table: Table, count: int, seed: int) -> Iterator[Case]:
    """Runs with one option added, changed or removed, the same ones for the same seed."""
    chance = random.Random(seed)
    names = sorted(name for name in table if name.startswith("--"))
    for number in range(count if bases else 0):
        base = chance.choice(bases)
        words, what = list(base["args"]), chance.choice(names)
        if what in words:
            start = words.index(what)
            end = next((at for at in range(start + 1, len(words)) if words[at].startswith("--")), len(words))
            words[start:end] = chance.choice([[], typed(what, table, chance)])
        else:
            words += typed(what, table, chance)
        yield {**base, "id": f"mutation-{seed}-{number}", "args": words, "what": what, "accept": None}


def typed(name: str, table: Table, chance: random.Random) -> list[str]:
    """An option as a user might type it."""
    row = [*table[name], *[None] * 7]
    kind, nargs, choices = row[1], row[3], row[4]
    if kind in ("true", "false", "pair", "help") or str(kind).startswith("const"):
        return [name]
    values = [str(one) for one in choices] if choices else list(NUMBERS) if kind in ("int", "float") else ["x"]
    return [name, *(chance.choice(values) for _ in range(nargs if isinstance(nargs, int) else 1))]


def judged(
    framework: Framework, repositories: Repositories, release: Release, runs: Iterable[Case], python: str
) -> dict[str, Case]:
    """Id → verdict of the release's own validators. Raises NoOptions if they do not run."""
    with tempfile.TemporaryDirectory() as folder:
        repositories.checkout(framework, release.revision).extract(Path(folder), framework.extracted)
        return judged_in(folder, runs, python, f"{framework.name} {release.name}")


def judged_in(folder: str, runs: Iterable[Case], python: str, whose: str) -> dict[str, Case]:
    """Id → verdict of the validators in a folder. Raises NoOptions if they do not run."""
    text = "".join(
        json.dumps({name: run.get(name) for name in ("id", "args", "world_size", "env")}) + "\n" for run in runs
    )
    words = [python, "-W", "ignore", "-m", "upstream.inside.validator", folder]
    done = subprocess.run(words, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise NoOptions(f"the validators of {whose} do not run: {done.stderr.strip()[-1500:]}")
    verdicts = (json.loads(line) for line in done.stdout.splitlines())
    return {verdict["id"]: verdict for verdict in verdicts}


def compared(
    runs: Sequence[Case], verdicts: Mapping[str, Case], of: Mapping[str, bool | None], said: Mapping[str, str] = {}
) -> Iterator[str]:
    """The agreement of verdicts with the judge's, and each run that disagrees. said: run → the reason for refusing it
    although the release accepts it."""
    known = [run for run in runs if of.get(run["id"]) is not None]
    wrong = [run for run in known if of[run["id"]] != verdicts[run["id"]]["accept"]]
    false = sum(bool(verdicts[run["id"]]["accept"]) for run in wrong)
    yield f"{len(known) - len(wrong)} of {len(known)} agree; {false} are refused that the release accepts"
    for run in wrong:
        verdict = verdicts[run["id"]]
        told = "accepts" if verdict["accept"] else f"refuses at {verdict['where']} ({verdict['stage']})"
        what = f"{run.get('what') or run.get('mutations') or ''}"
        yield f"  {run['id']}: the release {told}: {what}" + (f"; {why}" if (why := said.get(run["id"])) else "")


def own_errors(framework: Framework, release: Release, runs: Iterable[Case]) -> dict[str, str]:
    """Id → the errors of preflight on a run of that release, "" if it accepts the run."""
    import preflight

    target = f"{framework.name}@{release.name}"
    found = {}
    for run in runs:
        env = {name: str(value) for name, value in (run.get("env") or {}).items()}
        words = ["pretrain_gpt.py", *run["args"]]
        report = preflight.check_command(words, world_size=run["world_size"], env=env, device="h100", target=target)
        errors = [f for f in report.findings if f.severity is preflight.Severity.ERROR and f.rule != "predicted-oom"]
        found[run["id"]] = "; ".join(f"{error.rule}: {error.message}" for error in errors)
    return found


def conform(
    framework: Framework, repositories: Repositories, release: Release, labels: Path, options: Mapping[str, Any]
) -> Iterator[str]:
    """Compare labels, and optionally preflight, with the judge, on labelled runs and on mutations of accepted ones."""
    from upstream.options import options as table_of

    python = options.get("python", sys.executable)
    runs = cases(labels, release.name)[: options.get("limit") or None]
    if count := options.get("mutations"):
        table = table_of(framework, repositories, release, python)
        runs += list(mutated([run for run in runs if run["accept"]], table, count, options.get("seed", 0)))
    verdicts = judged(framework, repositories, release, runs, python)
    yield f"{framework.name} {release.name}: {len(runs)} runs, {sum(v['accept'] for v in verdicts.values())} accepted"
    yield from ("labels: " + line for line in compared(runs, verdicts, {run["id"]: run["accept"] for run in runs}))
    if options.get("preflight"):
        errors = own_errors(framework, release, runs)
        accepted = {id: not why for id, why in errors.items()}
        yield from ("preflight: " + line for line in compared(runs, verdicts, accepted, errors))
