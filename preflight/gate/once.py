"""One verdict in a process of its own, which is killed at the deadline: code in C does not notice an alarm."""

from __future__ import annotations

import os
import time

from preflight.gate.limits import MIB
from preflight.gate.reply import Reply
from preflight.gate.submission import Submission
from preflight.gate.verdict import FAILED, Policies, judge, without_verdict
from preflight.gate.workers import Workers
from preflight.plugins.manager import Plugins

MOST_MEMORY = 512 * MIB


def judge_apart(submission: Submission, plugins: Plugins, policies: Policies, *, recorded: bool) -> Reply:
    """The reply to a submission within the deadline, whatever the check does."""

    def work(question: bytes) -> tuple[bytes, bool]:
        return Reply.of(judge(submission, plugins, policies), recorded=recorded).encode(), True

    if not hasattr(os, "fork"):
        return Reply.decode(work(b"")[0])
    start = time.monotonic()
    workers = Workers(1, work, memory=MOST_MEMORY)
    try:
        outcome = workers.ask(b"", policies.seconds - (time.monotonic() - start))
    finally:
        workers.stop()
    if outcome.answer is not None:
        return Reply.decode(outcome.answer)
    verdict = without_verdict(submission, outcome.why, FAILED, policies, time.monotonic() - start)
    return Reply.of(verdict, recorded=recorded)
