"""Keys that a door does not know: told as what the door makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.megatron.parse_faults import STRAY_WORD, UNKNOWN_FLAG
from preflight.loaders.document import Problem
from preflight.source.message import Message
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


def of_door(door: Door, faults: Iterable[Problem]) -> Iterator[Problem]:
    """The faults of parsing as the door takes them."""
    for fault in faults:
        key = fault.span.text.partition("=")[0]
        if fault.kind == UNKNOWN_FLAG:
            if not key.startswith(door.elsewhere or ("\0",)) and not _shortened(door, key):
                yield unread(door, key, fault.span, fault.related)
        elif fault.kind != STRAY_WORD or door.unread == "refused":
            yield fault


def _shortened(door: Door, key: str) -> bool:
    """Whether argparse takes a key for the only one that begins so."""
    return (
        door.shortened and len({flag.dest for option, flag in door.keys.options.items() if option.startswith(key)}) == 1
    )


def unread(
    door: Door, key: str, span: Span, related: tuple[Span, ...] = (), path: tuple[str, ...] = (), shown: str = ""
) -> Problem:
    """A key that the door does not know, and what becomes of it. path: where it stands in a file, shown: its name."""
    elsewhere = key in door.known
    section = key.rpartition(".")[0]
    alike = [one for one in door.keys.alike(key) if not path or one.rpartition(".")[0] == section]
    near = "" if elsewhere else nearest(key, alike, CLOSE) or ""
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
