"""The tables of upstream's messages: reading them from a file, and finding them from a log."""

from __future__ import annotations

import io
import json

import pytest

from preflight import schemas
from preflight.logs.diagnosis import diagnosed
from preflight.logs.failures import Failures
from preflight.logs.framework_messages import frameworks, words
from preflight.logs.relevant_lines import lines_of_interest
from upstream.messages import raised_in

SOURCE = """
class Config:
    def __post_init__(self):
        assert self.a % self.b == 0, f"{self.a} heads do not divide over rank{self.b} of {self.c}_ranks today"
        if self.a:
            raise ValueError("hidden size {} is odd".format(self.a) + " and so is the rest")
        assert self.learning_rate is not None
        raise KeyError(self.name)
"""


def test_words_beside_values_are_left_out() -> None:
    found = {(line, told.raised, told.function, told.words) for line, told in raised_in("a.py", SOURCE)}
    assert found == {
        (4, "AssertionError", "Config.__post_init__", ("heads", "do", "not", "divide", "over", "of", "today")),
        (6, "ValueError", "Config.__post_init__", tuple(words("hidden size is odd and so is the rest"))),
        (7, "=", "Config.__post_init__", tuple(words("self.learning_rate is not None"))),
    }


@pytest.mark.parametrize("framework", frameworks())
def test_tables_are_of_the_evidence_and_hold_no_text(framework: str) -> None:
    table, evidence = schemas.read(f"{framework}/messages"), schemas.read(f"{framework}/evidence")
    assert set(evidence["commits"]) <= set(table["commits"]) and table["repository"] == evidence["repository"]
    assert all(
        evidence["commits"][name] == commit for name, commit in table["commits"].items() if name in evidence["commits"]
    )
    linked = {site for row in table["messages"] for site in row[7:]}
    assert linked and linked <= evidence["sites"].keys()
    assert not any(" " in row[0] for row in table["messages"])
    assert len(json.dumps(table["messages"])) < 400_000


def test_a_message_leads_to_its_statement_by_words_alone() -> None:
    failures = Failures()
    text = "RuntimeError: decoder world_size (4) is not divisible by expert_tensor_model_pipeline_parallel size (8)\n"
    failures.read("run.log", lines_of_interest(io.BytesIO(text.encode())))
    found = diagnosed(failures.found)
    assert found.rules == ("expert-grid",)
    assert found.statement is not None
    assert found.statement.place == "megatron/core/parallel_state.py:initialize_model_parallel"
