"""The faults of a run in view of the source of its program in the checkout: what that source declares is not a fault,
and a release outside of the described ones may accept what all of these refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.dialects.megatron.parse_faults import BAD_CHOICE, STRAY_WORD
from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.frontends.hydra_faults import REFUSED
from preflight.loaders.document import Problem
from preflight.program.checkout.front_end_discovery import FrontEndPackage
from preflight.run.request import Target
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message, continued, values_of


def settled(front_end: FrontEnd, faults: Sequence[Problem], package: FrontEndPackage) -> Iterator[Problem]:
    """The faults that remain: those that the source contradicts are dropped, and those that only tables of other
    releases state are warnings."""
    same = numbers(package.version) == numbers(front_end.release)
    beyond = is_beyond(front_end, package.version)
    for fault in faults:
        if fault.kind == STRAY_WORD:
            kept = not _takes_value(fault, package)
        elif fault.kind == BAD_CHOICE:
            kept = same or not _takes_choice(fault, package)
        elif fault.kind == REFUSED:
            kept = not _adds_field(fault, package, same)
        else:
            key = fault.span.text.partition("=")[0]
            kept = fault.kind != UNREAD or same or "." in key or not package.declares(key)
            if fault.kind == UNREAD and "name" in values_of(fault.message):  # a key that nothing reads
                kept = not package.mentions(key.rpartition(".")[2])
        if kept:
            doubtful = beyond and fault.kind == REFUSED and not fault.everywhere
            yield _of_tables(front_end, fault, package) if doubtful else fault


def _adds_field(fault: Problem, package: FrontEndPackage, same: bool) -> bool:
    """Whether a key may be added to a section although the class of a table lacks the field: the source declares it, or
    builds no class of the section."""
    said = values_of(fault.message)
    if "section" not in said or "name" not in said:
        return False
    built = same or package.instantiates(str(said["section"]).rpartition(".")[2])
    return not built or package.declares(str(said["name"]))


def is_beyond(front_end: FrontEnd, version: str) -> bool:
    """Whether a release is older or newer than all described ones, or unknown."""
    described = sorted(map(numbers, (*contracts(front_end.name), front_end.release)))
    here = numbers(version)
    return not here or here < described[0] or here > described[-1]


def _takes_choice(fault: Problem, package: FrontEndPackage) -> bool:
    """Whether the source has a choice that a table lacks; the options that its parser adds are already in the table."""
    said = values_of(fault.message)
    own = {one.option for one in package.options}
    return str(said.get("option")) not in own and package.mentions(str(said.get("value", "")))


def _takes_value(fault: Problem, package: FrontEndPackage) -> bool:
    """Whether a word follows a switch that the source declares by this name: in the table it only turns another option
    off, and accepts no value."""
    before = str(values_of(fault.message).get("before", ""))
    return before.startswith("--no") and package.declares(before)


def _of_tables(front_end: FrontEnd, fault: Problem, package: FrontEndPackage) -> Problem:
    """A refusal of a described release as a warning: the release in the checkout may lack it."""
    contained = f"{front_end.name} {package.version}" if package.version else f"another {front_end.name}"
    because = Message(
        "{target} checks this, but this checkout contains {lying} ({evidence})",
        target=str(Target(front_end.name, front_end.release)),
        lying=f"the fork {package.fork}" if package.fork else contained,
        evidence=package.evidence,
    )
    return fault._replace(harmless=True, message=continued(fault.message, because))
