"""Why a job died: the first failure, separated from its consequences, and its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.logs.ascend import OF_ASCEND
from preflight.logs.cascading_failures import in_teardown
from preflight.logs.cause_types import Cause, Signature
from preflight.logs.exception_origin import PROGRAMS, cut_off, placed
from preflight.logs.failures import Failure
from preflight.logs.framework_messages import Statement, statement_of
from preflight.logs.stages import LOADED, TO_ENGINE, stage_of
from preflight.source.finding import Message
from preflight.source.record import NamedTuple

ONLY_WARNS = ("INFO", "WARN", "DEBUG", "warnings.warn", "[W ", "[WARNING", "UserWarning", "FutureWarning")


class Group(NamedTuple):
    """Equal failures of several ranks: the first of them, its ranks, and their number."""

    first: Failure
    ranks: tuple[int, ...]
    number: int


class Diagnosis(NamedTuple):
    """Why a job died, as far as its log shows. root: None if the log shows no failure. `says`: the cause in a sentence;
    advice: the remedy. followed: consequences of the root. others: failures that are neither."""

    root: Group | None
    cause: Cause
    says: str
    advice: str
    statement: Statement | None
    signature: Signature | None
    followed: tuple[Group, ...]
    others: tuple[Group, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that detect the root cause before the job runs."""
        return self.statement.rules if self.statement is not None else ()


def diagnosed(failures: Sequence[Failure]) -> Diagnosis:
    """The diagnosis from the failures of a job."""
    groups = _groups(failures)
    if not groups:
        nothing = "the log shows no failure"
        advice = "pass the logs of all ranks, and the scheduler's record of the job"
        return Diagnosis(None, Cause.UNKNOWN, nothing, advice, None, None, (), ())
    stamped = all(group.first.time is not None for group in groups)
    ordered = sorted(groups, key=lambda group: (_tier(group.first), *_when(group, stamped)))
    root = _preferred(ordered)
    if all(not group.first.kind and group.first.signature is None and not group.first.frames for group in groups):
        return _in_prose(groups)
    rest = [group for group in groups if group is not root]
    followed = tuple(group for group in rest if group.first.aftermath)
    others = tuple(group for group in rest if not group.first.aftermath)
    ends = root.first.aftermath and in_teardown(tuple(frame.function for frame in root.first.frames))
    cause, says, advice, statement, signature = ENDED if ends else _meaning(root.first)
    if cause is Cause.UNKNOWN and signature is None and (stage := _stage_elsewhere(root, others)) is not None:
        (cause, says), advice = stage, ""
    return Diagnosis(root, cause, says, advice, statement, signature, followed, others)


def _groups(failures: Iterable[Failure]) -> list[Group]:
    alike: dict[object, list[Failure]] = {}
    for one in failures:
        alike.setdefault((one.alike, one.aftermath), []).append(one)
    found = []
    for same in alike.values():
        first = min(same, key=lambda one: (one.time if one.time is not None else 0.0, not one.leads, one.order))
        ranks = tuple(sorted({one.rank for one in same if one.rank is not None}))
        found.append(Group(first, ranks, len(same)))
    return found


def _tier(one: Failure) -> int:
    """The priority of a kind of failure as the root: the lowest is the most likely."""
    if one.passed:
        return 6
    if one.aftermath:
        return 5
    if one.repeated:
        return 4
    if one.kind and not one.message and not one.frames and one.signature is None:
        return 3
    warns = one.text.lstrip().startswith(ONLY_WARNS)
    if one.kind and one.whole and (one.frames or one.kind == "argparse"):
        return 0
    if one.kind and one.whole and not warns:
        return 1
    if one.signature is not None and not one.signature.weak and not warns:
        return 1
    return 2 if one.whole is False else 3


def _when(group: Group, stamped: bool) -> tuple[float, ...]:
    """The order of failures of one kind: by time, otherwise by number of ranks, otherwise by place in the log."""
    first = group.first
    if stamped and first.time is not None:
        return (first.time, first.order)
    if first.aftermath:  # how many ranks waited does not show which one was first
        return (0.0, first.order)
    deepest = 0 if first.whole else -len(first.frames)  # of tracebacks that are cut off the longest shows most
    return (max(len(group.ranks), 1), not first.leads, deepest, first.order)


def _stage_elsewhere(root: Group, others: Sequence[Group]) -> tuple[Cause, str] | None:
    """The activity of the job by a traceback that is cut off, if the exception was printed without its own."""
    if root.first.frames or not root.first.kind or root.first.aftermath:
        return None
    cut = next((group.first for group in others if group.first.kind == "" and group.first.frames), None)
    return stage_of(cut) if cut is not None and not cut.whole else None


def _in_prose(groups: Sequence[Group]) -> Diagnosis:
    """The cause in lines without an exception that contain a message of a framework."""
    for group in groups:
        first = group.first
        statement, stage = statement_of(first), stage_of(first)
        if statement is not None and (statement.rules or statement.sites):
            return Diagnosis(group, Cause.CONFIG, _refused(statement), "", statement, None, (), ())
        if stage is not None:
            return Diagnosis(group, stage[0], stage[1], "", statement, None, (), ())
    return diagnosed(())


STRONGER = {
    "disk-full": "shared-memory",
    "bus-error": "shared-memory",
    "missing-module": "missing-library",
    "index-out-of-bounds": "token-out-of-bounds",
    "memory-of-kernel": "device-fault",
}
"""Signatures that yield to another one in the same log."""


REFERS = re.compile(r"refer to 'Ascend Error Message'|Inner error is reported as above")
"""The cause of an exception whose reason is in another line."""


def _preferred(ordered: Sequence[Group]) -> Group:
    root = ordered[0]
    own = root.first.signature
    if not root.first.whole and own is None and stage_of(root.first) is None and not _imports(root.first):
        root = next((g for g in ordered if g.first.signature is not None), root)
    if REFERS.search(root.first.message):
        return next((g for g in ordered if g.first.signature is not None and not g.first.signature.weak), root)
    if own is not None and own.id in WRAPS:
        return _wrapped(root, ordered)
    if own is not None and own.id in STRONGER:
        named = STRONGER[own.id]
        return next((g for g in ordered if g.first.signature is not None and g.first.signature.id == named), root)
    return root


WRAPS = frozenset({"call-of-npu", "npu-graph", "mindspore-device", "inner-error", "error-of-cann"})
"""Signatures of messages that wrap another one, which has the reason."""
OF_DEVICE = frozenset(one.id for one in OF_ASCEND) | {
    "npu-out-of-memory",
    "mindspore-out-of-memory",
    "event-timeout",
    "operator-of-cann",
    "arguments-of-operator",
    "compiler-of-operators",
}
"""Signatures of the reasons that are in such messages."""


def _wrapped(root: Group, ordered: Sequence[Group]) -> Group:
    """The reason in another line than the message that wraps it; the root itself if there is none."""
    first = root.first
    for group in ordered:
        if (signature := group.first.signature) is not None and (
            signature.id in OF_DEVICE or (signature.id == "collective-timeout" and not first.kind)
        ):
            return group
    return root


BY_STAGE = ("no-file",)
"""Signatures that take the class of the job's stage."""
AFTER_STAGE = ("own-code", "name-not-there", "autograd", "data-reader", "no-json", "sizes-of-tensors", "no-such-weight")
"""Signatures that give way to the stage of the job, which the frames show."""
IMPORTS = re.compile(r"(?:from|fro|import|impor|impo|imp)\b")
Meaning = tuple[Cause, str, str, Statement | None, Signature | None]
ENDED: Meaning = (
    Cause.UNKNOWN,
    "the log has only what follows when a process ends",
    "read the lines before it, and the logs of all ranks",
    None,
    None,
)
"""The meaning of an exception in a function that ends a process."""


def _meaning(root: Failure) -> Meaning:
    statement = None if root.aftermath else statement_of(root)
    signature = root.signature
    if statement is not None and statement.rules:
        return Cause.CONFIG, _refused(statement), "", statement, signature
    stage = None if root.aftermath else stage_of(root)
    if signature is not None and signature.id in BY_STAGE and stage is not None:
        return stage[0], signature.says, signature.advice, statement, signature
    if signature is not None and signature.id in AFTER_STAGE and stage is not None and _precedes(stage, signature):
        return stage[0], stage[1], "", statement, signature
    strong = signature is not None and not signature.weak
    if signature is not None and strong and not (statement is not None and signature.id == "unknown-argument"):
        return signature.cause, signature.says, signature.advice, statement, signature
    if statement is not None and (statement.sites or (stage is not None and stage[0] is Cause.CONFIG)):
        return Cause.CONFIG, _refused(statement), "", statement, signature
    if signature is not None:
        return signature.cause, signature.says, signature.advice, statement, signature
    return _unsigned(root, statement, stage)


def _unsigned(root: Failure, statement: Statement | None, stage: tuple[Cause, str] | None) -> Meaning:
    """The meaning of a failure that no signature matches: what the job was doing, or the place of the exception."""
    if not root.whole and _imports(root):
        return (
            Cause.ENVIRONMENT,
            Message("the log ends before the exception; {stage}", stage=LOADED),
            "",
            statement,
            None,
        )
    if stage is not None:
        says = stage[1] if root.whole else Message("the log ends before the exception; {stage}", stage=stage[1])
        return stage[0], says, "", statement, None
    if root.kind == "RayTaskError":
        says = Message("Ray reports that an actor failed; the log does not contain the actor's exception")
        return Cause.UNKNOWN, says, "read the worker's own log (/tmp/ray/session_latest/logs/worker-*)", None, None
    if root.aftermath:
        says = Message("the log contains only failures caused by the death of another process")
        advice = "read the logs of all ranks, because the cause is in the log of the first process that died"
        return Cause.UNKNOWN, says, advice, None, None
    if root.whole and (place := placed(root)) is not None:
        return place[0], place[1], PROGRAMS, statement, None
    if root.whole and root.kind and root.message and not root.frames:
        says = Message("{kind}: the log contains its message, but not the place where it was raised", kind=root.kind)
        return Cause.UNKNOWN, says, PROGRAMS, statement, None
    return Cause.UNKNOWN, (not root.whole and cut_off(root)) or "I don't know", "", statement, None


def _precedes(stage: tuple[Cause, str], signature: Signature) -> bool:
    cause = stage[0]
    if signature.id == "no-such-weight":
        return stage[1] == TO_ENGINE
    if cause is Cause.ENVIRONMENT:
        return signature.id != "sizes-of-tensors"
    if cause is Cause.DATA:
        return signature.id != "name-not-there"
    return cause is not Cause.PROGRAM or (signature.weak and signature.id != "name-not-there")


def _imports(root: Failure) -> bool:
    """Whether a traceback that is cut off ends at an import."""
    last = root.frames[-1]
    return last.function == "<module>" and IMPORTS.match(last.source) is not None


def _refused(statement: Statement) -> str:
    framework = statement.framework
    return Message("{framework} rejects this configuration in {place}", framework=framework, place=statement.place)
