"""Measures the agreement of preflight's tables with a release: fresh mutations of published runs, judged by its source.

    python -m upstream.trial FRAMEWORK NAME REVISION [--like RELEASE] [--count 300] [--python PYTHON]

prints the result as JSON. The source is interpreted, and nothing of it is run; preflight judges by the name of the
release, without the source.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import preflight
from preflight.checking.program_findings import NEVER_SURE
from preflight.program.judge import PARSER, Session, in_thread
from preflight.program.verdict import Budget, Program, Verdict
from preflight.source.finding import Finding
from upstream.conform import NUMBERS, Case, mutated
from upstream.frameworks import FRAMEWORKS, Framework, Release
from upstream.options import Table
from upstream.options import options as table_of
from upstream.repositories import Repositories
from upstream.uncovered import BASES, ENTRY, INTERPRETED, MACHINE, SCRIPTS, extracted, published

COUNT = 300
"""Number of runs on which a release is tried."""
MOST = 4
"""Maximum number of mutations, as a multiple of these; those that the source does not decide are left out."""
BAR = 0.98
"""The share of the runs decided by the source on which preflight must agree; it must also refuse none that the source
accepts."""
SHOWN = 25
CONFIGS = "configs"
WORLD = 8
Ask = Callable[[Case], Verdict]


class Trial(NamedTuple):
    """The result. false: runs that preflight refuses and the source accepts; missed: the reverse."""

    rows: int = 0
    refused: int = 0
    false: int = 0
    missed: int = 0
    lines: tuple[str, ...] = ()

    @property
    def agreement(self) -> float:
        return (self.rows - self.false - self.missed) / self.rows if self.rows else 0.0

    @property
    def passes(self) -> bool:
        """Whether the description may be shipped."""
        return self.rows >= COUNT and not self.false and self.agreement >= BAR


def trial(
    framework: Framework, repositories: Repositories, release: Release, like: Release, python: str, count: int = COUNT
) -> Trial:
    """Tries a release. like: the release whose published runs are mutated if this one has none."""
    seed = int(repositories.checkout(framework, release.revision).commit.removeprefix("sha256:")[:8], 16)
    table = table_of(framework, repositories, release, python)
    commands = framework.name in INTERPRETED
    published_by = _texts if commands else _configs
    bases = published_by(framework, repositories, (release, like))
    errors = command_errors if commands else config_errors
    target, before = (f"{framework.name}@{one.name}" for one in (release, like))
    with tempfile.TemporaryDirectory() as folder:

        def decided() -> list[tuple[Case, Verdict]]:
            ask = _asking(framework, repositories, release, Path(folder, "new"))
            some = _accepted(ask, partial(errors, target), bases, seed)
            changed = (mutated if commands else changed_configs)(some, table, MOST * count, seed)
            judged = ((run, ask(run)) for run in changed)
            return list(islice(((run, verdict) for run, verdict in judged if _sure(verdict) is not None), count))

        rows = in_thread(decided)
        found = [(run, verdict, _counted(errors(target, run), verdict)) for run, verdict in rows]
        false = [(run, told) for run, verdict, told in found if _sure(verdict) and told]

        def as_before() -> set[str]:
            ask = _asking(framework, repositories, like, Path(folder, "old"))
            there = [] if commands else _configs(framework, repositories, (like,))
            own = _accepted(ask, partial(errors, before), there, seed)
            return {run["id"] for run, told in false if same_before(ask, partial(errors, before), own, run, told)}

        asked = bool(false) and like.revision != release.revision
        return _compared(found, in_thread(as_before) if asked else ())


def same_before(
    ask: Ask, errors: Callable[[Case], list[Finding]], own: Sequence[Case], run: Case, told: Sequence[Finding]
) -> bool:
    """Whether preflight refuses a run of the described release by the same rules while its source accepts it. own:
    configs that this release accepts, to be changed in the same way if it does not accept the run."""
    rules = {one.rule for one in told}
    same = [run]
    if own and not _sure(ask(run)):
        same = [changed(base, *run["change"]) for base in own if run["change"][0] in base["config"]]
    return any(_sure(ask(one)) and rules <= {error.rule for error in errors(one)} for one in same)


def _texts(framework: Framework, repositories: Repositories, releases: Iterable[Release]) -> list[Case]:
    """The runs in scripts of the first of these releases that publishes any."""
    for release in releases:
        source = repositories.checkout(framework, release.revision)
        texts = source.texts([path for path in source.paths if path.endswith(SCRIPTS)], SCRIPTS)
        if texts:
            return published(dict(texts))
    return []


def _asking(framework: Framework, repositories: Repositories, release: Release, folder: Path) -> Ask:
    """Judges runs by the source of a release. folder: the place to which the source is extracted."""
    roots = extracted(framework, repositories, release, folder)
    entry = roots[0] / ENTRY
    program = Program(framework.name, tuple(map(str, roots)), str(entry) if entry.is_file() else None)
    session = Session(program, MACHINE, Budget())

    def ask(run: Case) -> Verdict:
        env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **{name: str(value) for name, value in run["env"].items()}}
        return session.judge(run["args"], env, run["world_size"], run.get("config"))

    return ask


def _sure(verdict: Verdict) -> bool | None:
    """Whether the source accepts a run; None if undecided."""
    if verdict.outcome == "accepts":
        return True
    certain = next((one for one in verdict.refusals if one.certain), None)
    return False if certain is not None and certain.error not in NEVER_SURE else None


def _accepted(ask: Ask, errors: Callable[[Case], list[Finding]], bases: Sequence[Case], seed: int) -> list[Case]:
    """Some of the published runs that preflight and the source accept."""
    order = list(bases)
    random.Random(seed).shuffle(order)
    return list(islice((run for run in order if _sure(ask(run)) and not errors(run)), BASES))


def _configs(framework: Framework, repositories: Repositories, releases: Iterable[Release]) -> list[Case]:
    """The configs of the first of these releases that publishes any."""
    for release in releases:
        texts = repositories.checkout(framework, release.revision).texts([CONFIGS], (".yaml",))
        trees = {path: tree for path, text in sorted(texts.items()) if isinstance(tree := _tree(text), dict)}
        if trees:
            return [
                {"id": path, "config": tree, "args": [], "env": {}, "world_size": _world(tree)}
                for path, tree in trees.items()
            ]
    return []


def _tree(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _world(tree: dict[str, Any]) -> int:
    """The devices that the sizes of a config need."""
    sizes, needed = tree.get("parallel_config"), 1
    for name in ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel"):
        size = sizes.get(name, 1) if isinstance(sizes, dict) else 1
        needed *= size if isinstance(size, int) and size > 0 else 1
    return needed if isinstance(sizes, dict) and "data_parallel" in sizes else max(needed, WORLD)


def changed_configs(bases: Sequence[Case], table: Table, count: int, seed: int) -> Iterator[Case]:
    """Configs with one key added, removed or changed, the same ones for the same seed."""
    chance = random.Random(seed)
    for number in range(count if bases else 0):
        base = chance.choice(bases)
        tree = _plain(base)
        section = chance.choice([name for name, inner in tree.items() if isinstance(inner, dict)])
        named = [name.partition(".")[2] for name in table if name.startswith(f"{section}.")]
        key = chance.choice(sorted({*named, *tree[section]}) or ["unknown_key"])
        value = chance.choice([None, *map(int, NUMBERS), True, False, "x"])
        yield {**changed(base, section, key, value), "id": f"mutation-{seed}-{number}"}


def changed(base: Case, section: str, key: str, value: object) -> Case:
    """A config with a key of a section set, or removed if the value is None."""
    tree = _plain(base)
    inner = tree[section] if isinstance(tree[section], dict) else {}
    tree[section] = {name: old for name, old in inner.items() if name != key} if value is None else inner | {key: value}
    what = f"{section}.{key} {'left out' if value is None else repr(value)}"
    return {**base, "config": tree, "what": what, "change": (section, key, value)}


def _plain(base: Case) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(json.dumps(base["config"], default=str))
    return tree


def command_errors(target: str, run: Case) -> list[Finding]:
    """The errors of preflight on a command at a release."""
    env = {name: str(value) for name, value in run["env"].items()}
    return _errors(
        preflight.check_command(
            [ENTRY, *run["args"]], world_size=run["world_size"], env=env, device="h100", target=target
        )
    )


def config_errors(target: str, run: Case) -> list[Finding]:
    """The errors of preflight on a config at a release."""
    text = yaml.safe_dump(run["config"], sort_keys=False, allow_unicode=True)
    return _errors(preflight.check_text(text, name="run.yaml", world_size=run["world_size"], target=target))


def _errors(report: preflight.Report) -> list[Finding]:
    return [one for one in report.findings if one.severity is preflight.Severity.ERROR and one.rule != "predicted-oom"]


def _beyond(error: Finding, verdict: Verdict) -> bool:
    """Whether the check behind an error was not interpreted: its file was not interpreted at all, or is not a file of
    the release."""
    file = (error.upstream or "").partition(":")[0]
    return file != PARSER and file not in {name.partition(":")[0] for name in verdict.functions}


def _counted(errors: Sequence[Finding], verdict: Verdict) -> list[Finding]:
    """The errors that the source can decide; all of them if it refuses."""
    return [one for one in errors if not (_sure(verdict) and _beyond(one, verdict))]


def _compared(rows: Sequence[tuple[Case, Verdict, Sequence[Finding]]], as_before: Collection[str]) -> Trial:
    """as_before: runs that preflight also refuses at the described release although its source accepts them: these
    refusals come from a stage that is not interpreted."""
    false, missed, lines = 0, 0, []
    for run, verdict, told in rows:
        accepts = bool(_sure(verdict))
        if accepts == (not told) or run["id"] in as_before:
            continue
        false, missed = false + accepts, missed + (not accepts)
        said = next((f"refuses at {one.place}: {one.message}" for one in verdict.refusals if one.certain), "accepts")
        own = "; ".join(f"{one.rule}: {one.message}" for one in told) or "accepts"
        lines.append(" ".join(f"{run['what']}: the source {said}; preflight: {own}".split())[:300])
    refused = sum(not _sure(verdict) for _, verdict, _ in rows)
    return Trial(len(rows), refused, false, missed, tuple(lines[:SHOWN]))


def main(words: Sequence[str]) -> int:
    """Print the trial of a release as JSON."""
    parser = argparse.ArgumentParser(prog="python -m upstream.trial", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("name")
    parser.add_argument("revision")
    parser.add_argument("--like", default="")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args(words)
    framework = FRAMEWORKS[given.framework]
    like = framework.release(given.like or given.name)
    release = like._replace(name=given.name, revision=given.revision)
    found = trial(framework, Repositories(), release, like, given.python, given.count)
    print(json.dumps(found._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
