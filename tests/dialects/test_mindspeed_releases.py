"""Stated releases of MindSpeed and MindSpeed-LLM are read as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import preflight
from preflight.dialects.megatron.options import table
from preflight.run.version_ranges import matches

RELEASES = ("2.2.0", "2.3.0", "26.0.0", "26.1.0")
SIZES = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 1 --train-iters 9 --lr 1e-4"
)
MORE = "--global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 1000 --bf16 --transformer-impl local"


def run(more: str, target: str) -> preflight.Report:
    return preflight.check_command(
        ["pretrain_gpt.py", *f"{SIZES} {MORE} {more}".split()],
        world_size=8,
        target=target,
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )


def errors(more: str, target: str) -> dict[str, str]:
    return {f.rule: f.message for f in run(more, target).findings if f.severity is preflight.Severity.ERROR}


@pytest.mark.parametrize("framework", ["mindspeed", "mindspeed-llm"])
def test_what_earlier_releases_have_is_what_their_tables_say(framework: str) -> None:
    text = (Path(__file__).parents[2] / "schemas" / "retired_options.json").read_text(encoding="utf-8")
    said = json.loads(text)[framework]["options"]
    last = {option: at for at, release in enumerate(RELEASES) for option in table(framework, release).options}
    gone = {option: RELEASES[at + 1].rpartition(".")[0] for option, at in last.items() if at < len(RELEASES) - 1}
    assert gone.items() <= said.items()
    assert {option for option, release in said.items() if matches(release, ">2.2")} - {"--dist-train"} == gone.keys()


@pytest.mark.parametrize(
    ("option", "first", "last"),
    [
        ("--use-ascend-mc2", "2.2.0", "26.1.0"),
        ("--no-pad-to-seq-lengths", "2.3.0", "26.1.0"),
        ("--enable-mla-absorb", "26.0.0", "26.1.0"),
        ("--enable-mhc", "26.1.0", "26.1.0"),
        ("--qlora", "2.2.0", "26.0.0"),
        ("--mtp-after-norm", "2.2.0", "2.3.0"),
        ("--simpo-beta", "", ""),
    ],
)
def test_a_stated_release_has_its_own_options(option: str, first: str, last: str) -> None:
    for release in RELEASES:
        known = bool(first) and matches(release, f">={first},<={last}")
        assert ("unknown-flag" in errors(option, f"mindspeed-llm@{release}")) is not known, release


def test_an_option_that_came_or_went_says_where_it_is() -> None:
    assert errors("--no-pad-to-seq-lengths", "mindspeed-llm@2.2.0")["unknown-flag"].endswith(
        "; mindspeed-llm 2.3.0 and later has it"
    )
    assert errors("--enable-mhc", "mindspeed-llm@2.2.0")["unknown-flag"].endswith(
        "; mindspeed-llm 26.1.0 and later has it"
    )
    assert errors("--mtp-after-norm", "mindspeed-llm@26.0.0")["unknown-flag"].endswith(
        "; mindspeed-llm 2.2.0 to 2.3.0 has it"
    )
    assert errors("--muon-momentum 0.9", "mindspeed@26.0.0")["unknown-flag"].endswith(
        "; megatron 0.16.0 and later, mindspeed 26.1.0 and later and mindspeed-llm 26.1.0 and later have it"
    )


@pytest.mark.parametrize(
    ("more", "first"),
    [
        ("--context-parallel-size 2 --context-parallel-algo kvallgather_cp_algo", "26.0.0"),
        ("--optimizer muon", "26.1.0"),
        ("--stage simpo", ""),
    ],
)
def test_a_stated_release_has_its_own_choices(more: str, first: str) -> None:
    for release in RELEASES:
        known = matches(release, f">={first}") if first else release == "2.2.0"
        assert ("bad-choice" in errors(more, f"mindspeed-llm@{release}")) is not known, release


@pytest.mark.parametrize(
    ("more", "framework", "rule", "refusing"),
    [
        (
            "--use-ascend-mc2 --tensor-model-parallel-size 2",
            "mindspeed-llm",
            "mindspeed/mc2-sequence-parallel",
            RELEASES[2:],
        ),
        (
            "--use-ascend-coc --transformer-impl transformer_engine",
            "mindspeed",
            "mindspeed/coc-transformer-engine",
            RELEASES[2:],
        ),
        ("--swap-optimizer", "mindspeed-llm", "mindspeed/swap-optimizer-distributed", RELEASES[2:]),
        ("--moe-zero-memory level0 --num-experts 8", "mindspeed-llm", "mindspeed/zero-memory-overlap", RELEASES[1:]),
        ("--enable-high-availability", "mindspeed-llm", "mindspeed-llm/availability-checkpoint-format", RELEASES[3:]),
        (
            "--num-layer-list 4,4 --pipeline-model-parallel-size 4",
            "mindspeed-llm",
            "mindspeed-llm/num-layer-list-sum",
            RELEASES,
        ),
        (
            "--noop-layers 6,7 --lora-target-modules linear_qkv --pipeline-model-parallel-size 4",
            "mindspeed-llm",
            "mindspeed-llm/lora-empty-stage",
            RELEASES[2:],
        ),
        (
            "--mtp-num-layers 1 --context-parallel-size 2 --position-embedding-type rope",
            "mindspeed-llm",
            "mindspeed-llm/mtp-context-parallel",
            RELEASES[:2],
        ),
    ],
)
def test_a_check_is_that_of_the_releases_that_make_it(
    more: str, framework: str, rule: str, refusing: tuple[str, ...]
) -> None:
    assert tuple(release for release in RELEASES if rule in errors(more, f"{framework}@{release}")) == refusing


def test_disaggregated_training_makes_up_for_missing_ranks_since_26_1() -> None:
    more = "--layerwise-disaggregated-training --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4"
    assert "device-count" in errors(more, "mindspeed-llm@26.0.0")
    assert "device-count" not in errors(more, "mindspeed-llm@26.1.0")


def test_what_a_release_changes_silently_is_its_own() -> None:
    names = ("moe_router_topk_scaling_factor", "variable_seq_lengths", "shape_order")
    more = (
        "--num-experts 8 --routed-scaling-factor 2.5 --topk-group 4 --n-group 8 --variable-seq-lengths "
        "--reset-position-ids"
    )

    def after(release: str) -> tuple[object, ...]:
        arguments = run(more, f"mindspeed-llm@{release}").jobs[0].arguments
        return tuple(arguments.get(name).raw for name in names)

    assert after("2.2.0") == (4, True, "TND")
    assert after("2.3.0") == (4, False, "SBH")
    assert after("26.0.0") == after("26.1.0") == (2.5, False, "SBH")


def test_the_branch_of_a_release_may_have_renamed_an_option_of_its_tag() -> None:
    assert not {"unknown-flag"} & errors("--mg-cache-dir x", "mindspeed-llm@2.3.0").keys()
    assert not {"unknown-flag"} & errors("--mg-save-dir x", "mindspeed-llm@2.3.0").keys()


def test_an_option_that_went_and_came_back_is_said_to_be_in_both() -> None:
    assert errors("--reward-tokens good", "mindspeed-llm@2.2.0")["unknown-flag"] == (
        "mindspeed-llm 2.2.0 has no option --reward-tokens; mindspeed-llm 2.0.0 to 2.1.0 and mindspeed-llm 2.3.0 and "
        "later have it"
    )
