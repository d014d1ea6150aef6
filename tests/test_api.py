"""preflight from Python: what it refuses, and what it says of a text that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight

EXAMPLE = Path(__file__).parent.parent / "examples/mindformers/run_llama2_7b.yaml"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"device": "h1000"}, "no device is called 'h1000'; did you mean 'h100'?"),
        ({"target": "mindformer"}, "no framework is called 'mindformer'; did you mean 'mindformers'?"),
        (
            {"target": preflight.Target("nobody")},
            "no framework is called 'nobody'; there are megatron, mindformers, mindspeed, mindspeed-llm",
        ),
        ({"world_size": 0}, "--world-size must be at least 1, not 0"),
    ],
)
def test_what_nobody_knows_is_refused(said: dict[str, object], message: str) -> None:
    for check in (
        lambda: preflight.check(EXAMPLE, **said),
        lambda: preflight.check_command(["pretrain_gpt.py"], **said),
    ):  # type: ignore[arg-type]
        with pytest.raises(preflight.InputError) as caught:
            check()
        assert str(caught.value) == message
    with pytest.raises(preflight.InputError, match="no device is called 'h1000'"):
        preflight.estimate_memory(preflight.Plan(target=preflight.Target("megatron")), "h1000")


@pytest.mark.parametrize(
    ("text", "place"), [("a: [", (1, 5)), ("a: [\n", (2, 1)), ("\t", (1, 1)), ("a: 'x", (1, 6)), ("- [\n\n\n", (4, 1))]
)
def test_a_text_that_cannot_be_read_is_a_finding_at_its_place(text: str, place: tuple[int, int]) -> None:
    (finding,) = preflight.check_text(text).findings
    assert (finding.rule, finding.line, finding.column) == ("unreadable", *place)
