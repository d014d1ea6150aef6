"""Scripts that may end before their launch, depending on the caller or the machine: nothing is reported."""

import pytest

from preflight import check_text
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source

CASE = """SIZE={}
case "$SIZE" in
  7b) LAYERS=32;;
  *) echo "no such size"; exit 1;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS
"""
ASKED = CASE.partition("\n")[2].format()
LEFT_ALONE = {
    "a default that the caller replaces": CASE.format("${1:-none}"),
    "a default of the environment": CASE.format("${SIZE:-none}"),
    "an exit without an error": CASE.format("none").replace("exit 1", "exit 0"),
    "nothing is launched either way": CASE.format("none").partition("torchrun")[0],
    "an option that the caller may give": (
        "SIZE=\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --size) SIZE=$2; shift;;\n    *) shift ;;\n  esac\ndone\n"
        + ASKED
    ),
    "options that getopts reads": 'SIZE=none\nwhile getopts "s:" o; do SIZE=$OPTARG; done\n' + ASKED,
    "cases that do not matter": "shopt -s nocasematch\n" + CASE.format("7B"),
    "a file that is not there": "SIZE=none\nsource ./local_env.sh\n" + ASKED,
    "a file that is there only on the cluster": "SIZE=none\nif [ -f env.sh ]; then . env.sh; fi\n" + ASKED,
    "words of the caller": 'SIZE=none\neval "$@"\n' + ASKED,
    "variables of the caller": 'SIZE=none\nfor a in "$@"; do export "$a"; done\n' + ASKED,
    "another name of the variable": "declare -n S=SIZE\n" + CASE.format("none"),
    "small letters": "declare -l SIZE\n" + CASE.format("7B"),
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


FRONT_ENDS = {
    "verl": "python3 -m verl.trainer.main_ppo model_engine=megatron trainer.nnodes=1",
    "slime": "python3 train.py --actor-num-gpus-per-node 8 --rollout-batch-size 32",
    "nemo-rl": "uv run examples/run_grpo.py --config=grpo.yaml policy.megatron_cfg.enabled=true",
    "ms-swift": "megatron sft --model Qwen/Qwen2.5-7B --tensor_model_parallel_size 2",
    "megatron-bridge": "torchrun run_recipe.py --recipe llama3_8b_pretrain_config train.train_iters=10",
}


@pytest.mark.parametrize("value", ["SIZE=dppo-tv", "SIZE=${SIZE:-dppo-tv}"])
@pytest.mark.parametrize("launch", FRONT_ENDS.values(), ids=FRONT_ENDS)
def test_a_front_end_that_is_never_reached_is_told_and_nothing_else(launch: str, value: str) -> None:
    text = f"{value}\ncase $SIZE in\n  dppo_tv) N=2 ;;\n  *) exit 1 ;;\nesac\n{launch} a.n=$N\n"
    report = check_text(text, name="run.sh")
    assert [finding.rule for finding in report.findings] == ["script-ends-before-launch"]
    assert "did you mean dppo_tv?" in report.findings[0].message
