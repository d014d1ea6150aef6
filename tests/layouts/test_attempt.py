"""A trial in memory gives the same result as the edited text, and only offered layouts are proven on the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.checking.checked_sources import Workspace
from preflight.fix import edited_texts
from preflight.fix.trial_edits import Attempts
from preflight.layouts.layout_fixes import suggest
from preflight.plugins.manager import load
from preflight.run.request import Request
from preflight.source.finding import Edit, Severity
from preflight.source.source_file import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = EXAMPLES / "megatron" / "train_8b.sh"
EDITS = {
    "another value": (Edit("set", ("--tensor-model-parallel-size",), 2),),
    "a value that is refused": (Edit("set", ("--tensor-model-parallel-size",), 3),),
    "a new option": (Edit("set", ("--context-parallel-size",), 2),),
    "a switch": (Edit("set", ("--recompute-activations",), None), Edit("set", ("--micro-batch-size",), 1)),
    "an option less": (Edit("remove", ("--seq-length",)),),
    "the environment": (Edit("set", ("CUDA_DEVICE_MAX_CONNECTIONS",), "8"),),
}


def attempts(text: str, name: str) -> Attempts:
    workspace = Workspace([Source(text, name)], load(), Request())
    report = workspace.check()
    return Attempts(workspace, report, report.jobs[0])


@pytest.mark.parametrize("name", EDITS)
def test_a_launch_that_is_retyped_reads_as_its_edited_text(name: str) -> None:
    attempt = attempts(SCRIPT.read_text(encoding="utf-8"), "train.sh")
    tried, proven = attempt(EDITS[name]), attempt.proven(EDITS[name])
    assert not isinstance(tried, str) and not isinstance(proven, str)

    def plain(job: object) -> dict[str, object]:
        return {name: str(value.raw) for name, value in job.arguments.effective.items()}  # type: ignore[attr-defined]

    assert plain(tried[0]) == plain(proven[0])
    errors = [
        sorted((f.rule, f.message) for f in found if f.severity is Severity.ERROR) for _, found in (tried, proven)
    ]
    assert errors[0] == errors[1]


def test_only_what_is_offered_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = []
    real = edited_texts.prove
    monkeypatch.setattr(edited_texts, "prove", lambda *words: proofs.append(words) or real(*words))
    workspace = Workspace([Source(SCRIPT.read_text(encoding="utf-8"), "train.sh")], load(), Request(12))
    report = suggest(workspace, workspace.check())
    offered = {fix.edits for f in report.findings if f.layout for fix in (f.fix, *f.alternatives) if fix is not None}
    assert len(offered) > 0 and len(proofs) <= len(offered) + 1
