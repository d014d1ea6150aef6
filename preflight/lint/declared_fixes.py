"""Fixes of declared constraints: the argument or environment variable to change, and its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.job import Job
from preflight.lint.evaluator import evaluate, reader
from preflight.lint.expressions import Expression, Handle
from preflight.loaders.document import Unknown
from preflight.run.arguments import REMOVE as REMOVE
from preflight.source.finding import Edit, Fix, Safety
from preflight.source.record import NamedTuple
from preflight.source.spelling import slips


class Change(NamedTuple):
    """One argument of a repair: the handle and its new value (a value, an expression, or REMOVE)."""

    handle: Handle
    value: object
    optional: bool = False  # a removal of a setting that may not exist, or a value written for an unset setting


class Repair(NamedTuple):
    """A fix in terms of arguments; an empty title is generated from the changes. offered: whether it is one of several
    possible intentions, written only if the user chooses it; may be a condition. when: the condition for the fix.
    """

    changes: tuple[Change, ...]
    safety: Safety = Safety.UNSAFE
    title: str = ""
    offered: bool | Expression = False
    when: Expression | None = None


class Nearest(NamedTuple):
    """The choice that a misspelt text most likely means, as the value of a change."""

    choices: tuple[object, ...]

    def of(self, typed: object) -> str | None:
        words = tuple(choice for choice in self.choices if isinstance(choice, str))
        found = slips(typed, words, 0.7) if isinstance(typed, str) else ()
        return found[0] if len(found) == 1 else None


def near(handle: Handle, choices: tuple[object, ...]) -> Repair:
    """Write the choice that was probably meant; no fix if the value does not resemble any of them."""
    return Repair((Change(handle, Nearest(choices)),))


def put(
    handle: Handle,
    value: object = True,
    *,
    safety: Safety = Safety.UNSAFE,
    title: str = "",
    offered: bool | Expression = False,
    when: Expression | None = None,
) -> Repair:
    """Write a value (True for a switch); an expression is computed from the run."""
    return Repair((Change(handle, value),), safety, title, offered, when)


def drop(*handles: Handle, also: tuple[Handle, ...] = (), safety: Safety = Safety.UNSAFE, title: str = "") -> Repair:
    """Remove a setting, so that the default applies. also: settings removed together with it."""
    changes = (*(Change(handle, REMOVE) for handle in handles), *(Change(handle, REMOVE, True) for handle in also))
    return Repair(changes, safety, title)


def written(repairs: Sequence[Repair], job: Job) -> Iterator[Fix]:
    """The repairs that can be written in a job's document."""
    for repair in repairs:
        made = _written(repair, job)
        if made is not None:
            yield made


def _written(repair: Repair, job: Job) -> Fix | None:
    read = reader(job.arguments)
    if repair.when is not None and evaluate(repair.when, read) is not True:
        return None
    edits: list[Edit] = []
    titles = []
    for handle, wanted, optional in repair.changes:
        given = job.arguments.given(handle.name)
        value = (
            REMOVE
            if wanted is REMOVE
            else wanted.of(given.raw if given else None)
            if isinstance(wanted, Nearest)
            else evaluate(wanted, read)
        )
        if optional and (job.arguments.given(handle.name) is None) is (wanted is REMOVE):
            continue
        if (
            isinstance(value, Unknown)
            or (value is None and isinstance(wanted, Nearest))
            or (wanted is REMOVE and job.arguments.given(handle.name) is None)
        ):
            return None
        made, title = _change(job, handle, value)
        if not made:
            return None
        edits += made
        titles.append(title)
    offered = repair.offered is not False and evaluate(repair.offered, read) is not False
    return Fix(repair.title or ", ".join(titles), tuple(edits), repair.safety, offered=offered)


def _change(job: Job, handle: Handle, value: object) -> tuple[tuple[Edit, ...], str]:
    """The edits that set an argument or an environment variable (REMOVE deletes it), and their title."""
    if handle.view == "environment":
        return job.arguments.export(handle.name, value), f"set {handle.name}={value}"
    flag = job.arguments.spell(handle.name)
    made = job.arguments.put(handle.name, value)
    if made and len(made[0].key) > 1:  # the typed value may be that of another key
        flag = str(made[0].key[-1])
    off = next((edit for edit in made if edit.action == "set" and edit.value is False), None)
    if off is not None:
        return made, f"set {'.'.join(map(str, off.key[-2:]))} false"  # one key has the same last word as another
    gone = value is REMOVE or value is False
    return made, f"remove {flag}" if gone else f"set {flag}" if value is True else f"set {flag} {value}"
