"""Which fixes of a finding are written, and which are only offered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from preflight.job import Job
from preflight.lint.uncertain_facts import support
from preflight.run.arguments import Arguments
from preflight.run.value import Value
from preflight.source.finding import Change, Edit, Finding, Fix, Key, Safety, Severity
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace
from preflight.source.spelling import meant_boolean, slips


class Policy:
    """The policy for one run."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def _typed(self) -> Mapping[Key, tuple[str, Value]]:
        """Explicitly set values, by key."""
        written = self.job.arguments.written.items()
        return {value.key: (name, value) for name, value in written if value.key}

    def ranked(self, finding: Finding) -> Finding:
        """The finding with its fixes in the order of the policy, each with its effect and whether it is only
        offered."""
        every = tuple(fix for fix in (finding.fix, *finding.alternatives) if fix is not None)
        if not every:
            return finding
        judged = [self._judged(fix, finding) for i, fix in enumerate(every) if fix not in every[:i]]
        if finding.severity is Severity.NOTE:  # nothing is wrong: what was chosen and has an effect stays
            judged = [fix for fix in judged if not _undoes(fix)]
            if not judged:
                return replace(finding, fix=None, alternatives=())
        if self._trains_alike(finding, judged):
            judged = [fix._replace(offered=True) for fix in judged]
        judged.sort(key=lambda fix: self._order(fix, layout=finding.layout))
        if len(judged) > 1 and self._alike(*judged[:2]):
            judged = [fix._replace(offered=True) for fix in judged]
        return replace(finding, fix=judged[0], alternatives=tuple(judged[1:]))

    def step(self, edits: Sequence[Edit], key: Key) -> float | None:
        """The distance by which edits move a single number; None for all other edits."""
        value = self._value(key)
        if len(edits) != 1 or edits[0].key != key or value is None or not _is_number(value.raw):
            return None
        return abs(edits[0].value - value.raw) if _is_number(edits[0].value) else None

    def uneven(self, key: Key) -> bool:
        """Whether the number that was set is not a power of two: probably a typo, which shows little of the intended
        value."""
        value = self._value(key)
        return value is not None and isinstance(value.raw, int) and value.raw & (value.raw - 1) != 0

    def _judged(self, fix: Fix, finding: Finding) -> Fix:
        if not fix.edits:
            return fix
        change = max((self._change(edit) for edit in fix.edits), key=lambda change: change.rank)
        offered = fix.offered or self._invents(fix)
        offered = offered or (finding.severity is not Severity.ERROR and self._moves_degree(fix))
        offered = offered or any(map(self._roughens, fix.edits))
        if fix.layout and change is not Change.REMOVAL:
            ones = [self._value(e.key) for e in fix.edits if e.value == 1 and str(e.key[-1]).find("parallel") >= 0]
            gone = any(value is not None and value.raw != 1 for value in ones)  # a degree of 1 means no parallelism
            change = Change.REMOVAL if gone else Change.NUMBER
        if change is Change.SWITCH and finding.severity is not Severity.ERROR:
            offered = offered or fix.safety is Safety.UNSAFE  # the run is accepted, and the choice was set explicitly
        if change is Change.REMOVAL:
            offered = offered or fix.safety is not Safety.SAFE or finding.severity is Severity.ERROR
        same = change is Change.CORRECTION or fix.safety is Safety.SAFE  # the intended training is unchanged
        judged = fix._replace(change=change, offered=offered)
        return judged if same else self._explained(judged)

    def _trains_alike(self, finding: Finding, fixes: Sequence[Fix]) -> bool:
        """Whether an accepted run could keep its training, or train something else: the intention is unknown."""
        kept = any(fix.safety is Safety.SAFE for fix in fixes)
        other = any(fix.safety is Safety.UNSAFE and fix.change is not Change.REMOVAL for fix in fixes)
        slip = any(fix.change is Change.CORRECTION for fix in fixes)
        return finding.severity is not Severity.ERROR and not slip and kept and other

    def _roughens(self, edit: Edit) -> bool:
        """Whether it replaces a size of the model with a less round number: then another size is probably wrong."""
        value = self._value(edit.key)
        if value is None or not isinstance(edit.value, int) or not isinstance(value.raw, int):
            return False
        if edit.key in self._degrees():
            return False
        return self.job.arguments.keeps(self._name(edit.key)) and edit.value & -edit.value < value.raw & -value.raw

    def _degrees(self) -> set[Key]:
        """The parallel degrees that are set."""
        layout = self.job.plan.layout
        degrees = (layout.data, layout.tensor, layout.pipeline, layout.context, layout.expert, layout.expert_tensor)
        return {degree.key for degree in degrees if degree.key}

    def _moves_degree(self, fix: Fix) -> bool:
        """Whether it changes a degree of parallelism that was typed, or that follows from another one."""
        degrees = self._degrees()
        return any(
            edit.key in degrees or (_is_number(edit.value) and "parallel_size" in self._name(edit.key))
            for edit in fix.edits
        )

    def _order(self, fix: Fix, *, layout: bool) -> tuple[bool, int, int, int]:
        """Removals of options that the rest of the file supports come last, and those of explicitly set options
        first."""
        gone = [self._name(edit.key) for edit in fix.edits if edit.action == "remove" and edit.key]
        same = layout and fix.change is Change.NUMBER  # the search has already ranked them
        typed = [value.span.start for name in gone if (value := self.job.arguments.given(name)) and value.span]
        backed = max((support(name, self.job) for name in gone), default=0)
        return fix.offered and not same, fix.change.rank, backed, -max(typed, default=0)

    def _alike(self, one: Fix, other: Fix) -> bool:
        """Whether two fixes write words that are equally likely to be intended."""
        both = one.change is other.change is Change.CORRECTION
        return (
            both
            and {edit.key for edit in one.edits} == {edit.key for edit in other.edits}
            and self._slip(one)
            and self._slip(other)
        )

    def _slip(self, fix: Fix) -> bool:
        return all(edit.action in ("set", "rename") for edit in fix.edits)

    def _change(self, edit: Edit) -> Change:
        """The effect of an edit on the explicitly set values."""
        if edit.action == "remove":
            return Change.REMOVAL if edit.key or edit.span is None else Change.CORRECTION
        if edit.action in ("rename", "splice"):
            return Change.CORRECTION
        value = self._value(edit.key)
        if value is None:
            return Change.COMPLETION
        return _between(value.raw, value.setting.span.text if value.setting else "", edit.value)

    def _value(self, key: Key) -> Value | None:
        found = self._typed.get(key)
        return found[1] if found is not None else None

    def _name(self, key: Key) -> str:
        """The name of the argument that a setting writes."""
        if (found := self._typed.get(key)) is not None:
            return found[0]
        last = str(key[-1]) if key else ""
        return last.strip("-").replace("-", "_") if last.startswith("--") else ".".join(map(str, key))

    def _invents(self, fix: Fix) -> bool:
        """Whether it sets a size of the training to a number unlike any that was set."""
        return any(
            self.job.arguments.decides(self._name(edit.key)) and not _is_size(self._value(edit.key))
            for edit in fix.edits
            if edit.action == "set" and _is_number(edit.value) and not self._respelled(edit)
        )

    def _respelled(self, edit: Edit) -> bool:
        value = self._value(edit.key)
        return (
            value is not None
            and _between(value.raw, value.setting.span.text if value.setting else "", edit.value) is Change.CORRECTION
        )

    def _explained(self, fix: Fix) -> Fix:
        """The fix, its title with the change to the training that it causes."""
        changes = [
            said
            for edit in fix.edits
            if edit.action in ("set", "remove", "rename") and (said := self.job.arguments.decides(self._name(edit.key)))
        ]
        if not changes or fix.explained or fix.layout:
            return fix
        title = f"{fix.title}, which changes {' and '.join(dict.fromkeys(changes))}"
        return fix._replace(title=title, explained=True)


def ranked(findings: Iterable[Finding], job: Job) -> list[Finding]:
    """Findings of one run with their fixes as the policy allows them."""
    policy = Policy(job)
    return [policy.ranked(finding) for finding in findings]


_BOOLEANS = {"true": True, "false": False}
"""Texts that are booleans without their quotes."""


def _undoes(fix: Fix) -> bool:
    """Whether it only removes or turns off what was chosen, and the training changes by that."""
    off = all(edit.action == "remove" or edit.value is False for edit in fix.edits)
    return off and fix.safety is Safety.UNSAFE and fix.change in (Change.REMOVAL, Change.SWITCH)


def _between(raw: object, text: str, wanted: object) -> Change:
    """The effect of overwriting one value with another."""
    if _is_number(raw) and _is_number(wanted):
        return Change.NUMBER
    bare = text.strip("\"'")
    if isinstance(wanted, str) and wanted in slips(bare, (wanted,)):
        return Change.CORRECTION
    if isinstance(wanted, bool) and wanted in (meant_boolean(bare), _BOOLEANS.get(bare.lower())):
        return Change.CORRECTION
    if isinstance(raw, (list, tuple)):
        return Change.NUMBER if isinstance(wanted, (list, tuple)) else Change.REMOVAL
    return Change.CORRECTION if _spells(bare.lower(), str(wanted).lower()) else Change.SWITCH


def _spells(text: str, wanted: str) -> bool:
    """Whether a text is a value with extra or missing characters: "58" for "58GB", "8.0" for 8."""
    return text != wanted and bool(text) and wanted not in ("none", "") and (text in wanted or wanted in text)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_size(value: Value | None) -> bool:
    return value is not None and _is_number(value.raw) and value.raw > 0


_LACKS = lazy_pattern(r"not ([A-Za-z_]\w*)")
_NOT_EQUAL = lazy_pattern(
    r"(?P<value>'[^']*'|-?\d+) != (?P<name>[A-Za-z_]\w*)|(?P<n>[A-Za-z_]\w*) != (?P<v>'[^']*'|-?\d+)"
)
_NOT_ONE_OF = lazy_pattern(r"([A-Za-z_]\w*) not in ([\[(].*[\])])")


def implied_fix(condition: Iterable[str], arguments: Arguments) -> Fix | None:
    """The fix for a condition under which a program refuses: the required option is switched on, or set to the only
    accepted value. condition: its parts, all of which hold. If several parts could be changed, no fix is certain. If
    sizes are not divisible, a change that disables the check is only offered, because the sizes may be wrong.
    """
    parts = tuple(condition)
    ways = [way for part in parts if (way := _way(part, arguments)) is not None]
    if len(ways) != 1:
        return None
    name, value = ways[0]
    edits = arguments.put(name, value)
    if not edits:
        return None
    shown = arguments.spell(name) if value is True else f"{arguments.spell(name)} {value}"
    title = f"add {shown}" if arguments.given(name) is None else f"set {shown}"
    change = Change.COMPLETION if arguments.given(name) is None else Change.SWITCH
    return Fix(title, tuple(edits), Safety.UNSAFE, change, offered=any("%" in part for part in parts))


def _way(part: str, arguments: Arguments) -> tuple[str, object] | None:
    """An argument and the value that it needs, for one part of a condition."""
    known = set(arguments.names())
    if (lacks := _LACKS.fullmatch(part)) is not None:
        name, value = lacks[1], arguments.get(lacks[1])
        off = value.known and value.raw in (False, None) and arguments.given(name) is None
        return (name, True) if name in known and off and _is_switch(name, arguments) else None
    if (other := _NOT_EQUAL.fullmatch(part)) is not None:
        from ast import literal_eval

        name, text = other["name"] or other["n"], other["value"] or other["v"]
        return (name, literal_eval(text)) if name in known else None
    if (outside := _NOT_ONE_OF.fullmatch(part)) is not None and outside[1] in known:
        from ast import literal_eval

        try:
            values = literal_eval(outside[2])
        except (ValueError, SyntaxError):
            return None
        return (outside[1], values[0]) if len(values) == 1 else None
    return None


def _is_switch(name: str, arguments: Arguments) -> bool:
    """Whether an option alone, without a value, switches on an argument."""
    return all(edit.action == "set" and edit.value in (None, True) for edit in arguments.put(name, True))
