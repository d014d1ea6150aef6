"""The verdicts of a tree's own source on labelled runs, as preflight reads it, compared with the labels of its real
validators: python -m upstream.agreement LABELS [--unknown-machine] [--every N] [--show N] [--trees FOLDER]

LABELS is a file of JSON lines, packed or not. A row names its tree: `release` of Megatron-LM, `fork` (a repository
OWNER+NAME), `launcher` or `case` of the stack of MindSpeed and MindSpeed-LLM, otherwise the newest described
Megatron-LM. Repositories are found as for the other commands; a missing one is skipped and named.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from upstream.checkout import Checkout, NoRevision
from upstream.frameworks import FRAMEWORKS, MEGATRON
from upstream.repositories import VARIABLE, NoRepository, Repositories

VERSIONS = {"torch": "2.8.0", "transformer-engine": "2.17"}
"""Versions on the machine on which the labels of releases were made."""
NEWEST = {"torch": "2.13.0", "transformer-engine": "2.19"}
"""Versions with which no version check refuses, as in the labels of rows without a release."""
ASCEND = 0
DEVICES = {7: "v100", 9: "h100", 10: "gb200", ASCEND: "910b"}
"""Devices by the architecture that a label names; labels of MindSpeed are from Ascend devices."""
ARGUMENTS = frozenset(("parse", "validate", "config", "microbatches"))
"""The stages that the labels of releases and forks run."""
PATCHES = "patches"
"""Steps of MindSpeed before its parser runs, which no label covers."""
CONNECTIONS = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
SAME = {"0.19.2": "core_v0.19.0"}
"""Releases for which a repository may lack the tag, each with the tag that has the same checks."""
STACK = (("megatron", "core_v0.12.1"), ("mindspeed", "028de58c"), ("mindspeed-llm", "c77308a1"))


class Run(NamedTuple):
    """A labelled run. tree: the name of its source. target: "" if given by the tree. labelled: the stages that its
    label ran, () for all but the patches."""

    name: str
    tree: str
    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    world: int | None
    accept: bool
    target: str = ""
    arch: int | None = 9
    labelled: frozenset[str] = frozenset()
    versions: tuple[tuple[str, str], ...] = tuple(VERSIONS.items())


def runs(path: Path) -> Iterator[Run]:
    """The labelled runs of a file."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    for row in map(json.loads, text.splitlines()):
        yield from _runs(row)


def _runs(row: dict[str, Any]) -> Iterator[Run]:
    if "case" in row:
        case = row["case"]
        words = ("pretrain_gpt.py", *case["argv"])
        for stack, target in (("llm", "mindspeed-llm"), ("core", "mindspeed")):
            if verdict := row.get(stack):
                accept = verdict["status"] == "accept"
                name = f"{case['id']} {stack}"
                yield Run(name, "stack", words, _environment(case), case["world_size"], accept, target, ASCEND)
        return
    if "launcher" in row:
        words, accept = (row["entry"], *row["argv"]), row["status"] == "accept"
        world = row["world_size"] or 1  # a launcher without options starts one process
        yield Run(row["id"], "stack", words, _environment(row), world, accept, "mindspeed-llm", ASCEND)
        return
    tree = row.get("fork") or row.get("release") or ""
    entry = "pretrain_hybrid.py" if row.get("entry") == "hybrid" else "pretrain_gpt.py"
    run = Run(row["id"], tree, (entry, *row["args"]), _environment(row), row["world_size"], row["accept"])
    if tree:
        usual = tuple(sorted({**CONNECTIONS, **dict(run.env)}.items()))
        yield run._replace(env=usual, labelled=ARGUMENTS)
    else:
        yield run._replace(arch=row.get("arch"), versions=tuple(NEWEST.items()))


def _environment(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in (row.get("env") or {}).items()))


def extract(tree: str, folder: Path, repositories: Repositories) -> None:
    """Extract the Python files of a tree into a folder. Raises NoRepository or NoRevision."""
    if tree == "stack":
        for name, revision in STACK:
            framework = FRAMEWORKS[name]
            at = folder / framework.repository.rpartition("/")[2]
            at.mkdir(parents=True)
            _put(Checkout(repositories.path(framework), revision), at)
    elif "+" in tree:
        repository = Path(os.environ.get(VARIABLE, "."), tree, "repo")
        if not repository.is_dir():
            raise NoRepository(f"no repository {repository}")
        _put(Checkout(repository, "HEAD"), folder)
    else:
        revision = MEGATRON.releases[-1].revision if not tree else SAME.get(tree, f"core_v{tree}")
        _put(Checkout(repositories.path(MEGATRON), revision), folder)


def _put(checkout: Checkout, folder: Path) -> None:
    checkout.extract(folder, [path for path in checkout.paths if path.endswith(".py")])


def judged(run: Run, tree: Path, known: bool) -> tuple[str, str]:
    """Whether the source agrees with the label ("beyond" if it refuses in a stage that the label does not run), and its
    message. known: the machine is stated."""
    import preflight
    from preflight.checking.program_findings import _verdict
    from preflight.program import judge

    stages: list[str] = []
    original = judge.judge
    _verdict.cache_clear()  # two rows may contain the same run, and each must count

    def heard(*given: Any, **said: Any) -> Any:
        verdict = original(*given, **said)
        if not stages or said.get("checkpoint"):  # later requests only verify fixes
            stages.extend(one.stage for one in verdict.refusals if one.certain)
        return verdict

    judge.judge = heard
    try:
        report = preflight.check_command(
            run.words,
            world_size=run.world,
            env=dict(run.env),
            device=DEVICES.get(run.arch) if known and run.arch is not None else None,
            target=run.target or None,
            program=tree,
            machine=dict(run.versions) if known else {},
            select=["own-check"],
        )
    finally:
        judge.judge = original
    why = "; ".join([f.message for f in report.findings] + [u.because for u in report.unknown])
    if report.undecided:
        return "undecided", why
    if run.accept is report.accepted:
        return "agree", why
    if not run.accept:
        return "missed", why
    covered = run.labelled or frozenset((*stages, "")) - {PATCHES}
    return ("false" if not stages or stages[-1] in covered else "beyond"), why


def compared(wanted: Iterable[Run], trees: Path, repositories: Repositories, known: bool, show: int) -> Iterator[str]:
    """A line for each tree, and the runs that disagree."""
    found: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for run in sorted(wanted, key=lambda one: (one.tree, one.target, one.words[0], one.env, one.world or 0)):
        tree = trees / (run.tree or "newest")
        if not tree.is_dir():
            tree.mkdir(parents=True)
            try:
                extract(run.tree, tree, repositories)
            except (NoRepository, NoRevision) as error:
                yield f"{run.tree or 'newest'}: left out, {error}"
        if not any(tree.iterdir()):
            continue
        kind, why = judged(run, tree, known)
        found.setdefault(run.tree or "newest", Counter())[kind] += 1
        shown[kind] += 1
        if kind != "agree" and shown[kind] <= show:
            yield f"  {kind}: {run.name} ({run.tree}): {why[:400]}"
    for name, counts in found.items():
        accepted = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        yield f"{name}: {accepted} of {sum(counts.values())}"


def main(words: Sequence[str]) -> int:
    """Print how many of preflight's readings agree with the labels."""
    parser = argparse.ArgumentParser(prog="python -m upstream.agreement", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("labels", type=Path)
    parser.add_argument("--unknown-machine", action="store_true", help="state neither versions nor the device")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth row only")
    parser.add_argument("--show", type=int, default=10, metavar="N", help="so many rows of each kind that do not agree")
    parser.add_argument("--trees", type=Path, help="keep the trees here")
    parser.add_argument("--repository", action="append", default=[], metavar="[FRAMEWORK=]PATH")
    given = parser.parse_args(words)
    wanted = list(runs(given.labels))[:: given.every]
    repositories = Repositories(given.repository, MEGATRON.name)
    with tempfile.TemporaryDirectory() as folder:
        trees = given.trees or Path(folder)
        for line in compared(wanted, trees, repositories, not given.unknown_machine, given.show):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
