"""Refusals of a release that no declared rule covers, as a work list: found by interpreting its source on mutations of
published runs, those closest to the most published runs first."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from preflight.checking.program_findings import NEVER_SURE
from preflight.loaders import load
from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Refusal
from preflight.source.source_file import InputError, Source
from upstream.conform import Case, mutated, own_errors, typed
from upstream.frameworks import FRAMEWORKS, Framework, Release
from upstream.options import Table
from upstream.options import options as table_of
from upstream.repositories import Repositories

MACHINE = Machine({"torch": "2.8.0", "transformer-engine": "2.17"}, capability=(9, 0), devices=8)
"""The machine that `upstream.inside.validator` simulates."""
SCRIPTS = (".sh", "model_config.yaml")
"""The endings of files with published runs: scripts, and functional tests."""
MODEL_ARGS, ENV_VARS, ENTRY = "MODEL_ARGS", "ENV_VARS", "pretrain_gpt.py"
PARALLEL = ("--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size")
NODE, ASKED, EACH, BASES = 8, 3, 2, 60
"""Devices per node; runs per refusal that the rules judge; runs with every option; runs that are changed."""
SHOWN = 110
LEFT_OUT = {"argparse", *NEVER_SURE}
"""Refusals of the parser, and errors that may be caused by code that was not read."""
INTERPRETED = ("megatron", "mindspeed", "mindspeed-llm")
"""Frameworks whose programs take a command line."""
Options = frozenset[str]
Plain = Callable[[Sequence[Case]], list[Case]]


class Site(NamedTuple):
    """A statement that refuses. near: published runs that set all but one of the options that it reads. told: the
    number of judged runs that a declared rule refuses. what: the change by which a run reaches it."""

    place: str
    function: str
    stage: str
    message: str
    options: tuple[str, ...]
    near: int
    runs: int
    asked: int
    told: int
    what: str

    @property
    def line(self) -> str:
        """The site as a line for maintainers."""
        said = " ".join(self.message.split())[:SHOWN] or "(no message)"
        told = f", told in {self.told} of {self.asked} runs" if self.told else ""
        return (
            f"{self.near:5}  {self.place} {self.function} ({self.stage}{told}): {said}\n"
            f"       reads {' '.join(self.options) or 'no option'}; for example {self.what or 'as published'}"
        )


def release_of(framework: Framework, name: str) -> Release:
    """A release by its name; a tag, branch or commit is read as the last described release."""
    try:
        return framework.release(name)
    except KeyError:
        return framework.releases[-1]._replace(revision=name)


def published(texts: Mapping[str, str]) -> list[Case]:
    """The runs in scripts and functional tests, without unknown values; each set of options once."""
    found: dict[tuple[str, ...], Case] = {}
    for path, text in sorted(texts.items()):
        for words, env in _functional(text) if path.endswith(".yaml") else _scripted(text, path):
            if "--num-layers" in words:
                run = {"id": path, "args": words, "env": env, "world_size": _world(words), "what": ""}
                found.setdefault(tuple(words), run)
    return list(found.values())


def _scripted(text: str, path: str) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    with contextlib.suppress(InputError):
        for document in load(Source(text, path)):
            words: list[str | None] = [word.text for word in document.launch.words] if document.launch else []
            yield _known(words), {}


def _known(words: Sequence[str | None]) -> list[str]:
    """The options of a command with all their values, without those that have an unknown one."""
    options: list[list[str | None]] = []
    for word in words:
        if word is not None and word.startswith("--"):
            options.append([word])
        elif options:
            options[-1].append(word)
    return [str(word) for option in options if None not in option for word in option]


def _functional(text: str) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    with contextlib.suppress(yaml.YAMLError):
        tree = yaml.safe_load(text)
        if isinstance(tree, dict) and isinstance(tree.get(MODEL_ARGS), dict):
            env = {str(name): str(value) for name, value in (tree.get(ENV_VARS) or {}).items()}
            yield [word for name, value in tree[MODEL_ARGS].items() for word in _words(str(name), value)], env


def _words(name: str, value: Any) -> list[str]:
    if value is True:
        return [name]
    if value is False or value is None or "$" in str(value):
        return []
    return [name, *(str(one) for one in (value if isinstance(value, list) else str(value).split()))]


def _world(words: Sequence[str]) -> int:
    """The number of devices of the whole nodes that the layout needs."""
    sizes = [words[words.index(name) + 1] for name in PARALLEL if name in words[:-1]]
    needed = 1
    for size in sizes:
        needed *= int(size) if size.isdigit() and int(size) else 1
    return needed * NODE if needed % NODE and needed > NODE else max(needed, NODE)


def each_option(bases: Sequence[Case], table: Table, seed: int) -> Iterator[Case]:
    """Runs with every option in several spellings that a user may type, added to one published run after another."""
    chance = random.Random(seed)
    names = sorted(one for one in table if one.startswith("--"))
    for at, name in enumerate(names * EACH if bases else ()):
        base, words = bases[at % len(bases)], typed(name, table, chance)
        yield {**base, "id": f"each-{at}", "args": _set(base["args"], words), "what": " ".join(words)}


def _set(words: Sequence[str], option: Sequence[str]) -> list[str]:
    """The words of a run with one option as its argument."""
    if option[0] not in words:
        return [*words, *option]
    start = list(words).index(option[0])
    end = next((at for at in range(start + 1, len(words)) if words[at].startswith("--")), len(words))
    return [*words[:start], *option, *words[end:]]


def refusals(session: Session, runs: Iterable[Case]) -> Iterator[tuple[Case, Refusal | None]]:
    """Each run with the statement that certainly refuses it, None if it is accepted or undecided."""
    for run in runs:
        env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **{name: str(value) for name, value in run["env"].items()}}
        verdict = session.judge(run["args"], env, run["world_size"])
        yield run, next((one for one in verdict.refusals if one.certain), None)


def sites(
    framework: Framework,
    release: Release,
    refused: Iterable[tuple[Case, Refusal]],
    table: Table,
    scripts: Sequence[Case],
) -> list[Site]:
    """The statements at which runs are refused, some of them by no rule, those closest to the most published runs
    first."""
    options: dict[str, str] = {}
    for name, row in table.items():
        options.setdefault(row[0], name)
    given = [frozenset(word.partition("=")[0] for word in run["args"] if word.startswith("--")) for run in scripts]
    groups: dict[tuple[str, str], list[tuple[Case, Refusal]]] = defaultdict(list)
    for run, refusal in refused:
        groups[str(refusal.place), refusal.place.function].append((run, refusal))
    asked = [run for group in groups.values() for run, _ in group[:ASKED]]
    before = [run["before"] for run in asked if "before" in run]
    errors = own_errors(framework, release, [*asked, *before])
    found = [_site(group, options, given, errors) for group in groups.values()]
    return sorted((one for one in found if one.told < one.asked), key=lambda one: (one.told, -one.near, one.place))


def _site(
    group: Sequence[tuple[Case, Refusal]],
    options: Mapping[str, str],
    given: Sequence[Options],
    errors: Mapping[str, str],
) -> Site:
    run, refusal = group[0]
    set_ = frozenset(word.partition("=")[0] for word in run["args"] if word.startswith("--"))
    read = tuple(options[name] for name in refusal.reads if name in options)
    needed = set_ & frozenset(read)
    near = sum(len(needed - one) <= 1 and bool(needed & one) for one in given)
    told = sum(_tells(one, errors) for one, _ in group[:ASKED])
    place = refusal.place
    counts = near, len(group), len(group[:ASKED]), told
    return Site(str(place), place.function, refusal.stage, refusal.message, read, *counts, run["what"])


def _tells(run: Case, errors: Mapping[str, str]) -> bool:
    """Whether a rule refuses a run, and not only for what the run had before its last change."""
    return bool(errors[run["id"]]) and errors[run["id"]] != errors.get(run.get("before", {}).get("id", ""))


def uncovered(
    framework: Framework, repositories: Repositories, release: Release, options: Mapping[str, Any]
) -> Iterator[str]:
    """The work list of a release. options: count and seed of random mutations, scripts: folders with further published
    runs, python."""
    table = table_of(framework, repositories, release, options["python"])
    source = repositories.checkout(framework, release.revision)
    texts = dict(source.texts([path for path in source.paths if path.endswith(SCRIPTS)], SCRIPTS))
    for folder in options.get("scripts") or ():
        texts.update({str(path): path.read_text(errors="replace") for path in _files(folder)})
    scripts = published(texts)
    with tempfile.TemporaryDirectory() as folder:
        roots = extracted(framework, repositories, release, Path(folder))
        entry = roots[0] / ENTRY
        program = Program(framework.name, tuple(map(str, roots)), str(entry) if entry.is_file() else None)

        def plain(runs: Sequence[Case]) -> list[Case]:
            errors = own_errors(framework, release, runs)
            return [run for run in runs if not errors[run["id"]]]

        found = in_thread(lambda: _found(Session(program, MACHINE, Budget()), scripts, table, options, plain))
    bases, count, refused = found
    listed = sites(framework, release, refused, table, scripts)
    places = len({str(refusal.place) for _, refusal in refused})
    named = release.name if release in framework.releases else f"{release.name} at {release.revision}"
    yield f"{framework.name} {named}: {len(scripts)} published runs, {bases} of them accepted"
    yield f"{count} mutations, refused at {places} places; at {len(listed)} of them not by a rule each time"
    yield " near  place, function, stage: message"
    yield from (one.line for one in listed)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.name.endswith(SCRIPTS) and path.is_file())


def extracted(framework: Framework, repositories: Repositories, release: Release, folder: Path) -> list[Path]:
    """The trees of a release: its own, and those on which it is built."""
    roots = []
    for name, revision in ((framework.name, release.revision), *release.on):
        roots.append(folder / name)
        kind = FRAMEWORKS.get(name, framework)
        repositories.checkout(kind, revision).extract(roots[-1], (*kind.extracted, *kind.roots, ENTRY))
    return roots


def _found(
    session: Session, scripts: Sequence[Case], table: Table, options: Mapping[str, Any], plain: Plain
) -> tuple[int, int, list[tuple[Case, Refusal]]]:
    """The number of accepted published runs, the number of their mutations, and the refused ones. plain: selects the
    runs that no rule refuses as published."""
    accepted = [run for run, refusal in refusals(session, scripts) if refusal is None]
    random.Random(options["seed"]).shuffle(accepted)
    bases = plain(accepted[:BASES])
    once = [*each_option(bases, table, options["seed"]), *mutated(bases, table, options["count"], options["seed"])]
    first = list(refusals(session, once))
    passed = [{**run, "before": run} for run, refusal in first if refusal is None]
    twice = list(mutated(passed, table, options["count"], options["seed"] + 1))
    found = [*first, *refusals(session, twice)]
    kept = [(run, refusal) for run, refusal in found if refusal is not None and refusal.error not in LEFT_OUT]
    return len(accepted), len(found), kept
