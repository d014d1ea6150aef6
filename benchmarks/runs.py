"""The runs of every rule's own fixtures, which mutation.py puts its wrong rules to:
each is built when it is first asked for."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from preflight.checking.engine import Policy
from preflight.job import Job
from preflight.lint.rule import Checkable, Rule, collect
from preflight.plugins.manager import load
from preflight.source.finding import Finding
from preflight.source.source_file import InputError
from preflight.testing import Case
from preflight.testing import load as cases_of

TESTS = Path(__file__).resolve().parent.parent / "tests"
PLUGINS = load()
RULES: dict[str, Checkable] = {rule.id: rule for rule in PLUGINS.rules(None)}
ACCEPTED, EVERY = "accepted", "every"
NOTHING = Policy(chosen=lambda id, path: False)


class Run(NamedTuple):
    """A run of a fixture.

    sure: its test distinguishes silent from unknown. fixed: it checks the fixed text. heard: it checks only messages;
    placed: the upstream location; offered: the fixes that it compares.
    """

    job: Job
    options: Mapping[str, Any] = {}
    sure: bool = False
    fixed: bool = False
    heard: bool = False
    placed: bool = False
    offered: Callable[[Finding], str] = str


class Runs:
    """Rule → its runs; ACCEPTED: runs on which no error may speak, EVERY: runs on which no rule may crash."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="preflight-mutation."))
        self._makers: dict[str, list[Callable[[], Iterable[Run]]]] = defaultdict(list)
        self._made: dict[str, list[Run]] = defaultdict(list)
        sys.path[:0] = [str(TESTS), str(TESTS / "dialects")]
        for keys, make in (
            *self._pairs(),
            *self._defects(),
            *self._odd(),
            *self._edges(),
            *self._graph(),
            *self._rules(),
        ):
            once = _once(make)
            for key in keys:
                self._makers[key].append(once)

    def __getitem__(self, key: str) -> Iterator[Run]:
        yield from self._made[key]
        while self._makers[key]:
            made = list(self._makers[key].pop(0)())
            self._made[key] += made
            yield from made

    def _jobs(self, case: Case, folder: Path | None = None) -> tuple[Job, ...]:
        return case.check(folder or self._folder, PLUGINS, NOTHING).jobs

    def _pairs(self) -> Iterator[_Made]:
        for rule, side, case in pairs():
            shared = {"accepted": ACCEPTED, "rejected": EVERY}.get(side, rule)
            yield (rule, shared), lambda case=case: map(Run, self._jobs(case))

    def _defects(self) -> Iterator[_Made]:
        """The two sides of each known defect, from its own row: tests/test_known_defects.py."""
        tables, near = import_module("pairs"), import_module("edges")
        for pair in tables.defect_pairs():
            for words in (pair.found, pair.silent):
                run = near.case(pair.table, near.bases(pair.table), {**pair.row, "run": words})
                yield (pair.rule,), lambda run=run: map(Run, self._jobs(run))

    def _odd(self) -> Iterator[_Made]:
        """Configs in which one setting has an invalid value: tests/hostile verifies that no rule crashes on them."""
        near = import_module("odd")

        def make(name: str) -> Iterator[Run]:
            for case in near.odd(name):
                with contextlib.suppress(InputError):
                    yield from map(Run, self._jobs(case))

        yield from (((EVERY,), partial(make, name)) for name in near.CONFIGS)

    def _edges(self) -> Iterator[_Made]:
        near = import_module("edges")

        def make(edge: Any) -> Iterator[Run]:
            offered = partial(near.offered, edge=edge)
            yield from (
                Run(job, {}, True, edge.fix is not None, True, edge.upstream is not None, offered)
                for job in self._jobs(edge.case)
            )

        yield from (((edge.rule,), partial(make, edge)) for path in near.FILES for edge in near.edges(path))

    def _graph(self) -> Iterator[_Made]:
        """The two sides of each pair of YAML configs."""
        tables, targets = import_module("pairs"), import_module("test_mindformers_constraints").TARGETS
        for pair in tables.pairs():
            if pair.table in targets:
                for side in (pair.found, pair.silent):
                    text = yaml.safe_dump(tables.config(pair.base, side))
                    target = f"mindformers@{pair.row.get('target', targets[pair.table])}"
                    run = Case(name="", text=text, devices=pair.row.get("devices", 8), target=target)
                    yield (pair.rule, EVERY), lambda run=run: map(Run, self._jobs(run))

    def _rules(self) -> Iterator[_Made]:
        def make(case: Case, rule: str, own: Path) -> Iterator[Run]:
            own.mkdir(exist_ok=True)
            yield from (
                Run(job, case.options.get(rule, {}), case.unknown is not None, case.fixed is not None)
                for job in self._jobs(case, own)
            )

        for number, path in enumerate(sorted((TESTS / "rules").rglob("*.yaml"))):
            for index, case in enumerate(cases_of(path)):
                for rule in case.rules or _about(path):
                    yield (rule, EVERY), partial(make, case, rule, self._folder / f"{number}-{index}")


_Made = tuple[tuple[str, ...], Callable[[], Iterable[Run]]]


def _once(make: Callable[[], Iterable[Run]]) -> Callable[[], list[Run]]:
    """A factory that creates its runs only once."""
    made: list[list[Run]] = []

    def runs() -> list[Run]:
        if not made:
            made.append(list(make()))
        return made[0]

    return runs


def pairs() -> Iterator[tuple[str, str, Case]]:
    """The two sides of each pair of commands: rule, side, run."""
    for name, prefix, extra in (
        ("megatron-training", "megatron/", {}),
        ("megatron-core", "megatron/", {}),
        ("mindspeed", "", {"devices": 16}),
    ):
        table = yaml.load(
            (TESTS / "constraints" / f"{name}.yaml").read_text(encoding="utf-8"),
            getattr(yaml, "CSafeLoader", yaml.SafeLoader),
        )
        for case in table["cases"]:
            entry = "pretrain_hybrid.py" if case.get("base") == "hybrid" else "pretrain_gpt.py"
            for side in ("rejected", "accepted") if "rejected" in case else ("speaks", "silent"):
                words = [entry, *shlex.split(table["bases"][case.get("base", "dense")]), *shlex.split(case[side])]
                env = {} if case.get("unset") else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
                env |= case.get("env" if side != "accepted" or name != "megatron-training" else "accepted_env") or {}
                target = case.get("target", "mindspeed-llm" if name == "mindspeed" else "megatron@0.20.0")
                devices = case.get("devices", extra.get("devices", 1))
                device = (
                    case.get("device", "h100")
                    if name == "megatron-training"
                    else None
                    if name == "mindspeed"
                    else "h100"
                )
                run = Case(
                    name="", command=tuple(words), devices=devices, device=device, target=target, environment=env
                )
                yield prefix + case["rule"], side, run


def _about(path: Path) -> tuple[str, ...]:
    """The rules that a fixture file is named after."""
    relative = path.relative_to(TESTS / "rules").with_suffix("")
    for name in (relative.as_posix(), relative.name):
        if (id := name.replace("_", "-")) in RULES:
            return (id,)
    module = "preflight.rules." + ".".join(relative.parts)
    try:
        return tuple(rule.id for rule in collect(import_module(module)))
    except ModuleNotFoundError:
        named = (rule for rule in RULES.values() if isinstance(rule, Rule) and rule.name == relative.name)
        package = module.rpartition(".")[0]
        return tuple(rule.id for rule in named if rule.function.__module__.rpartition(".")[0] == package)
