"""The software eras of a run: a stated container selects one; otherwise the range covers all of them."""

from __future__ import annotations

import json

import pytest

from preflight import schemas
from preflight.run.cluster import devices
from preflight.steptime.error_ranges import DENSE, LATENT, era_ends, era_factor, eras

SCRIPT = (
    "torchrun --nnodes 32 --nproc_per_node 4 pretrain_gpt.py --num-layers 80 --hidden-size 8192"
    " --num-attention-heads 64 --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1"
    " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel"
    " --global-batch-size 128 --train-iters 10 --lr 1e-4 --bf16 --vocab-size 50257 --tokenizer-type NullTokenizer"
)
SINKS = (
    " --softmax-type learnable --num-experts 64 --moe-router-topk 4 --moe-ffn-hidden-size 1024 --moe-grouped-gemm"
    " --expert-model-parallel-size 4 --expert-tensor-parallel-size 1 --disable-bias-linear"
)


def test_the_file_says_how_it_is_made_and_each_era_where_it_is_from():
    assert "benchmarks/step_ranges.py" in schemas.read("step_time_eras")["command"]
    names = {device.name for device in devices()}
    for era in eras():
        assert era.device in names and era.runs >= 2 and era.source and era.since < era.until
        assert abs(era.factor - 1) >= 0.04


def test_a_container_between_two_eras_is_in_one_and_an_unknown_device_in_none():
    gb200 = next(device for device in devices() if device.name == "GB200")
    early, late = (era_factor(gb200, DENSE, tag) for tag in (25.04, 26.02))
    assert early == pytest.approx(1.24, abs=0.05) and late == 1.0
    assert era_ends(gb200, LATENT)[0] < 1.0 < era_ends(gb200, LATENT)[1]
    assert era_ends(gb200._replace(name="acme"), DENSE) == (1.0, 1.0)


def shown(real_cli, *words: str) -> dict[str, object]:
    ran = real_cli("show", "run.sh", "--device", "gb200", "-f", "json", *words)
    return json.loads(ran.out)["runs"][0]["step_time"]


def test_settings_state_the_software_and_without_it_the_range_covers_its_eras(tmp_path, real_cli):
    (tmp_path / "run.sh").write_text(SCRIPT + "\n")
    unknown = shown(real_cli)
    (tmp_path / "preflight.toml").write_text('[cluster]\nsoftware = "25.04"\n')
    early = shown(real_cli)
    (tmp_path / "preflight.toml").write_text('[cluster]\nsoftware = "26.06"\n')
    late = shown(real_cli)
    assert early["seconds"] / unknown["seconds"] == pytest.approx(1.24, abs=0.05)
    assert late["seconds"] == unknown["seconds"] and late["high"] < unknown["high"]
    assert any("software of the container" in words for words in early["assumed"])
    assert "software under [cluster]" in unknown["because"] and "software" not in late["because"]
    assert unknown["high"] / unknown["seconds"] == pytest.approx(early["high"] / unknown["seconds"])


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("srun --container-image nvcr.io/nvidia/nemo:25.04.01 ", True),
        ("srun --container-image=nvcr.io#nvidia/pytorch:25.04-py3 ", True),
        ("IMAGE=nvcr.io/nvidia/pytorch:25.04-py3\nOTHER=nvcr.io/nvidia/pytorch:26.02-py3\nsrun ", False),
        ("#SBATCH --container-image=nvcr.io/nvidia/nemo:25.04\nsrun ", True),
        ("# tested with nvcr.io/nvidia/nemo:25.04\nsrun ", False),
        ("srun --container-image registry.local/our/image:25.04 ", False),
        ("srun --container-image nvcr.io/nvidia/pytorch:latest ", False),
    ],
)
def test_an_image_that_the_run_names_states_it(tmp_path, real_cli, line: str, known: bool):
    (tmp_path / "run.sh").write_text(SCRIPT + "\n")
    plain = shown(real_cli)
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes 32\n{line}{SCRIPT}\n")
    assert (shown(real_cli)["seconds"] > 1.1 * plain["seconds"]) is known


def test_attention_sinks_widen_the_range_until_their_container_is_stated(tmp_path, real_cli):
    (tmp_path / "run.sh").write_text(SCRIPT + SINKS + "\n")
    unknown = shown(real_cli)
    assert any("attention sinks" in words for words in unknown["assumed"])
    (tmp_path / "preflight.toml").write_text('[cluster]\nsoftware = "26.06"\n')
    late = shown(real_cli)
    assert late["seconds"] > 1.3 * unknown["seconds"] and late["high"] < unknown["high"]


@pytest.mark.parametrize("word", ["2025", "25.13", "25.4", "newest"])
def test_what_is_no_container_is_refused(tmp_path, real_cli, word: str):
    (tmp_path / "run.sh").write_text(SCRIPT + "\n")
    (tmp_path / "preflight.toml").write_text(f'[cluster]\nsoftware = "{word}"\n')
    assert real_cli("show", "run.sh", "--device", "gb200").code == 2
