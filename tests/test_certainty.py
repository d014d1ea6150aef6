"""Releases that nobody described: only what both neighbours refuse is an error, and the summary says how a config was read."""

from __future__ import annotations

import pytest

import preflight
from preflight.lint.certainty import around
from preflight.report.style import Look
from preflight.report.text import tell
from preflight.run.request import Target
from preflight.source.finding import Finding, Severity

KNOWN = (Target("a", "2.1.0"), Target("a", "1.5.0"), Target("a", "1.3.2"), Target("b", "9.0"))
SIZES = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --train-iters 9 --lr 1e-4"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("a@1.4.0", ("1.3.2", "1.5.0")),
        ("a@2.0.1", ("1.5.0", "2.1.0")),
        ("a@1.5.0", ()),
        ("a@1.5.9", ()),
        ("a@1.3", ()),
        ("a@1", ("1.3.2", "1.5.0")),
        ("a@2", ()),
        ("a@1.2.0", ("1.3.2", "1.5.0")),
        ("a@2.2", ()),
        ("b@8.0", ("9.0",)),
        ("c@1.4", ()),
        ("a", ()),
        ("a@newest", ()),
    ],
)
def test_the_releases_around_one(asked: str, expected: tuple[str, ...]) -> None:
    assert tuple(target.version for target in around(Target.parse(asked), KNOWN)) == expected


def found(more: str, target: str) -> dict[str, Finding]:
    text = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"
    return {f.rule: f for f in preflight.check_text(text, name="run.sh", target=target).findings}


def test_what_only_a_newer_release_refuses_is_no_fault_before() -> None:
    more = "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --pipeline-model-parallel-layout Et*24L"
    assert found(more, "megatron@0.20.0")["megatron/te-loss-fusion"].severity is Severity.ERROR
    assert "megatron/te-loss-fusion" not in found(more, "megatron@0.16.0")


def test_an_option_of_a_newer_release_is_read_as_there() -> None:
    assert found("--pipeline-model-parallel-layout Et*24L", "megatron@0.12.1")["unknown-flag"].severity is Severity.ERROR
    assert "unknown-flag" not in found("--pipeline-model-parallel-layout Et*24L", "megatron@0.14.0")


def test_an_option_that_came_and_went_is_known_in_between() -> None:
    assert "unknown-flag" not in found("--legacy-tokenizer", "megatron@0.15.0")
    assert found("--legacy-tokenizer", "megatron@0.20.0")["unknown-flag"].severity is Severity.ERROR


def test_what_both_neighbours_refuse_is_an_error() -> None:
    assert found("--tensor-model-parallel-size 3", "megatron@0.15.0")["device-count"].severity is Severity.ERROR


def test_mindformers_between_two_releases() -> None:
    text = "run_mode: train\nuse_parallel: True\nparallel: {parallel_mode: 1}\nparallel_config: {data_parallel: 1, model_parallel: 3}\nrunner_config: {epochs: 1, image_size: 224}\n"

    def severities(target: str) -> dict[str, Severity | None]:
        return {f.rule: f.severity for f in preflight.check_text(text, target=target, world_size=8).findings}

    assert severities("mindformers@1.5.0")["unknown-key"] is Severity.ERROR
    assert severities("mindformers@1.4.0")["device-count"] is Severity.ERROR
    assert severities("mindformers@1.4.0").get("unknown-key") is not Severity.ERROR


def test_the_summary_says_what_was_read_for_want_of_what() -> None:
    def summary(target: str) -> tuple[str, ...]:
        return tell(preflight.check_text(f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES}\n", name="run.sh", target=target), Look()).targets

    assert summary("megatron@0.13.1") == ("megatron@0.13.0 for want of 0.13.1",)
    assert summary("megatron@0.12") == ("megatron@0.12.1",)


def test_a_yaml_of_arguments_is_read_as_the_release_that_is_stated() -> None:
    text = "language_model: {hidden_size: 64, num_layers: 2}\nmodel_parallel: {tensor_model_parallel_size: 2}\n"
    assert preflight.check_text(text, target="megatron@0.14.0").jobs[0].target.version == "0.14.0"


@pytest.mark.parametrize("release", ["2.0.0", "2.1.0", "26.1.0", "master"])
def test_the_choices_of_a_described_release_are_certain(release: str) -> None:
    assert found("--lr-decay-style wavy", f"mindspeed-llm@{release}")["bad-choice"].severity is Severity.ERROR


def test_a_check_holds_from_the_release_that_makes_it() -> None:
    more = "--num-experts 8 --expert-model-parallel-size 2"
    assert found(more, "megatron@0.12.1")["megatron/experts-with-bias"].severity is Severity.ERROR
    assert "megatron/experts-with-bias" not in found(more, "megatron@0.11.0")
    assert found("--checkpoint-activations", "megatron@0.11.0")["megatron/old-checkpoint-activations"].severity is Severity.ERROR


def test_a_release_on_an_older_megatron_is_judged_by_the_checks_of_that() -> None:
    more = "--rotary-base 10000.0 --tensor-model-parallel-size 3 --use-mcore-models --inference-batch-times-seqlen-threshold 512"
    before = found(more, "mindspeed-llm@2.0.0")
    assert before["bad-value"].severity is before["device-count"].severity is Severity.ERROR
    assert "megatron/split-inference-without-pipeline" not in before


def test_what_mindspeed_llm_itself_checks_holds_in_the_releases_that_have_it() -> None:
    more = "--use-mcore-models --normalization LayerNorm --use-fused-rmsnorm"
    assert found(more, "mindspeed-llm@2.1.0")["mindspeed-llm/fused-rmsnorm-kind"].severity is Severity.ERROR
    assert "mindspeed-llm/fused-rmsnorm-kind" not in found(more, "mindspeed-llm@2.2.0")


def test_of_a_release_newer_than_all_the_newest_is_believed() -> None:
    more = "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --pipeline-model-parallel-layout Et*24L"
    assert found(more, "megatron@0.21.0")["megatron/te-loss-fusion"].severity is Severity.ERROR


SIXTEEN = "pretrain_gpt.py --tensor-model-parallel-size 16 --num-layers 2 --hidden-size 1024 --num-attention-heads 8"


def said(script: str, **more: int) -> dict[str, Finding]:
    checked = preflight.check_text(script, name="run.sh", target="megatron@0.20.0", **more)
    return {finding.rule: finding for finding in checked.findings}


@pytest.mark.parametrize(
    "script",
    [
        "torchrun --nnodes ${NNODES:-1} --nproc-per-node 8",
        "NUM_NODES=${NUM_NODES:-1}\ntorchrun --nnodes $NUM_NODES --nproc-per-node ${GPUS:-8}",
        'NODES="${PET_NNODES:-${SLURM_NNODES:-1}}"\ntorchrun --nnodes $NODES --nproc-per-node 8',
        "NNODES=${1:-1}\ntorchrun --nnodes $NNODES --nproc-per-node 8",
    ],
)
def test_a_default_number_of_nodes_makes_no_error_of_what_other_nodes_mend(script: str) -> None:
    found = said(f"{script} {SIXTEEN}")
    assert found["device-count"].severity is Severity.WARNING
    assert "only given a default here" in found["device-count"].message
    assert found["heads-not-divisible"].severity is Severity.ERROR
    assert "default" not in found["heads-not-divisible"].message


@pytest.mark.parametrize("script", ["torchrun --nproc-per-node 8", "NNODES=1\ntorchrun --nnodes $NNODES --nproc-per-node ${GPUS:-8}"])
def test_a_stated_number_of_nodes_is_taken_at_its_word(script: str) -> None:
    assert said(f"{script} {SIXTEEN}")["device-count"].severity is Severity.ERROR


def test_a_caller_who_says_the_devices_is_believed() -> None:
    script = f"torchrun --nnodes ${{NNODES:-1}} --nproc-per-node 8 {SIXTEEN}"
    assert said(script, world_size=24)["device-count"].severity is Severity.ERROR
    assert "device-count" not in said(script, world_size=32)


@pytest.mark.parametrize(("target", "severity", "says"), [(None, Severity.WARNING, "so from 0.19.0 on, and the options fit 0.12.1 as well"), ("megatron@0.20.0", Severity.ERROR, "works")])
def test_a_check_of_the_newest_release_is_certain_only_where_it_is_said(target: str | None, severity: Severity, says: str) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --cross-entropy-loss-fusion --cross-entropy-fusion-impl te"
    (found,) = (f for f in preflight.check_text(script, name="run.sh", target=target).findings if f.rule == "megatron/te-loss-fusion")
    assert found.severity is severity
    assert found.message.endswith(says)


@pytest.mark.parametrize(
    ("rule", "more", "first"),
    [
        ("mindspeed/mc2-tensor-parallel", "--use-ascend-mc2 --use-fused-rmsnorm", "26.0.0"),
        ("mindspeed/coc-transformer-engine", "--tensor-model-parallel-size 2 --sequence-parallel --use-ascend-coc", "26.0.0"),
        ("mindspeed-llm/neat-pack", "--stage sft --neat-pack --reset-position-ids", "2.3.0"),
        ("mindspeed-llm/lora-dispatcher", "--num-experts 8 --lora-target-modules linear_qkv --moe-token-dispatcher-type alltoall", "2.2.0"),
        ("megatron/router-groups-missing", "--num-experts 8 --moe-router-topk 2 --topk-group 3 --use-fused-rmsnorm", "2.2.0"),
    ],
)
def test_what_releases_in_use_take_is_a_warning_where_nobody_says_the_release(rule: str, more: str, first: str) -> None:
    script = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"
    unsaid = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}[rule]
    assert unsaid.severity is Severity.WARNING
    assert f"; so from {first} on, and the options fit " in unsaid.message
    said = {f.rule: f for f in preflight.check_text(script, name="run.sh", target="mindspeed-llm@26.1.0").findings}[rule]
    assert said.severity is Severity.ERROR
    assert "so from" not in said.message


def test_what_no_number_of_nodes_cures_stays_an_error() -> None:
    script = f"torchrun --nnodes ${{NNODES:-1}} --nproc-per-node 8 pretrain_gpt.py {SIZES} --global-batch-size"
    assert said(f"{script} 12")["batch-not-divisible"].severity is Severity.ERROR
    assert "batch-not-divisible" not in said(f"{script} 16")
    many = f"torchrun --nnodes ${{NNODES:-3}} --nproc-per-node 8 pretrain_gpt.py {SIZES} --global-batch-size 32"
    assert said(many)["batch-not-divisible"].severity is Severity.ERROR


@pytest.mark.parametrize(
    ("more", "shows"),
    [
        ("--activations-checkpoint-method uniform --DDP-impl local", "--DDP-impl"),
        ("--use-mpi --rotary-base 500000.0", "--use-mpi"),
        ("--mamba-headdim 64 --rotary-base 500000.0 --use-fused-rmsnorm", "--mamba-headdim"),
    ],
)
def test_a_command_for_another_release_or_fork_is_refused_for_certain_only_where_no_release_takes_it(more: str, shows: str) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more} --tensor-model-parallel-size 3\n"
    found = preflight.check_text(script, name="run.sh").findings
    errors = {f.rule for f in found if f.severity is Severity.ERROR}
    assert errors <= {"device-count", "heads-not-divisible"}
    assert "device-count" in errors
    assert any(f"but that has no {shows}" in f.message for f in found if f.severity is Severity.WARNING)
    said = {f.rule for f in preflight.check_text(script, name="run.sh", target="megatron@0.20.0").findings if f.severity is Severity.ERROR}
    assert said - {"device-count", "heads-not-divisible"}


@pytest.mark.parametrize(
    "more", ["--checkpoint-activations", "--activations-checkpoint-method uniform", "--tensor-model-paralel-size 2", "--rotary-base 500000.0"]
)
def test_a_slip_or_an_option_that_is_long_gone_shows_no_other_release(more: str) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"
    assert any(f.severity is Severity.ERROR for f in preflight.check_text(script, name="run.sh").findings)


def test_what_no_described_release_takes_is_an_error_beside_an_option_that_is_long_gone() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --checkpoint-activations --data-impl mmap\n"
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/old-checkpoint-activations"] is Severity.ERROR
    assert found["unknown-flag"] is Severity.WARNING


def test_a_choice_that_few_releases_have_says_the_release() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --tokenizer-type Llama3Tokenizer --tokenizer-model m\n"
    report = preflight.check_text(script, name="run.sh")
    assert str(report.jobs[0].target) == "megatron@0.8.0"
    assert "bad-choice" not in {f.rule for f in report.findings}


def test_an_option_of_an_earlier_release_says_which() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --no-query-key-layer-scaling --tokenizer-type MistralTokenizer"
    says = {f.rule: f.message for f in preflight.check_text(script, name="run.sh", target="megatron@0.20.0").findings}
    assert says["unknown-flag"].endswith("has no option --no-query-key-layer-scaling; megatron before 0.4 had it")
    assert says["bad-choice"].endswith("not 'MistralTokenizer'; megatron before 0.9 took it")


def test_what_every_described_release_refuses_is_refused_beside_an_option_of_a_fork_too() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --option-of-a-fork 3 --log-interval 0 --mtp-num-layers 0\n"
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["unknown-flag"] is Severity.WARNING
    assert found["megatron/log-interval-zero"] is Severity.ERROR


@pytest.mark.parametrize(("more", "severity"), [("--config model.yaml", Severity.WARNING), ("--log-throughput", Severity.ERROR)])
def test_an_option_that_nobody_knows_may_name_what_is_missing(more: str, severity: Severity) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {more}\n"
    found = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/required-argument"].severity is found["megatron/no-train-length"].severity is severity


def test_what_is_no_option_shows_no_fork() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --rotary-base 10000.0 --bf16\\\n--swiglu\n"
    found = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}
    assert "--bf16--swiglu" in found["unknown-flag"].message
    assert found["bad-value"].severity is Severity.ERROR
