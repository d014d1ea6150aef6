"""Whether the fixtures would notice a wrong rule:
`python benchmarks/mutation.py [--show K] [--only WORD] [--list FILE]`.

Wrong rules are created in memory, with one change each (listed in mutants.py). A mutant is killed if its result differs
from that of the rule on a run of the rule's fixtures: tests/constraints/*.yaml, tests/edges/**, tests/rules/**, the
rows of known defects; if it reports an error on an accepted run of Megatron's tables; or if it crashes on a run that
every rule checks. Only assertions of the tests count: whether a declared check reports a finding, in tests/edges also
whether it is certain; for a function every word, and the fix and the upstream location if the fixture has them. A
mutant of a declared check that no combination of values can distinguish from the original (equivalence.py) is not a
wrong rule and is not counted.

`--list` writes the survivors as a page: `--list benchmarks/mutation.md` creates benchmarks/mutation.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from equivalence import equivalent
from mutants import Mutant, of_declared, of_module
from runs import ACCEPTED, EVERY, RULES, Run, Runs

from preflight.lint.constraint import Constraint
from preflight.lint.rule import Checkable, Rule
from preflight.lint.rule_registry import may_break
from preflight.source.finding import Finding, Severity, Unverified


def said(rule: Checkable, run: Run) -> object:
    """The output of a rule, as far as its fixture checks it; an exception is an output, too."""
    try:
        if not may_break(run.job, rule):
            return []
        found = list(rule.check(run.job, run.options))
    except Exception as error:
        return type(error).__name__
    if run.heard:
        heard = [f for f in found if isinstance(f, Finding)]
        return [
            (f.message, run.offered(f) if run.fixed else "", f.upstream if run.placed else "") for f in heard
        ] or bool(found)
    unknown = {f.because for f in found if isinstance(f, Unverified)} if run.sure else ()
    return [
        (f.message, f.line, f.column, f.severity, f.fix.edits if f.fix and run.fixed else ())
        for f in found
        if isinstance(f, Finding)
    ], unknown


def spoke(rule: Checkable, run: Run) -> object:
    """Whether a rule reports a finding, as far as its test checks it; a crash is none."""
    try:
        found = next(iter(rule.check(run.job, run.options)), None) if may_break(run.job, rule) else None
    except Exception:
        return "crash"
    return "speaks" if isinstance(found, Finding) else "unknown" if run.sure and found is not None else "silent"


def killed(mutant: Checkable, rule: Checkable, runs: Runs) -> bool:
    say = spoke if isinstance(rule, Constraint) else said
    if any(say(mutant, run) != say(rule, run) for run in runs[rule.id]):
        return True
    if rule.severity is Severity.ERROR and any(spoke(mutant, run) == "speaks" for run in runs[ACCEPTED]):
        return True
    return not isinstance(rule, Constraint) and any(isinstance(said(mutant, run), str) for run in runs[EVERY])


class Tally:
    """Mutants by location and kind: created, killed, equivalent; and the survivors by rule."""

    def __init__(self) -> None:
        self.made: Counter[tuple[str, str]] = Counter()
        self.killed: Counter[tuple[str, str]] = Counter()
        self.same: Counter[tuple[str, str]] = Counter()
        self.survivors: dict[str, list[str]] = defaultdict(list)

    def declared(self, changed: list[tuple[Constraint, Mutant]], runs: Runs) -> None:
        """One change, in every rule whose condition has it."""
        (first, mutant), *_ = changed
        dead = any(killed(mutant.rule, rule, runs) for rule, mutant in changed)
        if not dead and all(isinstance(m.rule, Constraint) and equivalent(rule, m.rule) for rule, m in changed):
            self.same["declared", mutant.kind] += 1
        else:
            self._count(("declared", mutant.kind), dead, first.id, mutant.text)

    def module(self, rules: list[Rule], runs: Runs) -> None:
        """The mutants of the functions of one module."""
        for kind, text, anew in of_module(sys.modules[rules[0].function.__module__], {rule.id for rule in rules}):
            dead = not anew or any(killed(rule, RULES[rule.id], runs) for rule in anew)
            self._count(("functions", kind), dead, (anew or rules)[0].id, text)

    def _count(self, key: tuple[str, str], dead: bool, rule: str, text: str) -> None:
        self.made[key] += 1
        self.killed[key] += dead
        if not dead:
            self.survivors[rule].append(f"{key[1]}: {text}")

    def rows(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Where, kind, made, killed, the same; the last row is the sum."""
        for where, kind in sorted({*self.made, *self.same}):
            yield where, kind, self.made[where, kind], self.killed[where, kind], self.same[where, kind]
        yield "all", "", self.made.total(), self.killed.total(), self.same.total()


def measured(only: str) -> Tally:
    """Run every mutant of the rules with a word in their id against the fixtures."""
    runs, tally = Runs(), Tally()
    functions: dict[str, list[Rule]] = defaultdict(list)
    declared: dict[tuple[int, int], list[tuple[Constraint, Mutant]]] = defaultdict(list)
    for rule in RULES.values():
        if only in rule.id and isinstance(rule, Rule):
            functions[rule.function.__module__].append(rule)
        if only in rule.id and isinstance(rule, Constraint):
            for mutant in of_declared(rule):
                declared[mutant.place].append((rule, mutant))
    for changed in declared.values():
        tally.declared(changed, runs)
    for rules in functions.values():
        tally.module(rules, runs)
    return tally


def page(tally: Tally) -> str:
    """The survivors, for reading."""
    lines = [
        "# Mutants that the fixtures do not notice",
        "",
        "Made by `python benchmarks/mutation.py --list benchmarks/mutation.md`.",
        "",
    ]
    lines += ["| rules | change | mutants | killed | share | same as the original |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {where} | {kind} | {made} | {dead} | {dead / max(made, 1):.1%} | {same} |"
        for where, kind, made, dead, same in tally.rows()
    ]
    for rule, texts in sorted(tally.survivors.items()):
        lines += ["", f"## {rule}", "", *(f"* `{text}`" for text in texts)]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, help="list so many survivors (-1: all)")
    parser.add_argument("--only", default="", help="rules whose id contains this")
    parser.add_argument("--list", type=Path, help="write the survivors to this page")
    asked = parser.parse_args()
    tally = measured(asked.only)
    print(f"{'rules':10} {'change':11} {'mutants':>8} {'killed':>7} {'share':>7} {'same':>6}")
    for where, kind, made, dead, same in tally.rows():
        print(f"{where:10} {kind:11} {made:8} {dead:7} {dead / max(made, 1):7.1%} {same:6}")
    texts = [f"{rule}: {text}" for rule, found in sorted(tally.survivors.items()) for text in found]
    for text in texts if asked.show < 0 else texts[: asked.show]:
        print(f"survives: {text}")
    if asked.list:
        asked.list.write_text(page(tally), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
