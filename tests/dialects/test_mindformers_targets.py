"""Which release of MindFormers a config is read as when somebody asks for one."""

from __future__ import annotations

import pytest

import preflight

TEXT = "use_parallel: False\nmodel: {model_config: {type: LlamaConfig, num_layers: 2}}\n"


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("1.5", "1.5.0"),
        ("1.5.0", "1.5.0"),
        ("1.3", "1.3.2"),
        ("1.4", "1.3.2"),
        ("1", "1.9.0"),
        ("1.6", "1.6.0"),
        ("1.8", "1.8.0"),
        ("2.0", "2.0.0"),
        ("2", "2.1.0"),
    ],
)
def test_a_release_is_meant_by_as_many_numbers_as_are_given(asked: str, read: str) -> None:
    report = preflight.check_text(TEXT, name="run.yaml", target=f"mindformers@{asked}")
    assert [str(job.target) for job in report.jobs] == [f"mindformers@{read}"]
