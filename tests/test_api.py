"""The Python API: refused calls, and reports about unreadable texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import preflight
from preflight.frontends.supported_front_ends import FRONT_ENDS

FRAMEWORKS = {
    *("megatron", "mindspeed", "mindspeed-llm", "mindformers"),
    *(front_end.name for front_end in FRONT_ENDS),
}
EXAMPLE = Path(__file__).parent.parent / "examples/mindformers/run_llama2_7b.yaml"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"device": "h1000"}, "there is no device 'h1000'; did you mean 'h100'?"),
        ({"target": "mindformer"}, "there is no framework 'mindformer'; did you mean 'mindformers'?"),
        (
            {"target": preflight.Target("nobody")},
            f"there is no framework 'nobody'; known frameworks are {', '.join(sorted(FRAMEWORKS))}",
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
    with pytest.raises(preflight.InputError, match="there is no device 'h1000'"):
        preflight.estimate_memory(preflight.Plan(target=preflight.Target("megatron")), "h1000")


@pytest.mark.parametrize(
    ("text", "place"), [("a: [", (1, 5)), ("a: [\n", (2, 1)), ("\t", (1, 1)), ("a: 'x", (1, 6)), ("- [\n\n\n", (4, 1))]
)
def test_a_text_that_cannot_be_read_is_a_finding_at_its_place(text: str, place: tuple[int, int]) -> None:
    (finding,) = preflight.check_text(text).findings
    assert (finding.rule, finding.line, finding.column) == ("unreadable", *place)


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import preflight
sys.setswitchinterval(1e-5)
script = "A=8\\ntorchrun --nproc-per-node $A pretrain_gpt.py --num-layers 4 --hidden-size $((A * 2))\\n"
with ThreadPoolExecutor(4) as pool:
    reports = list(pool.map(lambda number: preflight.check_text(script, name=f"run{number}.sh"), range(40)))
print(len(reports), len({len(report.findings) for report in reports}))
"""


def test_threads_check_scripts_at_the_same_time() -> None:
    ran = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.returncode) == ("40 1\n", 0), ran.stderr
