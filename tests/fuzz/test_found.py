"""Inputs that fuzzing found, and a short run of every target."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from preflight.api import check_command, check_text
from preflight.dialects.megatron import value_conversions
from preflight.gate.submission import Question
from preflight.loaders import load
from preflight.loaders.shell.expansion_forms import substring, transform
from preflight.source.source_file import InputError, Source

from . import programs, targets
from .choices import Choices

pytestmark = pytest.mark.slow

GRAPH = (
    "run_mode: train\nuse_parallel: True\nparallel_config: {{data_parallel: 2, pipeline_stage: {stages}}}\n"
    "model: {{model_config: {{type: LlamaConfig, num_layers: {layers}, offset: {offset}}}}}\n"
)
DENSE = (
    "pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
    "--max-position-embeddings 64 --micro-batch-size 1 --train-iters 1"
)


def fine(text: str, name: str = "run.yaml", target: str | None = None) -> None:
    report = check_text(text, name=name, world_size=8, target=target)
    assert not report.crashes, report.crashes[0].trace


@pytest.mark.parametrize("name", targets.TARGETS)
def test_a_short_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SLACK", 120.0)
    random, run = Random(name), targets.TARGETS[name][1]
    for _ in range(15):
        run(Choices(random.randbytes(200)))


@pytest.mark.parametrize(
    "text", ["a: !!timestamp x", "a: !!int x", "a: !!bool x", "a: !!float x", "a: !!binary é", "a: !!set x"]
)
def test_a_tagged_scalar_that_is_not_one(text: str) -> None:
    with pytest.raises(InputError):
        load(Source(text, "run.yaml"))


@pytest.mark.parametrize(
    ("text", "value"), [("a: ! 12", 12), ("a: ! '12'", 12), ("a: ! true", True), ("a: ! x", "x"), ("a: '12'", "12")]
)
def test_the_non_specific_tag_resolves_as_if_plain(text: str, value: object) -> None:
    (document,) = load(Source(text, "run.yaml"))
    assert document.tree is not None and document.tree.plain() == {"a": value}


@pytest.mark.parametrize("text", ["${}", "${!}", "${#}", "${²}", "${A[²]}", "${:-x}", "${A[-²]}", "$((²))"])
def test_parameters_without_a_name(text: str) -> None:
    load(Source(f"A=(1 2)\ntorchrun t.py {text} '{text}' \"{text}\"\n", "run.sh"))


def test_operators_of_parameters() -> None:
    assert transform("abc", "//", "[z-a]/x") is None
    assert substring("abc", "9" * 5000) is None
    assert substring("abc", "1:1") == "b"


@pytest.mark.parametrize("number", ["²", "٣" * 10, "1" * 5000, "-1", "1e3", " "])
def test_counts_in_a_question_to_the_gate(number: str) -> None:
    with pytest.raises(InputError):
        Question({"nodes": number}, b"").submission()


@pytest.mark.parametrize("offset", [".inf", "-.inf", ".nan", "[.inf, 0]", "[[.nan], [1]]", "'²'", "9" * 400])
def test_an_offset_that_is_no_whole_number(offset: str) -> None:
    fine(GRAPH.format(stages=2, layers=8, offset=offset), target="mindformers@1.5.0")


@pytest.mark.parametrize(
    ("stages", "layers"),
    [(10**9, 8), (2, 10**9), (2, 10**18), (10**30, 10**30), (2, ".inf"), (".nan", 8), (0, 8), (-1, -1)],
)
def test_layers_and_stages_beyond_reason(stages: object, layers: object) -> None:
    fine(GRAPH.format(stages=stages, layers=layers, offset=0), target="mindformers@1.5.0")


@pytest.mark.parametrize(
    "line", ["ffn_dim_multiplier: .inf", "ffn_dim_multiplier: .nan", "hidden_size: 1" + "0" * 400, "multiple_of: 0"]
)
def test_widths_beyond_reason(line: str) -> None:
    fine(GRAPH.format(stages=2, layers=8, offset=f"0, {line}"), target="mindformers@1.5.0")


@pytest.mark.parametrize("layers", ["-1", "-5", "[-3, 0]", "[[-1, -2]]"])
def test_layers_below_the_first(layers: str) -> None:
    text = GRAPH.format(stages=2, layers=8, offset=0).replace("stage: 2", "stage: 2, model_parallel: 4")
    fine(
        f"{text}recompute_config: {{recompute: {layers}, select_recompute: {layers}}}\nswap_config: {{swap: True}}\n",
        target="mindformers@1.5.0",
    )


def test_a_switch_that_is_not_known() -> None:
    fine("use_parallel: ${X}\nrun_mode: train\nparallel_config: {data_parallel: -1}\n", target="mindformers@2.1.0")


def test_a_base_whose_name_is_too_long() -> None:
    fine(f"base_config: {'a' * 5000}\nrun_mode: train\nuse_parallel: True\nparallel_config: {{data_parallel: 8}}\n")


@pytest.mark.parametrize(
    "words",
    ["--global-batch-size " + "9" * 400, "--tensor-model-parallel-size 1000000000000 --tp-2d --tp-x 2 --tp-y 3"],
)
@pytest.mark.parametrize("target", ["megatron@0.20.0", "mindspeed@26.1.0"])
def test_huge_numbers_in_a_command(words: str, target: str) -> None:
    report = check_command([*DENSE.split(), *words.split()], world_size=8, target=target)
    assert not report.crashes, report.crashes[0].trace


PYNATIVE: Callable[[str], str] = (
    "training: {{local_batch_size: 1, global_batch_size: 8, rampup_batch_size: [null, 1, 1]}}\n{}".format
)


@pytest.mark.parametrize(
    "more", ["optimizer: {type: AdamW, eps: " + "9" * 400 + "}", "distributed: {}", "model: {model_type: qwen3}"]
)
def test_odd_values_in_a_pynative_config(more: str) -> None:
    fine(PYNATIVE(more), target="mindformers@2.1.0")


EXPERTS = """\
run_mode: train
use_parallel: True
use_legacy: False
parallel_config: {{data_parallel: 8, expert_parallel: 2}}
runner_config: {{batch_size: 1}}
model:
  model_config: {{model_type: deepseek_v3, architectures: [DeepseekV3ForCausalLM], num_hidden_layers: 2,
    hidden_size: 64, num_attention_heads: 4, vocab_size: 64, seq_length: 64,
    intermediate_size: 64, moe_intermediate_size: 64, n_routed_experts: 4, num_experts_per_tok: 2,
      first_k_dense_replace: 0, n_group: 1, topk_group: 1, moe_expert_capacity_factor: {factor}}}
"""


@pytest.mark.parametrize("factor", ["[1]", "x", "{}", ".nan", ".inf", "-1", "0", "1e999", "true", "1.5"])
def test_a_capacity_of_experts_that_is_no_factor(factor: str) -> None:
    for target in ("mindformers@1.7.0", "mindformers@2.1.0"):
        fine(EXPERTS.format(factor=factor), target=target)


@pytest.mark.parametrize("text", ["[[ -n --num-layers #", "\r\n[[ --num-layers #SBATCH --nodes=torchrun ", "[[ a == "])
def test_a_condition_that_the_script_leaves_open_has_a_place_in_it(text: str) -> None:
    for document in load(Source(text, "run.sh")):
        assert all(problem.span.end <= len(text) for problem in document.problems)


def test_a_merge_key_with_the_tag_of_a_string_is_an_ordinary_key() -> None:
    (document,) = load(Source("a: &a {b: 1}\n!!str <<: *a\n<<: *a\n", "run.yaml"))
    assert document.tree is not None and document.tree.plain() == {"b": 1, "a": {"b": 1}, "<<": {"b": 1}}


@pytest.mark.parametrize("text", ["[]*99999999999999999999", "99999999999999999999*()"])
def test_nothing_that_is_repeated_endlessly_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        value_conversions.written(text)
