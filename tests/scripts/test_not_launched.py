"""Scripts that may end before their launch, depending on the caller or the machine: nothing is reported."""

import pytest

from preflight.loaders.shell import load_script
from preflight.source.source_file import Source

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


DEFAULT = """SIZE=${{SIZE:-{}}}
case {} in
  {}) LAYERS=32;;
  *) echo "no such size"; exit 1;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS
"""


@pytest.mark.parametrize(
    ("default", "asked", "branches"),
    [
        ("dppo-tv", "$SIZE", "dppo_tv) ;;\n  dppo_kl"),
        ("7B", '"$SIZE"', "7b|13b"),
        ("lama", "${SIZE}", "llama"),
        ("qwen-3", "$SIZE", "qwen3) ;;\n  'qwen2'"),
        ("colocated", "$SIZE", "colocate) ;;\n  disaggregated"),
        ("sg-lang", "$SIZE", "vllm) ;;\n  sglang"),
    ],
)
def test_a_default_that_misses_a_branch_by_a_letter_is_told(default: str, asked: str, branches: str) -> None:
    documents = load_script(Source(DEFAULT.format(default, asked, branches), "run.sh"))
    told = [one for document in documents for one in document.problems if one.kind == "script-ends-before-launch"]
    assert len(told) == 1 and told[0].span.text == default


@pytest.mark.parametrize(
    ("default", "branches"),
    [("none", "7b|13b"), ("unset", "vllm) ;;\n  sglang"), ("CHANGE_ME", "llama"), ("7b", "7b|13b"), ("x", "*x*|7b")],
)
def test_a_default_that_means_nothing_is_left_to_the_caller(default: str, branches: str) -> None:
    documents = load_script(Source(DEFAULT.format(default, "$SIZE", branches), "run.sh"))
    assert not [one for document in documents for one in document.problems if one.kind == "script-ends-before-launch"]
