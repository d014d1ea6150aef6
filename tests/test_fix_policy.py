"""Which fix of a finding is written, which is only offered, and the messages about it."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from preflight.api import installed
from preflight.checking.configured_checker import Checker
from preflight.fix.fixer import Fixed, fix_source
from preflight.lint import value_kinds
from preflight.report.json import as_dict
from preflight.run.project_settings import Choice, Facts, Settings
from preflight.source.finding import Finding
from preflight.source.source_file import Source
from preflight.source.spelling import slips

OPTIONS = [
    "--num-layers 32",
    "--hidden-size 4096",
    "--num-attention-heads 32",
    "--seq-length 4096",
    "--max-position-embeddings 4096",
    "--micro-batch-size 1",
    "--global-batch-size 64",
    "--train-iters 1000",
    "--lr 1e-4",
    "--bf16",
    "--tokenizer-type NullTokenizer",
    "--vocab-size 32000",
    "--mock-data",
]
NOTES = ("mindspeed/tp-2d-small", "mindspeed/fused-kernel-needs-atb")
YAML = """\
run_mode: 'train'
use_parallel: True
runner_config: {epochs: 2, batch_size: 1, sink_mode: True}
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1}
optimizer:
  type: Adamw
context:
  max_device_memory: "58"
trainer: {type: CausalLanguageModelingTrainer, model_name: llama2_7b}
model:
  arch: {type: LlamaForCausalLM}
  model_config: {type: LlamaConfig, num_layers: 4, hidden_size: 1024, num_heads: 8, seq_length: 1024, vocab_size: 32000}
"""


def script(*more: str, without: str = "") -> str:
    lines = [line for line in OPTIONS if line.split()[0] != without]
    return (
        "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
        + " \\\n    ".join(["torchrun --nproc_per_node 8 pretrain_gpt.py", *lines, *more])
        + "\n"
    )


def fixed(
    text: str,
    name: str = "run.sh",
    *,
    target: str = "megatron@0.20.0",
    select: tuple[str, ...] = (),
    world: int | None = None,
) -> Fixed:
    checker = Checker(Settings(root=Path.cwd()), installed(), Facts(world_size=world, target=target), Choice(select))
    return fix_source(checker, Source.decode(text.encode(), name), unsafe=True)


def changed(text: str, result: Fixed, name: str = "run.sh") -> list[str]:
    after = result.edited[name].text if name in result.edited else text
    lines = difflib.unified_diff(text.splitlines(), after.splitlines(), n=0, lineterm="")
    found = [line[0] + line[1:].strip(" \\") for line in lines if line[:1] in "+-" and line not in ("--- ", "+++ ")]
    return [line for line in found if "-+"[line[0] == "-"] + line[1:] not in found]  # a backslash more is no change


def of(result: Fixed, rule: str) -> Finding:
    return next(outcome.finding for outcome in result.outcomes if outcome.finding.rule == rule)


@pytest.mark.parametrize(
    "typed, known, meant",
    [
        ("Adamw", ("Adam", "AdamW"), ("AdamW",)),
        ("cosin", ("cosine", "linear"), ("cosine",)),
        ("qwen-3", ("qwen2", "qwen3"), ("qwen3",)),
        ("qwen7", ("qwen", "qwen2", "llama"), ("qwen",)),
        ("liner", ("linear", "lines"), ("linear", "lines")),
        ("flash_attn", ("flash", "fused", "local"), ("flash",)),
        ("ulysses", ("megatron_cp_algo", "ulysses_cp_algo"), ("ulysses_cp_algo",)),
        ("zero3", ("no_shard", "optim", "optim_grads_params"), ()),
        ("bf61", ("bf16", "fp16"), ("bf16",)),
    ],
)
def test_a_slip_is_read_as_the_word_that_keeps_most_of_it(
    typed: str, known: tuple[str, ...], meant: tuple[str, ...]
) -> None:
    assert slips(typed, known) == meant


def test_a_slip_in_a_choice_is_corrected() -> None:
    text = script("--lr-decay-style cosin")
    assert changed(text, fixed(text)) == ["---lr-decay-style cosin", "+--lr-decay-style cosine"]


def test_a_choice_like_none_that_exists_is_not_taken_away() -> None:
    text = script("--data-parallel-sharding-strategy zero3")
    result = fixed(text)
    assert changed(text, result) == []


def offers(finding: Finding) -> list[str]:
    return [fix.title for fix in (finding.fix, *finding.alternatives) if fix is not None]


def test_a_choice_like_none_that_exists_is_not_deleted_either() -> None:
    result = fixed(script("--data-parallel-sharding-strategy zero3"))
    assert offers(of(result, "bad-choice")) == []


def test_a_note_does_not_offer_to_remove_what_was_chosen() -> None:
    text = script("--tensor-model-parallel-size 4", "--tp-2d", "--tp-x 2", "--tp-y 2", "--use-ascend-coc")
    result = fixed(f"{text[:-1]} --coc-fused-kernel\n", target="mindspeed@2.2.0", select=NOTES)
    assert [offers(of(result, rule)) for rule in NOTES] == [[], []]


def test_a_note_offers_to_remove_what_has_no_effect() -> None:
    result = fixed(script("--sequence-parallel"), target="mindspeed@2.2.0")
    assert offers(of(result, "mindspeed/sequence-parallel-off")) == ["remove --sequence-parallel"]


def test_layers_to_recompute_are_only_added_where_one_means_all() -> None:
    rule = "megatron/recompute-full-without-layers"
    block = fixed(script("--recompute-granularity full", "--recompute-method block"))
    uniform = fixed(script("--recompute-granularity full", "--recompute-method uniform"))
    assert offers(of(block, rule)) == []
    assert offers(of(uniform, rule)) == ["set --recompute-num-layers 1"]


@pytest.mark.parametrize(("layers", "hidden", "found"), [(24, 1024, []), (96, 12288, ["run on 4 nodes"])])
def test_more_nodes_are_offered_to_what_does_not_fit_on_those_there_are(
    layers: int, hidden: int, found: list[str]
) -> None:
    shape = f"--num-layers {layers} --hidden-size {hidden} --num-attention-heads 32"
    text = (
        "NNODES=1\n"
        f"torchrun --nnodes $NNODES --nproc_per_node 8 pretrain_gpt.py {shape} --seq-length 2048 "
        "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr 1e-4 "
        "--bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data --tensor-model-parallel-size 8 "
        "--pipeline-model-parallel-size 4 --sequence-parallel\n"
    )
    assert offers(of(fixed(text), "device-count")) == found


def test_of_two_precisions_none_is_taken_away() -> None:
    text = script("--fp16")
    result = fixed(text)
    finding = of(result, "megatron/two-precisions")
    assert changed(text, result) == []
    assert [(f.title, str(f.change), f.offered) for f in (finding.fix, *finding.alternatives) if f] == [
        ("remove --fp16", "removal", True),
        ("remove --bf16", "removal", True),
    ]


def test_experts_are_not_given_up_for_a_lost_option() -> None:
    text = script("--expert-model-parallel-size 8", "--moe-router-topk 2", "--moe-grouped-gemm")
    assert changed(text, fixed(text)) == []


def test_what_completes_an_option_is_added() -> None:
    text = script("--use-distributed-optimizer", "--overlap-param-gather")
    assert changed(text, fixed(text)) == ["+--overlap-grad-reduce"]


def test_sizes_of_the_training_are_not_invented() -> None:
    text = script(without="--micro-batch-size")
    result = fixed(text)
    finding = of(result, "megatron/required-argument")
    assert changed(text, result) == []
    assert finding.fix is not None and finding.fix.offered and finding.fix.title.startswith("set --micro-batch-size 1")


def test_a_title_says_what_of_the_training_changes() -> None:
    text = script().replace("--global-batch-size 64", "--global-batch-size 60")
    (outcome,) = [o for o in fixed(text).outcomes if o.state == "fixed"]
    assert (
        outcome.detail
        == "set the global batch size to 64, which changes the tokens per step; tokens per step 245,760 → 262,144"
    )


def test_notes_are_fixed_only_where_their_rule_is_selected() -> None:
    text = script("--lr-decay-iters 500")
    assert changed(text, fixed(text)) == []
    assert changed(text, fixed(text, select=("megatron/decay-ends-early",))) == []  # a removal is still a choice


def test_places_are_those_of_the_text_as_it_was() -> None:
    text = script("--use-distributed-optimizer", "--overlap-param-gather", "--lr-decay-style cosin")
    lines = text.splitlines()
    result = fixed(text)
    places = {o.finding.rule: o.place.line for o in result.outcomes if o.state == "fixed" and o.place}
    assert lines[places["bad-choice"] - 1].strip() == "--lr-decay-style cosin"
    assert lines[places["megatron/param-gather-without-grad-reduce"] - 1].strip(" \\") == "--overlap-param-gather"


def test_capitals_count_before_letters_and_a_lost_unit_comes_back() -> None:
    result = fixed(YAML, "run.yaml", target="mindformers@1.7.0", world=8)
    assert changed(YAML, result, "run.yaml") == [
        "-type: Adamw",
        "+type: AdamW",
        '-max_device_memory: "58"',
        '+max_device_memory: "58GB"',
    ]


def test_of_a_section_that_stands_twice_none_is_deleted_where_they_differ() -> None:
    text = (
        YAML.replace("Adamw", "AdamW").replace('"58"', '"58GB"')
        + "parallel_config: {data_parallel: 4, model_parallel: 2, pipeline_stage: 1}\n"
    )
    assert changed(text, fixed(text, "run.yaml", target="mindformers@1.7.0", world=8), "run.yaml") == []


def test_json_has_every_way_out_with_the_change_of_the_text() -> None:
    text = script("--fp16")
    report = Checker(Settings(root=Path.cwd()), installed(), Facts(target="megatron@0.20.0")).check_source(
        Source.decode(text.encode(), "run.sh")
    )
    (finding,) = [f for f in as_dict(report)["findings"] if f["rule"] == "megatron/two-precisions"]
    (change,) = finding["fix"]["text"]
    assert (finding["fix"]["change"], finding["fix"]["offered"], change["new"]) == ("removal", True, "")
    assert "--fp16" in text.splitlines()[change["line"] - 1 : change["end_line"]][-1]
    assert [fix["title"] for fix in finding["alternatives"]] == ["remove --bf16"]


def test_what_trains_as_it_stands_is_not_changed_where_the_option_may_as_well_go() -> None:
    text = script("--o2-gradient", "--transformer-impl local")
    result = fixed(text, target="mindspeed-llm@26.1.0")
    finding = of(result, "mindspeed-llm/half-gradients-ignored")
    assert changed(text, result) == []
    assert {(f.title, f.offered) for f in (finding.fix, *finding.alternatives) if f} == {
        ("set --grad-reduce-in-bf16", True),
        ("remove --o2-gradient", True),
    }


def test_more_nodes_are_a_way_out_for_a_layout_that_needs_them() -> None:
    text = script("--tensor-model-parallel-size 8", "--pipeline-model-parallel-size 4")
    text = text.replace("--nproc_per_node 8", "--nnodes 2 --nproc_per_node 8")
    result = fixed(text)
    finding = of(result, "device-count")
    assert changed(text, result) == []
    assert finding.fix is not None and finding.fix.title == "run on 4 nodes"


def test_data_parallel_that_does_not_fit_is_a_slip_or_another_job() -> None:
    text = (
        "use_parallel: True\nparallel: {parallel_mode: 1}\nrunner_config: {epochs: 1, batch_size: 1}\n"
        "parallel_config: {data_parallel: 4, model_parallel: 1, pipeline_stage: 4, micro_batch_num: 8}\n"
        "model: {model_config: {type: LlamaConfig, num_layers: 8, num_heads: 8, hidden_size: 64}}\n"
    )
    result = fixed(text, "run.yaml", target="mindformers@1.5.0", world=8)
    finding = of(result, "device-count")
    assert changed(text, result, "run.yaml") == []
    assert [fix.title for fix in (finding.fix, *finding.alternatives) if fix is not None] == [
        "set the data-parallel size to 2 and the number of micro-batches to 16, which keeps the global batch",
        "set the data-parallel size to 2, which changes the tokens per step",
    ]


def test_of_two_sizes_that_disagree_the_rounder_one_is_kept() -> None:
    text = script(without="--hidden-size").replace("--num-layers 32", "--num-layers 32 --hidden-size 500")
    text = text.replace("--num-attention-heads 32", "--num-attention-heads 8")
    assert changed(text, fixed(text)) == []
    text = script().replace("--num-attention-heads 32", "--num-attention-heads 30")
    assert "+--num-attention-heads 32" in " ".join(changed(text, fixed(text)))


def test_a_group_under_a_wrong_name_gets_its_name_and_hides_what_it_leaves_out() -> None:
    options = " ".join(OPTIONS)
    text = f'GPT_ARGS="{options}"\ntorchrun --nproc_per_node 8 pretrain_gpt.py $GTP_ARGS\n'
    result = fixed(text)
    assert changed(text, result) == [
        "-torchrun --nproc_per_node 8 pretrain_gpt.py $GTP_ARGS",
        "+torchrun --nproc_per_node 8 pretrain_gpt.py $GPT_ARGS",
    ]
    assert [outcome.state for outcome in result.outcomes] == ["fixed"]


def test_an_option_is_not_renamed_to_one_that_is_there() -> None:
    text = script("--seq-length2 8")
    assert changed(text, fixed(text)) == []


def test_a_fix_is_reported_where_the_parser_makes_a_list_of_its_value() -> None:
    text = script("--num-experts 8", "--moe-router-load-balancing-type seq_aux", "--moe-aux-loss-coeff 0.01")
    result = fixed(text)
    assert [o.detail for o in result.outcomes if o.state == "fixed"] == ["write seq_aux_loss"]


@pytest.mark.parametrize(
    ("name", "likely"), [("learning_rate", "1.e-5"), ("adam_eps", "1.e-5"), ("rope_base", "1.e+5"), ("rates", "1.e+5")]
)
def test_of_two_signs_the_likely_one_is_offered_first(name: str, likely: str) -> None:
    ways = value_kinds.ways("1.e5", ("optimizer", name), Source(f"{name}: 1.e5\n", "run.yaml").span(0))
    assert next(fix.title for fix in ways) == f"write {likely}"
    assert len(ways) == 2 and all(fix.offered for fix in ways)
