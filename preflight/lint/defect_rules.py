"""Known defects of published releases: rows of schemas/FRAMEWORK/defects.json, each of which is a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from preflight import schemas
from preflight.job import Job
from preflight.lint.constraint import Constraint, ConstraintSet, drop, put
from preflight.lint.declared_fixes import Repair
from preflight.lint.expressions import Expression, Handle, Handles, all_of, any_of
from preflight.run.version_ranges import NEWEST, numbers
from preflight.source.finding import Finding, Severity, Unverified
from preflight.source.typing_without_import import Any

PREFIX = "known-defect-"
NOTED = ("slow", "memory", "seldom")
"""Effects that do not change the training, or that affect few runs: they are notes."""
CONSEQUENCE = {
    "silent": "training continues without an error, but its result is wrong",
    "loses data": "a checkpoint or the training data is incomplete",
    "dies": "the run ends with an error",
    "hangs": "ranks wait for each other forever",
    "slow": "the run is slower than it should be",
    "memory": "the run takes more memory than it should",
    "seldom": "most runs are not affected, but the others fail or train incorrectly",
}
"""The consequence of an effect for the run."""
Row = Mapping[str, Any]


def table(framework: str) -> Row:
    """The known defects of a framework: `releases`, oldest first, and `defects` by id."""
    found: Row = schemas.read(f"{framework}/defects")
    return found


def stands(source: Row, text_of: Callable[[str], str | None]) -> bool | None:
    """Whether a tree contains the code of a defect: the faulty pattern matches, and that of the fix does not. source:
    `files`, `faulty` and, if the fix keeps the faulty pattern, `fixed`. text_of: the text of a file by its path, None
    if it does not exist. None if none of the files exists.
    """
    texts = [text for path in source["files"] if (text := text_of(path)) is not None]
    if not texts:
        return None
    if "fixed" in source and any(re.search(source["fixed"], text) for text in texts):
        return False
    return any(re.search(source["faulty"], text) for text in texts)


def affected(framework: str, row: Row, version: str) -> bool:
    """Whether a release has a defect. An unlisted release counts as the one before it; one after the newest counts as
    not affected."""
    order: Sequence[str] = table(framework)["releases"]
    number = _number(order, version)
    return number is not None and any(order.index(first) <= number <= order.index(last) for first, last in row["in"])


def _number(order: Sequence[str], version: str) -> int | None:
    if version in order:
        return order.index(version)
    if not (wanted := numbers(version)):
        return None
    below = [number for number, release in enumerate(order) if (numbers(release) or NEWEST) <= wanted]
    return below[-1] if below and below[-1] < len(order) - 1 else None


def fixed_in(framework: str, row: Row) -> list[str]:
    """The first releases without a defect of the preceding ones, oldest first."""
    order = table(framework)["releases"]
    ends = (order.index(last) + 1 for _, last in row["in"])
    return [order[end] for end in ends if end < len(order)]


class Defect(Constraint):
    """A declared check with computed releases, which the program's own source overrules."""

    @property
    def row(self) -> Row:
        """Its entry in the table."""
        found: Row = table(self.framework)["defects"][self.id.partition(PREFIX)[2]]
        return found

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Finding | Unverified]:
        if not self._apart(job) and self._present(job):
            yield from super().check(job, options)

    def _present(self, job: Job) -> bool:
        """Whether the code of the run has the defect: its source decides if available, otherwise its release."""
        found = stands(self.row["source"], job.text_of) if job.text_of is not None else None
        return self._released(job) if found is None else found

    def _apart(self, job: Job) -> bool:
        """Whether the run's front end does not execute the code in question."""
        apart = job.arguments.certainty.apart
        return bool(apart) and all(path.startswith(apart) for path in self.row["source"]["files"])

    def _released(self, job: Job) -> bool:
        """Whether every release that the run may be of has it."""
        certainty = job.arguments.certainty
        if certainty.stated:
            return affected(self.framework, self.row, _stated(job, self.framework))
        stacks = (certainty.stack(release) for release in certainty.releases)
        versions = [stack[self.framework] for stack in stacks if self.framework in stack]
        return bool(versions) and all(affected(self.framework, self.row, version) for version in versions)

    def _drops(self, job: Job) -> Iterator[Repair]:
        yield from ()  # only the row states which fixes do not change the training


def _stated(job: Job, framework: str) -> str:
    """The release of a framework that a run states: for its target the one stated by the caller, including the patch
    level, unless that excludes the release it is read as."""
    read_as, said = job.versions[framework], job.stated
    if said is None or said.framework != framework or not said.version:
        return read_as
    whole = job.asked is not None or len(numbers(said.version)) >= len(numbers(read_as))
    return said.version if whole else read_as


def defects(framework: str, arguments: Handles) -> ConstraintSet:
    """The rules for a framework's known defects. Raises AttributeError for an unknown argument."""
    found = ConstraintSet(framework)
    rows = table(framework)["defects"].items()
    found.add(*(_defect(framework, id, row, arguments) for id, row in rows if row["in"]))
    return found


def _defect(framework: str, id: str, row: Row, arguments: Handles) -> Defect:
    first, *more = row["upstream"]
    severity = Severity.NOTE if row["effect"] in NOTED else Severity.ERROR if row.get("sure") else Severity.WARNING
    return Defect(
        f"{PREFIX}{id}",
        condition(row["when"], arguments),
        message=_message(framework, row),
        why=row.get("why") or CONSEQUENCE[row["effect"]],
        upstream=first,
        also=tuple(more),
        shows={name: term(text, arguments) for name, text in row.get("shows", {}).items()},
        severity=severity,
        versions=_hull(framework, row),
        at=tuple(arguments[name] for name in row.get("at", ())),
        fixes=tuple(_fix(change, arguments) for change in row.get("fixes", ())),
        unless_framework="" if row.get(above := table(framework).get("above", "")) else above,
    )


def _message(framework: str, row: Row) -> str:
    fixed = fixed_in(framework, row)
    called: Mapping[str, str] = table(framework).get("called", {})
    fixed = [called.get(one, one) for one in fixed] + [f"branch {one}" for one in row.get("mended", ())]
    releases = " and ".join(", ".join(fixed).rsplit(", ", 1))
    end = f"fixed in {releases}" if fixed else "no release has the fix"
    instead = row.get("instead", "")
    return f"{row['message']} ({end})" + (f"; {instead}" if instead else "")


def _hull(framework: str, row: Row) -> str:
    """A range of versions, by their first two numbers, that contains every affected release. A front end counts as its
    described release, whichever is requested."""
    if table(framework).get("front end"):
        return ""
    order = [numbers(release)[:2] or NEWEST for release in table(framework)["releases"]]
    names = list(table(framework)["releases"])
    low, high = order[names.index(row["in"][0][0])], order[names.index(row["in"][-1][1])]
    above = [one for one in order if one > high and one != NEWEST]
    ends = [f">={_dotted(low)}"] if low != NEWEST else []
    return ",".join([*ends, f"<{_dotted(above[0])}"] if above else ends)


def _dotted(parts: Sequence[int]) -> str:
    return ".".join(map(str, parts))


def _fix(change: Row, arguments: Handles) -> Repair:
    """A fix of a row: {"drop": names} or {"put": name, "value": a constant or {"of": term}}."""
    if "drop" in change:
        first, *also = (arguments[name] for name in change["drop"])
        return drop(first, also=tuple(also))
    value = change.get("value", True)
    return put(arguments[change["put"]], term(value["of"], arguments) if isinstance(value, dict) else value)


_TESTS = {"==", "!=", "<", "<=", ">", ">="}
_ARITHMETIC = {"+", "-", "*", "/", "//", "%"}
_OPERATORS = {"in": "in", "has": "has", "starts with": "startswith"}


def condition(node: Any, arguments: Handles) -> Expression:
    """A trigger as an expression. A mapping holds if each of its entries does: a term with its test, or "any" with a
    list of triggers of which one holds, or "not" with one that does not ("any …" and "not …" if there are several). A
    term is an argument, or arguments and numbers joined by + - * / // % from left to right; `$NAME` is an environment
    variable, `len:NAME` how many entries an argument has, `zeros:NAME` with how many zeros it begins, `least:NAME` its
    least number. A test is true, false, "set", "unset", "given", "not given", [comparison, value], ["in", values…],
    ["has", item], ["starts with", text], ["not", test…], or a list of such lists, all of which hold. A value is a
    constant, or {"of": term}.
    """
    parts = [_entry(key, test, arguments) for key, test in node.items()]
    return parts[0] if len(parts) == 1 else all_of(*parts)


def _entry(key: str, test: Any, arguments: Handles) -> Expression:
    if key.startswith("any"):
        return any_of(*(condition(one, arguments) for one in test))
    if key.startswith("not"):
        return ~condition(test, arguments)
    left = term(key, arguments)
    if isinstance(test, list) and isinstance(test[0], list):
        return all_of(*(_tested(left, one, arguments) for one in test))
    return _tested(left, test, arguments)


def _tested(left: Expression, test: Any, arguments: Handles) -> Expression:
    if isinstance(test, bool):
        return left if test else ~left
    if isinstance(test, str):
        given = left.given if isinstance(left, Handle) else left
        return {"set": left.is_set, "unset": left.is_none, "given": given, "not given": ~given}[test]
    sign, *values = test
    if sign == "not":
        return ~_tested(left, values[0] if len(values) == 1 else values, arguments)
    constants = [term(value["of"], arguments) if isinstance(value, dict) else value for value in values]
    if sign in _TESTS:
        return Expression(sign, left, *constants)
    return Expression(_OPERATORS[sign], left, *constants)


def term(text: str, arguments: Handles) -> Expression:
    """Arguments and numbers, joined from left to right."""
    first, *rest = text.split(" ")
    made = _atom(first, arguments)
    for sign, name in zip(rest[::2], rest[1::2], strict=True):
        if sign not in _ARITHMETIC:
            raise ValueError(f"{text!r} has {sign!r}, which is none of {' '.join(sorted(_ARITHMETIC))}")
        made = Expression(sign, made, _atom(name, arguments))
    if not isinstance(made, Expression):
        raise ValueError(f"{text!r} names no argument")
    return made


def _atom(text: str, arguments: Handles) -> Any:
    if text.lstrip("-").isdigit():
        return int(text)
    if text.startswith("$"):
        return arguments.env(text[1:])
    count, _, name = text.rpartition(":")
    if count == "len":
        return arguments[name].length
    if count == "zeros":
        return arguments[name].leading_zeros
    if count == "least":
        return arguments[name].least
    return arguments[text]
