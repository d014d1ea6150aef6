"""Every registered rule, in a table kept between runs, and the rules that a run needs."""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module

import preflight
from preflight import schemas
from preflight.job import Job
from preflight.lint.evaluator import Condition, compiled, joined
from preflight.lint.expressions import Expression, Handle
from preflight.lint.rule import Checkable, RulePack, Said, collect, takes_part
from preflight.lint.upstream_evidence import holds
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.source import cache_folder
from preflight.source.finding import Kind, Severity, Unverified
from preflight.source.typing_without_import import Any

HERE = os.path.dirname(str(preflight.__file__))
Silent = Callable[[Job], bool]
LIST = "list"


class Gate:
    """A constraint's condition from the table, a text that is compiled on demand. whole: it is the complete condition,
    not only a necessary part."""

    __slots__ = ("_compiled", "_kept", "whole")

    def __init__(self, kept: str, whole: bool) -> None:
        self._kept, self.whole = kept, whole
        self._compiled: Condition | None = None

    def broken(self, job: Job) -> Any:
        """Whether a run violates it; Unknown if that is undetermined."""
        if self._compiled is None:
            self._compiled = condition(json.loads(self._kept))
        return self._compiled(job.answers)

    def silent(self, job: Job) -> bool:
        """Whether it reports nothing about a run."""
        broken = self.broken(job)
        return not isinstance(broken, Unknown) and not broken


class KeptRule:
    """A rule from the table; anything missing there comes from the real rule, which is imported for it."""

    __slots__ = (
        "_gate",
        "_module",
        "_real",
        "_versions",
        "after",
        "beside",
        "frameworks",
        "id",
        "kind",
        "noticed",
        "severity",
        "silent",
        "triggers",
    )

    def __init__(self, module: str, row: Sequence[Any], conditions: Sequence[str]) -> None:
        id, severity, kind, frameworks, after, beside, noticed, triggers, gate = row
        self.noticed: bool = noticed
        self.triggers: frozenset[str] | None = None if triggers is None else frozenset(triggers)
        self.id: str = id
        self.severity, self.kind = Severity(severity), Kind(kind)
        self.frameworks: tuple[str, ...] = tuple(frameworks)
        self.after: tuple[str, ...] = tuple(after)
        self.beside: tuple[str, ...] = tuple(beside)
        self._module = module
        self._real: Checkable | None = None
        self._versions: tuple[str, str] | None = None if gate is None else (gate[0], gate[1])
        self._gate = None if gate is None else Gate(conditions[gate[2]], gate[3])
        self.silent: Silent = _never if self._gate is None else self._gate.silent

    @property
    def real(self) -> Checkable:
        """The rule itself."""
        if self._real is None:
            self._real = next(rule for rule in collect(import_module(self._module)) if rule.id == self.id)
        return self._real

    @property
    def summary(self) -> str:
        return self.real.summary

    @property
    def page(self) -> str:
        return self.real.page

    @property
    def options(self) -> Mapping[str, Any]:
        return self.real.options

    @property
    def owned(self) -> tuple[str, ...]:
        return self.real.owned

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it applies to these versions of frameworks."""
        if self._versions is None:
            return takes_part(self.id, self.kind, self.frameworks, versions)
        wanted, unless = self._versions
        own = self.frameworks[0]
        return own in versions and unless not in versions and holds(self.id, own, versions, wanted)

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Said]:
        if self._gate is not None:
            broken = self._gate.broken(job)
            if broken is UNKNOWN or (not isinstance(broken, Unknown) and not broken):
                return
            if isinstance(broken, Unknown) and self._gate.whole:
                yield Unverified(broken.because)
                return
        yield from self.real.check(job, options)


def _never(job: Job) -> bool:
    return False


def stamp() -> str:
    """Changes whenever the code of preflight or of its rules does, or a table that contains rules."""
    tables = [os.stat(path) for path in schemas.paths("defects.json")]
    code = cache_folder.stamp((HERE, os.path.dirname(str(import_module("preflight.rules").__file__))))
    return "\n".join([code, *(f"{status.st_size} {status.st_mtime_ns}" for status in tables)])


def load(package: str) -> tuple[Checkable, ...]:
    """The rules of a package's modules, from the table if it is still valid."""
    parent = import_module(package)
    folder = os.path.dirname(str(parent.__file__))
    good = f"{preflight.__version__}\n{stamp()}"
    name = f"{package}-{crc32(folder.encode()):08x}.json"
    kept = cache_folder.read(name)
    if kept is not None and kept.startswith(json.dumps(good)):
        try:
            _, rows_of, *conditions = kept.split("\n")
            table = json.loads(rows_of)
            if {module for module, _ in table} == set(_modules(package, folder)):
                return tuple(KeptRule(module, row, conditions) for module, rows in table for row in rows)
        except (ValueError, TypeError, LookupError):
            pass
    return _make(package, folder, name, good)


def _modules(package: str, folder: str) -> list[str]:
    """The modules of a package: a table names exactly these."""
    files = sorted(file[:-3] for file in os.listdir(folder) if file.endswith(".py"))
    return [f"{package}.{file}" for file in files if file != "__init__"]


def _make(package: str, folder: str, name: str, good: str) -> tuple[Checkable, ...]:
    modules = _modules(package, folder)
    rules = {module: tuple(collect(import_module(module))) for module in modules}
    conditions: list[str] = []
    table = [(module, [_row(rule, conditions) for rule in rules[module]]) for module in modules]
    cache_folder.write(name, "\n".join([json.dumps(good), _plainly(table), *conditions]))
    return tuple(rule for module in modules for rule in rules[module])


def _plainly(value: object) -> str:
    """JSON in one line."""
    return json.dumps(value, separators=(",", ":"))


def _row(rule: Checkable, conditions: list[str]) -> tuple[Any, ...]:
    """The table's entry for a rule, without its condition, which is stored separately because a run needs few of
    them."""
    triggers = None if rule.triggers is None else sorted(rule.triggers)
    ids = (rule.frameworks, rule.after, rule.beside)
    return (rule.id, rule.severity.value, rule.kind.value, *ids, rule.noticed, triggers, _gate(rule, conditions))


def _gate(rule: Checkable, conditions: list[str]) -> tuple[str, str, int, bool] | None:
    """The versions of a declared check, and the number of its condition; None for other rules, which must be run."""
    from preflight.lint.constraint import Constraint

    if not isinstance(rule, Constraint):
        return None
    needed, whole = necessary(rule.refuse)
    conditions.append(_plainly(needed))
    return rule.versions, rule.unless_framework, len(conditions) - 1, whole


def necessary(node: object) -> tuple[object, bool]:
    """An expression as lists, and True; if JSON lacks one of its constants, the necessary parts that can be stored, and
    False."""
    try:
        return plain(node), True
    except TypeError:
        parts = node.parts if isinstance(node, Expression) and node.op == "and" else ()
        return ["and", *(kept for kept, _ in map(necessary, parts))], False


def plain(node: object) -> object:
    """An expression as lists: [operator, parts…], a handle as {name: view}, a list as if `list` were an operator.
    Raises TypeError for values that JSON would change."""
    if isinstance(node, Handle):
        return {node.name: node.view}
    if isinstance(node, Expression):
        return [node.op, *(plain(part) for part in node.parts)]
    if isinstance(node, list):
        return [LIST, *map(plain, node)]
    if node is None or type(node) in (bool, int, str) or (type(node) is float and node == node):
        return node
    raise TypeError(f"{node!r} cannot be kept")


def condition(kept: object) -> Condition:
    """The values of a run that an expression in the table uses."""
    if isinstance(kept, list) and kept[0] in ("and", "or"):
        return joined(kept[0], [partial(condition, part) for part in kept[1:]])
    return compiled(tree(kept))


def tree(kept: object) -> object:
    """The expression again."""
    if isinstance(kept, dict):
        ((name, view),) = kept.items()
        return Handle(name, view)
    if isinstance(kept, list) and kept[0] == LIST:
        return [tree(part) for part in kept[1:]]
    return Expression(kept[0], *(tree(part) for part in kept[1:])) if isinstance(kept, list) else kept


MOST = 256  # number of runs for which rules are cached


class RuleTableError(Exception):
    """Two rules have the same id, or there is no rule at all."""


class Selection:
    """The rules for runs with the same versions of the same frameworks."""

    def __init__(self, rules: Sequence[Checkable], versions: Mapping[str, str]) -> None:
        self._rules = [rule for rule in rules if rule.concerns(versions)]
        self._noticed = {number for number, rule in enumerate(self._rules) if rule.noticed}
        self._always: list[int] = []
        self._kept: dict[frozenset[str], list[int]] = {}
        self._triggered: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            if rule.triggers is None:
                self._always.append(number)
            for name in rule.triggers or ():
                self._triggered.setdefault(name, []).append(number)

    def of(self, job: Job) -> list[Checkable]:
        """The rules that a run may violate, in the given order."""
        wanted = self._kept.get(job.touched)
        if wanted is None:
            found = set(self._always)
            for name in job.touched & self._triggered.keys():
                found.update(self._triggered[name])
            wanted = sorted(found)
            if len(self._kept) < MOST:
                self._kept[job.touched] = wanted
        noticed, rules = self._noticed, self._rules
        return [rules[number] for number in wanted if number not in noticed or rules[number].id in job.noticed_kinds]


def may_break(job: Job, rule: Checkable) -> bool:
    """Whether a rule may report anything about a run, as if only this rule were selected."""
    return bool(Selection((rule,), job.versions).of(job))


class RuleTable:
    """Rules by pack: a pack loads with the first run that involves one of its frameworks."""

    def __init__(self, registered: Iterable[Checkable | RulePack]) -> None:
        self._packs = [item if isinstance(item, RulePack) else _pack(item) for item in registered]
        self._rules: dict[tuple[str, ...], tuple[Checkable, ...]] = {}
        self._selections: dict[tuple[tuple[str, str], ...], Selection] = {}

    def rules(self, frameworks: Iterable[str] | None = None) -> tuple[Checkable, ...]:
        """Rules for runs with these frameworks, loaded as cheaply as possible; None: every rule, loaded completely.
        They are sorted by id. Raises RuleTableError."""
        key = ("*",) if frameworks is None else tuple(sorted(frameworks))
        if key not in self._rules:
            wanted = [
                p
                for p in self._packs
                if frameworks is None or not p.frameworks or not set(p.frameworks).isdisjoint(key)
            ]
            loads = [pack.load if frameworks is None else pack.deferred or pack.load for pack in wanted]
            self._rules[key] = _sorted([rule for load in loads for rule in load()])
        return self._rules[key]

    def selection(self, versions: Mapping[str, str]) -> Selection:
        """The rules for runs with these versions of frameworks. Raises RuleTableError."""
        key = tuple(versions.items())
        if key not in self._selections:
            self._selections[key] = Selection(self.rules(versions), versions)
        return self._selections[key]


def _pack(rule: Checkable) -> RulePack:
    return RulePack((), lambda: (rule,))


def _sorted(rules: Sequence[Checkable]) -> tuple[Checkable, ...]:
    seen: dict[str, Checkable] = {}
    for rule in rules:
        if rule.id in seen:
            raise RuleTableError(f"two rules are called {rule.id!r}")
        seen[rule.id] = rule
    if not rules:
        raise RuleTableError(
            "no rules are loaded; is preflight installed (its rules are registered by an entry point)?"
        )
    return tuple(seen[id] for id in sorted(seen))
