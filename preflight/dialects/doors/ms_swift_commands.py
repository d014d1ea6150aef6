"""ms-swift's commands: `megatron pt|sft|rlhf` train; `megatron export` converts weights on a parallel layout."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors.door import Door, listed
from preflight.dialects.doors.files import behind_file, typed_in_file
from preflight.dialects.doors.ms_swift import MS_SWIFT, OLDER
from preflight.dialects.doors.reading import Typed
from preflight.dialects.doors.reading import read as reading
from preflight.dialects.megatron.namespace import Run, derives
from preflight.loaders.document import Document, Entry, Setting
from preflight.run.plan import Inference, Plan
from preflight.run.value import Origin, Value, assumed, derived, unknown
from preflight.source.record import replace

TRAINED = ("micro_batch_size", "global_batch_size", "train_iters", "lr", "lr_decay_iters", "lr_warmup_fraction")


@cache
def exporting() -> Door:
    """The door of a run that converts: its own options and defaults beside those of training (ms-swift v4.5.2,
    swift/megatron/arguments/export_args.py)."""
    own = MS_SWIFT.keys.with_own(listed(MS_SWIFT.name, "export"))
    return MS_SWIFT._replace(before=(*MS_SWIFT.before, untrained), after=(), planned=_converts, own=own)


@derives()
def untrained(run: Run) -> None:
    """There are no steps and no batches."""
    for name in TRAINED:
        run.lose(name, "an export trains nothing")


def _converts(plan: Plan, run: Run) -> Plan:
    """Weights alone, and no optimizer beside them."""
    return replace(plan, inference=Inference(enabled=derived(True, "an export trains nothing")))


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of `megatron`, its options from a file where that comes first, or such a file by itself."""
    if document.launch is not None:
        door = exporting() if document.launch.entry.text == "export" else MS_SWIFT
        return reading(door, document, surroundings, _older(behind_file(door, document, surroundings)))
    roles = [entry for entry in document.tree.entries if entry.value.get("gpus") is not None] if document.tree else []
    door = MS_SWIFT._replace(unread="skipped", world=partial(_of_role, roles)) if roles else MS_SWIFT
    return reading(door, document, surroundings, typed_in_file(door, document, surroundings))


def _older(typed: Typed) -> Typed:
    """What a launch of 3.x says by names that this release does not have, for the estimates alone."""
    texts = [word.text for word in typed.spelled.words]
    for option, text in pairwise(texts):
        name = OLDER.get((option or "").replace("-", "_"))
        if name is not None and text is not None and name not in typed.parsed.written:
            typed.parsed.written[name] = assumed(text, f"{option} of other releases")
    return typed


def _of_role(roles: list[Entry], run: Run) -> Value:
    """The devices that the role `train` has of a file for Ray."""
    node = next((entry.value.get("gpus") for entry in roles if entry.key.value == "train"), None)
    if node is None or not isinstance(node.value, int):
        return unknown("the file gives no devices to train")
    return Value(node.value, Origin.WRITTEN, Setting(("train", "gpus"), node.value, node.span, node.span))
