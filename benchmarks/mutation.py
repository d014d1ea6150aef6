"""Whether the fixtures would notice a wrong rule: `python benchmarks/mutation.py [--show K] [--only WORD]`.

Each declared check is changed in memory, one place at a time: a comparison turned round, a part of a condition dropped, a
number or a choice changed. Each rule that is a function is changed in its syntax tree in the same ways. A mutant is killed
when it says something else than the rule on a run of the rule's own fixtures: tests/constraints/*.yaml, tests/rules/**; or
when it speaks on an accepted run of Megatron's tables, which no error may touch.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import yaml

import preflight
from preflight.constraints.expressions import Expression, Handle
from preflight.constraints.shapes import Constraint
from preflight.engine import Policy
from preflight.finding import Finding, Severity, Unverified
from preflight.job import Job
from preflight.plugins import load
from preflight.rule import Checkable, Rule, collect
from preflight.testing import Case
from preflight.testing import load as cases_of

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PLUGINS = load()
ACCEPTED = "accepted"
RULES: dict[str, Checkable] = {rule.id: rule for rule in PLUGINS.rules(None)}
TURNED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "is none": "is set"}
SIGNS = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In}
Runs = Mapping[str, list[tuple[Job, Mapping[str, Any]]]]


class Mutant(NamedTuple):
    """One change: what kind, what it says now, the rule with it."""

    kind: str
    text: str
    rule: Checkable


def shown(node: object) -> str:
    """An expression as people read it."""
    if isinstance(node, Handle):
        return node.name if node.view == "effective" else f"{node.name}.{node.view}"
    if not isinstance(node, Expression):
        return repr(node)
    parts = [shown(part) for part in node.parts]
    return f"{node.op}({', '.join(parts)})" if len(parts) != 2 else f"({parts[0]} {node.op} {parts[1]})"


def changed(node: object, *, listed: bool = False) -> Iterator[tuple[str, object]]:
    """Every expression that differs from one in one place."""
    if isinstance(node, bool) or node is None or isinstance(node, Handle):
        return
    if isinstance(node, (int, float)):
        yield "number", node + 1
        return
    if not isinstance(node, Expression):
        return
    if node.op == "is none":
        yield "comparison", ~node
    elif node.op in TURNED:
        yield "comparison", Expression(TURNED[node.op], *node.parts)
    elif node.op in ("in", "startswith", "has"):
        yield "comparison", ~node
    elif node.op == "not":
        yield "comparison", node.parts[0]
    if node.op in ("and", "or"):
        for at in range(len(node.parts)):
            rest = node.parts[:at] + node.parts[at + 1 :]
            yield "part", rest[0] if len(rest) == 1 else Expression(node.op, *rest)
    if node.op == "in" and len(node.parts) > 2:
        for at in range(1, len(node.parts)):
            yield "choice", Expression("in", *node.parts[:at], *node.parts[at + 1 :])
    for at, part in enumerate(node.parts):
        if node.op == "in" and at:
            continue
        for kind, new in changed(part):
            yield kind, Expression(node.op, *node.parts[:at], new, *node.parts[at + 1 :])


def of_declared(rule: Constraint) -> Iterator[Mutant]:
    """Mutants of a declared check; the arguments that bring it up stay those of the original."""
    for kind, new in changed(rule.refuse):
        if isinstance(new, Expression):
            yield Mutant(kind, shown(new), replace(rule, refuse=new))


class _Turn(ast.NodeTransformer):
    """Changes the place with one number; the same walk counts the places."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.at, self.kind, self.line = wanted, -1, "", 0

    def _here(self, kind: str, node: ast.AST) -> bool:
        self.at += 1
        if self.at == self.wanted:
            self.kind, self.line = kind, getattr(node, "lineno", 0)
        return self.at == self.wanted

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in SIGNS and self._here("comparison", node):
            node.ops = [SIGNS[type(node.ops[0])]()]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        for at in range(len(node.values)):
            if self._here("part", node):
                rest = node.values[:at] + node.values[at + 1 :]
                return rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) in (int, float) and self._here("number", node):
            return ast.copy_location(ast.Constant(node.value + 1), node)  # type: ignore[operator]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return node


def of_function(rules: list[Rule]) -> Iterator[list[Mutant]]:
    """Mutants of the functions of one module: each is all rules of the module anew."""
    module = sys.modules[rules[0].function.__module__]
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    for wanted in range(10_000):
        turn = _Turn(wanted)
        tree = ast.fix_missing_locations(turn.visit(ast.parse(source)))
        if not turn.kind:
            return
        anew = ModuleType(module.__name__)
        anew.__dict__.update(__file__=module.__file__, __package__=module.__package__)
        ids = {rule.id for rule in rules}
        try:
            sys.modules[module.__name__] = anew
            exec(compile(tree, str(module.__file__), "exec"), anew.__dict__)
            text = f"line {turn.line}: {source.splitlines()[turn.line - 1].strip()}"
            yield [Mutant(turn.kind, text, rule) for rule in collect(anew) if isinstance(rule, Rule) and rule.id in ids]
        except Exception:  # a module that does not even load is killed by everything
            yield []
        finally:
            sys.modules[module.__name__] = module


def _said(rule: Checkable, job: Job, options: Mapping[str, Any]) -> object:
    """What a rule says, with its fix; an exception is an answer, too."""
    try:
        if not rule.applies(job):
            return ()
        found = list(rule.check(job, options))
    except Exception as error:
        return type(error).__name__
    return [(f.message, f.span, f.severity, f.upstream, f.fix) if isinstance(f, Finding) else (f.because if isinstance(f, Unverified) else "") for f in found]


def _spoke(rule: Checkable, job: Job, options: Mapping[str, Any]) -> object:
    """Whether a declared check speaks: that is what its pair asserts."""
    return rule.applies(job) and any(isinstance(said, Finding) for said in rule.check(job, options))


def _killed(mutant: Mutant, runs: Runs, say: Any) -> bool:
    rule = RULES[mutant.rule.id]
    if any(say(mutant.rule, job, options) != say(rule, job, options) for job, options in runs[rule.id]):
        return True
    return isinstance(rule, Constraint) and rule.severity is Severity.ERROR and any(_spoke(mutant.rule, job, {}) for job, _ in runs[ACCEPTED])


def fixtures() -> Runs:
    """The runs of every rule's own fixtures."""
    found: dict[str, list[tuple[Job, Mapping[str, Any]]]] = defaultdict(list)
    folder = Path(tempfile.mkdtemp(prefix="preflight-mutation."))
    nothing = Policy(chosen=lambda id, path: False)
    for rule, report in _declared(folder, nothing):
        found[rule.removeprefix("!")] += [(job, {}) for job in report.jobs]
        if rule.startswith("!"):
            found[ACCEPTED] += [(job, {}) for job in report.jobs]
    for number, path in enumerate(sorted((TESTS / "rules").rglob("*.yaml"))):
        for index, case in enumerate(cases_of(path)):
            own = folder / f"{number}-{index}"
            own.mkdir()
            for rule in case.rules or _about(path):
                found[rule] += [(job, case.options.get(rule, {})) for job in case.check(own, PLUGINS, nothing).jobs]
    return found


def _declared(folder: Path, policy: Policy) -> Iterator[tuple[str, preflight.Report]]:
    for name, prefix, extra in (("megatron-training", "megatron/", {}), ("megatron-core", "megatron/", {}), ("mindspeed", "", {"devices": 16})):
        table = yaml.safe_load((TESTS / "constraints" / f"{name}.yaml").read_text(encoding="utf-8"))
        for case in table["cases"]:
            entry = "pretrain_hybrid.py" if case.get("base") == "hybrid" else "pretrain_gpt.py"
            for side in ("rejected", "accepted") if "rejected" in case else ("speaks", "silent"):
                words = [entry, *shlex.split(table["bases"][case.get("base", "dense")]), *shlex.split(case[side])]
                env = {} if case.get("unset") else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
                env |= case.get("env" if side != "accepted" or name != "megatron-training" else "accepted_env") or {}
                target = case.get("target", "mindspeed-llm" if name == "mindspeed" else "megatron@0.20.0")
                devices = case.get("devices", extra.get("devices", 1))
                device = case.get("device", "h100") if name == "megatron-training" else None if name == "mindspeed" else "h100"
                run = Case(name="", command=tuple(words), devices=devices, device=device, target=target, environment=env)
                mark = "!" if side == "accepted" else ""
                yield mark + prefix + case["rule"], run.check(folder, PLUGINS, policy)
    sys.path.insert(0, str(TESTS / "dialects"))
    pairs = import_module("test_mindformers_constraints")
    for case in pairs.DATA["cases"]:
        for side in ("rejected", "accepted"):
            text = pairs.built(case.get("base", "llama"), case[side])
            run = Case(name="", text=text, devices=case.get("devices", 8), target=f"mindformers@{case.get('target', '1.5.0')}")
            yield f"mindformers/{case['rule']}", run.check(folder, PLUGINS, policy)


def _about(path: Path) -> tuple[str, ...]:
    """The rules that a fixture file is named after."""
    relative = path.relative_to(TESTS / "rules").with_suffix("")
    for name in (relative.as_posix(), relative.name):
        if (id := name.replace("_", "-")) in RULES:
            return (id,)
    try:
        return tuple(rule.id for rule in collect(import_module("preflight.rules." + ".".join(relative.parts))))
    except ModuleNotFoundError:
        return ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, help="list so many survivors (-1: all)")
    parser.add_argument("--only", default="", help="rules whose id contains this")
    asked = parser.parse_args()
    runs = fixtures()
    made: Counter[tuple[str, str]] = Counter()
    killed: Counter[tuple[str, str]] = Counter()
    survivors = []
    functions: dict[str, list[Rule]] = defaultdict(list)
    for rule in RULES.values():
        if asked.only in rule.id and isinstance(rule, Rule):
            functions[rule.function.__module__].append(rule)
        if asked.only in rule.id and isinstance(rule, Constraint):
            for mutant in of_declared(rule):
                made["declared", mutant.kind] += 1
                if _killed(mutant, runs, _spoke):
                    killed["declared", mutant.kind] += 1
                else:
                    survivors.append(f"{rule.id}: {mutant.kind}: {mutant.text}")
    for rules in functions.values():
        for mutants in of_function(rules):
            kind = mutants[0].kind if mutants else "comparison"
            made["functions", kind] += 1
            if not mutants or any(_killed(mutant, runs, _said) for mutant in mutants):
                killed["functions", kind] += 1
            else:
                survivors.append(f"{mutants[0].rule.id}: {kind}: {mutants[0].text}")
    print(f"{'rules':10} {'change':11} {'mutants':>8} {'killed':>7} {'share':>7}")
    for key in sorted(made):
        print(f"{key[0]:10} {key[1]:11} {made[key]:8} {killed[key]:7} {killed[key] / made[key]:7.1%}")
    if made:
        print(f"{'all':22} {made.total():8} {killed.total():7} {killed.total() / made.total():7.1%}")
    for line in survivors if asked.show < 0 else survivors[: asked.show]:
        print(f"survives: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
