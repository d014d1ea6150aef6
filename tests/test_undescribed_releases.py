"""Undescribed releases: only refusals by both neighbours are errors, and the summary states how a config was read."""

from __future__ import annotations

import pytest
from small_gpt import SIZES

import preflight
from preflight.lint.uncertain_facts import around
from preflight.report.source_excerpts_and_escapes import Look
from preflight.report.text import tell
from preflight.run.request import Target
from preflight.source.finding import Finding, Severity

KNOWN = (Target("a", "2.1.0"), Target("a", "1.5.0"), Target("a", "1.3.2"), Target("b", "9.0"))


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
    assert (
        found("--pipeline-model-parallel-layout Et*24L", "megatron@0.12.1")["unknown-flag"].severity is Severity.ERROR
    )
    assert "unknown-flag" not in found("--pipeline-model-parallel-layout Et*24L", "megatron@0.14.0")


def test_an_option_that_came_and_went_is_known_in_between() -> None:
    assert "unknown-flag" not in found("--legacy-tokenizer", "megatron@0.15.0")
    assert found("--legacy-tokenizer", "megatron@0.20.0")["unknown-flag"].severity is Severity.ERROR


def test_what_both_neighbours_refuse_is_an_error() -> None:
    assert found("--tensor-model-parallel-size 3", "megatron@0.15.0")["device-count"].severity is Severity.ERROR


def test_mindformers_between_two_releases() -> None:
    text = (
        "run_mode: train\nuse_parallel: True\nparallel: {parallel_mode: 1}\n"
        "parallel_config: {data_parallel: 1, model_parallel: 3}\nrunner_config: {epochs: 1, image_size: 224}\n"
    )

    def severities(target: str) -> dict[str, Severity | None]:
        return {f.rule: f.severity for f in preflight.check_text(text, target=target, world_size=8).findings}

    assert severities("mindformers@1.5.0")["unknown-key"] is Severity.ERROR
    assert severities("mindformers@1.4.0")["device-count"] is Severity.ERROR
    assert severities("mindformers@1.4.0").get("unknown-key") is not Severity.ERROR


def test_a_check_that_only_one_neighbour_makes_is_a_warning_that_names_the_other() -> None:
    text = (
        "run_mode: train\nuse_parallel: True\nparallel: {parallel_mode: 1}\nrunner_config: {epochs: 1}\n"
        "parallel_config: {context_parallel: 2, context_parallel_algo: hybrid_cp}\n"
    )

    def told(target: str) -> list[tuple[Severity | None, str]]:
        report = preflight.check_text(text, target=target, world_size=8)
        return [
            (f.severity, f.message.rpartition("; ")[2])
            for f in report.findings
            if f.rule == "mindformers/context-parallel-algorithm-old"
        ]

    assert [severity for severity, _ in told("mindformers@1.3.2")] == [Severity.ERROR]
    assert told("mindformers@1.4.0") == [
        (Severity.WARNING, "mindformers@1.5.0 accepts it, and 1.4.0 is not a known release")
    ]
    assert told("mindformers@1.5.0") == []


def test_the_summary_says_what_was_read_for_want_of_what() -> None:
    def summary(target: str) -> tuple[str, ...]:
        return tell(
            preflight.check_text(
                f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES}\n", name="run.sh", target=target
            ),
            Look(),
        ).targets

    assert summary("megatron@0.13.1") == ("megatron@0.13.0 (with the changes in 0.13.1)",)
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
    assert (
        found("--checkpoint-activations", "megatron@0.11.0")["megatron/old-checkpoint-activations"].severity
        is Severity.ERROR
    )


def test_a_rule_function_holds_in_the_releases_that_make_its_check() -> None:
    more = "--hybrid-override-pattern x"
    assert found(more, "megatron@0.17.0")["megatron/hybrid-pattern"].severity is Severity.ERROR
    assert "megatron/hybrid-pattern" not in found(more, "megatron@0.16.0")


def test_a_release_on_an_older_megatron_is_judged_by_the_checks_of_that() -> None:
    more = (
        "--rotary-base 10000.0 --tensor-model-parallel-size 3 --use-mcore-models "
        "--inference-batch-times-seqlen-threshold 512"
    )
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
