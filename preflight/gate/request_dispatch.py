"""Answers every request to a resident checker in time and audits it, even if the check fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from preflight.gate import audit
from preflight.gate.check_limits import FAIR, Budget, Leave
from preflight.gate.submission import Question, Submission
from preflight.gate.verdict import FAILED, USAGE, Policies, Reply, judge, without_verdict
from preflight.gate.workers import Work, Workers
from preflight.plugins.manager import Plugins, load
from preflight.source.extras import missing
from preflight.source.source_file import InputError

SIZES = "--num-layers 4 --hidden-size 64 --num-attention-heads 3 --seq-length 64 --max-position-embeddings 64"
BATCH = "--micro-batch-size 1 --global-batch-size 3 --lr 1e-4 --train-iters 1 --tensor-model-parallel-size 2"
SCRIPT = """\
#!/bin/bash
#SBATCH -N2
#SBATCH --gpus-per-node=8
A=1
srun torchrun --nnodes 2 --nproc-per-node 8 {start} {arguments}
"""
STARTS = (
    "pretrain_gpt.py",
    "posttrain_gpt.py --use-mcore-models --ai-framework pytorch",
    "run_mindformer.py --config a.yaml",
)
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec:
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: a, command: [torchrun, pretrain_gpt.py]}]}}}
"""
SECONDS = 10.0


def warm(plugins: Plugins, policies: Policies) -> None:
    """Judge one job of each kind to warm up; the results are discarded."""
    plugins.rules(None)
    try:
        import_module("preflight.layouts.search")
    except ModuleNotFoundError as error:
        if not missing(error):  # without numpy the gate suggests no layouts
            raise
    patient = Policies(SECONDS, policies.final, device=policies.device)
    for start in STARTS:
        judge(Submission(SCRIPT.format(start=start, arguments=f"{SIZES} {BATCH}").encode()), plugins, patient)
    judge(Submission(MANIFEST.encode(), "job.yaml", "manifest"), plugins, patient)


SLOW = 2
"""Allowance for a busy machine, on which the processor seconds of a check take longer."""
BUSY = "the checker is busy, because too many submissions are waiting"


def make_work(policies: Policies, recorded: bool) -> Work:
    """The function of a worker, with all rules loaded."""
    plugins = load()
    warm(plugins, policies)

    def work(data: bytes) -> tuple[bytes, bool]:
        question, seconds, advice = Question.decode(data)
        verdict = judge(question.submission(), plugins, replace(policies, seconds=seconds, advice=advice))
        return Reply.of(verdict, recorded=recorded).encode(), not verdict.failed

    return work


class Desk:
    """Consults the budget, queries a worker, and records the result. `tell` receives lines for the service log."""

    def __init__(self, number: int, policies: Policies, log: Path | None, tell: Callable[[str], None]) -> None:
        self._policies = policies
        self.final = bool(policies.final) and not policies.report_only
        self._trail = audit.Trail(log, tell) if log is not None else None
        if self._trail is not None:
            self._trail.open()
        self._budget = Budget(policies.seconds, tell)
        self._turns = threading.Semaphore(number)
        self._waiting = threading.Semaphore(
            number + max(number, round(number * policies.seconds / FAIR))
        )  # more requests would wait without a result
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self._workers = Workers(number, make_work(policies, self._trail is not None), tell)

    def answer(self, question: Question) -> Reply:
        """The reply to a request. Never raises."""
        self._note_unasked(question)
        try:
            question.submission()
            if not question.body:
                raise InputError("is empty, so there is no job to check", question.bare().name)
        except InputError as error:
            return self.refuse(question, str(error))
        if (leave := self._budget.leave(question.user, question.key)).why:
            return self._without(question, leave.why, busy=True, pause=leave.pause)
        if not self._waiting.acquire(blocking=False):
            return self._without(question, BUSY, busy=True)
        try:
            return self._in_turn(question)
        finally:
            self._waiting.release()

    def refuse(self, question: Question, problem: str) -> Reply:
        """The reply to unreadable input."""
        verdict = without_verdict(question.bare(), problem, USAGE, self._policies)
        return self._recorded(question, Reply.of(verdict, recorded=self._trail is not None))

    def _in_turn(self, question: Question) -> Reply:
        """Wait for a turn, and then check the remaining budget again."""
        if not self._turns.acquire(timeout=self._policies.seconds):
            return self._without(question, BUSY, busy=True)
        try:
            leave = self._budget.leave(question.user, question.key)
            if leave.why:
                return self._without(question, leave.why, busy=True, pause=leave.pause)
            return self._asked(question, leave)
        finally:
            self._turns.release()

    def _asked(self, question: Question, leave: Leave) -> Reply:
        seconds = SLOW * self._policies.seconds
        data = question.encode(seconds, self._policies.advice if leave.rich else 0.0)
        outcome = self._workers.ask(data, seconds, processor=leave.processor, patience=FAIR)
        if outcome.busy:
            return self._without(question, outcome.why, busy=True)
        if outcome.answer is None:
            self._budget.without(question.user, question.key, leave, outcome.seconds, worked=outcome.worked)
            return self._without(question, outcome.why, outcome.seconds)
        reply = Reply.decode(outcome.answer)
        if outcome.fit and reply.verdict["exit"] == USAGE:
            self._budget.unreadable(question.user, outcome.seconds)
        elif outcome.fit:
            self._budget.judged(question.user, outcome.seconds)
        else:
            waited = reply.verdict["elapsed_ms"] / 1000
            self._budget.without(question.user, question.key, leave, waited, worked=outcome.seconds > waited / 2)
        return self._recorded(question, reply)

    def _without(
        self, question: Question, why: str, seconds: float = 0.0, *, busy: bool = False, pause: str = ""
    ) -> Reply:
        verdict = without_verdict(question.bare(), why, FAILED, self._policies, seconds)
        return self._recorded(question, Reply.of(verdict, recorded=self._trail is not None, busy=busy, pause=pause))

    def _recorded(self, question: Question, reply: Reply) -> Reply:
        if self._trail is not None:
            reply = self._written(self._trail, question, reply)
        with self._lock:
            self.counts["submissions"] += 1
            self.counts["without a verdict"] += reply.verdict["problem"] is not None
            self.counts["answered at once, unchecked"] += reply.busy
        return reply

    def _written(self, trail: audit.Trail, question: Question, reply: Reply) -> Reply:
        """The reply after its line is written; without its override if that failed."""
        needed = reply.verdict["override"] is not None
        why = trail.write(audit.line(reply.verdict, question.user), needed=needed)
        if not why or not needed:
            return reply
        reply = reply.unrecorded(why)
        if why == audit.HANGS:  # the line of the override is dropped or late: this one records the answer
            trail.write(audit.line(reply.verdict, question.user))
        return reply

    def _note_unasked(self, question: Question) -> None:
        """Submissions for which the gate was not queried: the caller had to pause, or got no answer."""
        for user, count in question.unasked():
            with self._lock:
                self.counts["not checked"] += count
            if self._trail is not None:
                self._trail.write(audit.lost(count, "not checked: the checker was busy or did not respond", user))

    def look(self) -> None:
        """Periodic work."""
        self._budget.look()

    def hurry(self) -> None:
        """Answer all requests without a verdict from now on."""
        self._workers.hurry()

    def stop(self) -> None:
        """End the workers, and write the waiting lines."""
        self._workers.stop()
        if self._trail is not None:
            self._trail.close()
