"""The one proof of everything that is offered: edit, read again, check, estimate; on the final text.

What `fix` writes, what `check` and an editor offer, the layouts of a search and what `memory` advises go through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.checking.engine import Report
from preflight.checking.workspace import Workspace
from preflight.fix.apply import Sources, apply
from preflight.fix.prove_better import prove_better
from preflight.loaders.yaml_edit import CannotEdit
from preflight.source.finding import Finding
from preflight.source.record import NamedTuple
from preflight.source.refusal import NotProven
from preflight.source.text import InputError, Source


class Made(NamedTuple):
    """What edits make: the new texts by name, the findings whose fixes are in them, and the report on the final texts,
    with its estimates."""

    edited: Sources
    taken: list[Finding]
    report: Report


def made(
    workspace: Workspace,
    before: Report,
    findings: Sequence[Finding],
    edited: Mapping[str, Source] = {},
    *,
    partial: bool = False,
) -> Made | str:
    """What the fixes of findings make of the texts, which are proven to change in nothing else; or why they cannot be
    made. edited: texts that differ from those of the workspace already; before: the report on them."""
    texts = {source.name: source for source in workspace.sources} | dict(edited)
    try:
        new, taken = apply(findings, before, texts, partial=partial)
        return Made(new, taken, workspace.check({**edited, **new}))
    except (CannotEdit, NotProven, InputError) as error:
        return str(error)


def proven(
    workspace: Workspace,
    before: Report,
    findings: Sequence[Finding],
    edited: Mapping[str, Source] = {},
    *,
    partial: bool = False,
) -> Made | str:
    """The same, where it is better than before: what was found is gone, and no error is new; or why it is not."""
    found = made(workspace, before, findings, edited, partial=partial)
    if isinstance(found, str):
        return found
    try:
        prove_better(before, found.report, found.taken)
    except NotProven as error:
        return str(error)
    return found
