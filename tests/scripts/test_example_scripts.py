"""The example scripts: one is sound, the other has the described faults."""

from __future__ import annotations

from pathlib import Path

import preflight

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "megatron"


def test_the_sound_script_is_silent() -> None:
    report = preflight.check(EXAMPLES / "train_8b.sh")
    assert report.findings == () and report.plan is not None
    assert (report.plan.layout.world.raw, report.plan.layout.data.raw) == (16, 4)


def test_the_faults_are_found_where_they_were_typed() -> None:
    report = preflight.check(EXAMPLES / "train_8b_faults.sh")
    found = {(finding.rule, finding.line) for finding in report.findings}
    assert found >= {
        ("not-exported", 8),
        ("device-count", 10),
        ("bad-choice", 52),
        ("undefined-option-variable", 61),
        ("lost-continuation", 66),
    }
