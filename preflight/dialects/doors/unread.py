"""Keys that a door does not know: told as what the door makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.megatron.parse_faults import BAD_CHOICE, STRAY_WORD, UNKNOWN_FLAG
from preflight.loaders.document import Problem
from preflight.source.message import Message, values_of
from preflight.source.spelling import nearest
from preflight.source.text import Span

UNREAD = "unread-key"
CLOSE = 0.85
"""From here on a key is told as a slip of another one."""
_SAID = {
    "dropped": "{door} has no option {key} and drops it without a word{hint}",
    "skipped": "{door} has no key {key} and skips it with a warning{hint}",
    "refused": "{door} has no key {key}: it refuses the run{hint}",
}


def of_door(door: Door, faults: Iterable[Problem], *, stated: bool) -> Iterator[Problem]:
    """The faults of parsing as the door takes them. stated: somebody says the release."""
    for fault in faults:
        key = fault.span.text.partition("=")[0]
        if fault.kind == UNKNOWN_FLAG:
            if not key.startswith(door.elsewhere or ("\0",)) and not _shortened(door, key):
                yield unread(door, key, fault.span, fault.related)
        elif fault.kind == BAD_CHOICE and not stated:
            yield _of_release(door, fault)
        elif fault.kind != STRAY_WORD or door.unread == "refused":
            yield fault


def _of_release(door: Door, fault: Problem) -> Problem:
    """A choice that is refused; of one that another release takes, nobody knows whether that is the one."""
    said = values_of(fault.message)
    if not door.takes_elsewhere(str(said.get("option")), str(said.get("value"))):
        return fault
    message = Message("{message}; other releases take it", message=fault.message)
    return fault._replace(message=message, in_use=True, fix=None)


def _shortened(door: Door, key: str) -> bool:
    """Whether argparse takes a key for the only one that begins so."""
    return (
        door.shortened and len({flag.dest for option, flag in door.keys.options.items() if option.startswith(key)}) == 1
    )


def unread(
    door: Door,
    key: str,
    span: Span,
    related: tuple[Span, ...] = (),
    path: tuple[str, ...] = (),
    shown: str = "",
    elsewhere: bool = False,
) -> Problem:
    """A key that the door does not know, and what becomes of it. path: where it stands in a file, shown: its name.
    elsewhere: whether another release has it."""
    elsewhere = elsewhere or key in door.known
    section = key.rpartition(".")[0]
    alike = [one for one in door.keys.alike(key) if not path or one.rpartition(".")[0] == section]
    near = "" if elsewhere else nearest(key, alike, CLOSE) or ""
    if shown:  # the key of a file
        near = near.removeprefix("--")
        near = near.replace("-", "_") if "_" in shown else near
    hint: str = Message("; did you mean {near}", near=near) if near else ""
    if elsewhere:
        hint = Message("; other releases have it")
    message = Message(_SAID[door.unread], door=door.keys.label, key=shown or key, hint=hint)
    fix = (f"write {near}", span, near.rpartition(".")[2]) if near else None
    harmless = door.unread != "refused" or elsewhere
    return Problem(UNREAD, message, span, related, fix, path, harmless=harmless, unknown_option=True)


def doubted(found: Problem, surroundings: Surroundings) -> Problem:
    """A key that another release may have, where nobody says which it is, unless it is a slip of another key."""
    stated = surroundings.request.target is not None
    return found._replace(harmless=found.harmless or (found.fix is None and not stated))
