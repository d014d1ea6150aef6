"""Scripts that may end before their launch, depending on the caller or the machine: nothing is reported."""

import pytest

from preflight.loaders.shell import load_script
from preflight.source.text import Source

CASE = """SIZE={}
case "$SIZE" in
  7b) LAYERS=32;;
  *) echo "no such size"; exit 1;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS
"""
LEFT_ALONE = {
    "a default that the caller replaces": CASE.format("${1:-none}"),
    "a default of the environment": CASE.format("${SIZE:-none}"),
    "an exit without an error": CASE.format("none").replace("exit 1", "exit 0"),
    "nothing is launched either way": CASE.format("none").partition("torchrun")[0],
    "what a test asks of the machine": "D=/d\nif [ ! -d $D ]; then exit 1; fi\n" + CASE.format("$1"),
}


@pytest.mark.parametrize("text", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_the_caller_decides_is_left_alone(text: str) -> None:
    documents = load_script(Source(text, "run.sh"))
    assert not [problem for one in documents for problem in one.problems if problem.kind == "script-ends-before-launch"]
