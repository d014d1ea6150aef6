"""Indexes that Megatron's IndexedDatasetBuilder has written (core 0.19), and what its GPTDataset has drawn from them:
tokens, epochs and samples of each split, single and blended."""

from __future__ import annotations

import json
import shlex
import tarfile
from pathlib import Path

import pytest
from harness import Cli

SPLITS = ("training", "validation", "test")
COMMAND = (
    "torchrun --nproc-per-node 1 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
    "--micro-batch-size 1 --vocab-size 100 --tokenizer-type NullTokenizer --lr 1e-4 "
)


@pytest.mark.parametrize("name", ["indexes", pytest.param("indexes-more", marks=pytest.mark.slow)])
def test_tokens_epochs_and_samples_are_those_of_megatron(
    name: str, real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with tarfile.open(Path(__file__).parent / f"{name}.tar.xz") as archive:
        for member in archive:
            assert member.isfile() and "/" not in member.name
            archive.extract(member, tmp_path)
    cases = json.loads((tmp_path / "cases.json").read_text(encoding="utf-8"))
    for at, case in enumerate(cases):
        for name, size in case["bin"].items():
            with (tmp_path / name).open("wb") as stream:
                stream.truncate(size)
        sizes = f"--seq-length {case['seq']} --max-position-embeddings {case['seq']} --global-batch-size {case['gbs']} "
        length = (
            f"--train-iters {case['iters']} --eval-iters {case['eval_iters']} --eval-interval {case['eval_interval']} "
        )
        data = (
            f"--split {case['split']} --data-path {shlex.join('./' + w if '-a' in w else w for w in case['words'])}\n"
        )
        (tmp_path / f"{at}.sh").write_text(COMMAND + sizes + length + data)
    scripts = [f"{at}.sh" for at in range(len(cases))]
    report = json.loads(real_cli("check", *scripts, "--site", "--target", "megatron@0.19.0", "-f", "json").out)
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    died = {one["path"] for one in errors if one["rule"] != "data-runs-out"}  # the builder of datasets lets it pass
    for script, case, run in zip(scripts, cases, report["runs"], strict=True):
        assert (script in died) == case["dies"], script
        drawn = [
            [
                one["name"].removeprefix("./"),
                SPLITS.index(one["split"]),
                *(one[key] for key in ("tokens", "epochs", "samples", "length")),
            ]
            for one in run["site"]["draws"]
            if one["epochs"]
        ]
        kept = len(case["drawn"][0]) if case["drawn"] else 0
        assert case["dies"] or sorted(one[:kept] for one in drawn) == sorted(case["drawn"]), script


def test_one_that_is_short_or_longer_is_known(real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real index without its end, and its tokens without theirs."""
    monkeypatch.chdir(tmp_path)
    with tarfile.open(Path(__file__).parent / "indexes.tar.xz") as archive:
        archive.extract("0-a0.idx", tmp_path)
        size = json.load(archive.extractfile("cases.json"))[0]["bin"]["0-a0.bin"]  # type: ignore[arg-type]
    whole = (tmp_path / "0-a0.idx").read_bytes()
    words = "--seq-length 16 --max-position-embeddings 16 --global-batch-size 1 --train-iters 2 --split 100,0,0 "
    (tmp_path / "run.sh").write_text(f"{COMMAND} {words} --data-path ./0-a0\n")
    for index, tokens, rule in (
        (whole, size, ""),
        (whole, size - 1, "data-cut-off"),
        (whole[:-1], size, "data-index-broken"),
        (b"NOINDEX!!" + whole[9:], size, "data-index-broken"),
        (whole[:9] + b"\2" + whole[10:], size, "data-index-broken"),
        (whole[:17] + b"\x63" + whole[18:], size, "data-index-broken"),
        (whole + bytes(int.from_bytes(whole[18:26], "little")), size, ""),  # modes of multimodal data
    ):
        (tmp_path / "0-a0.idx").write_bytes(index)
        (tmp_path / "0-a0.bin").write_bytes(bytes(tokens))
        report = json.loads(real_cli("check", "run.sh", "--site", "--target", "megatron@0.19.0", "-f", "json").out)
        found = {one["rule"] for one in report["findings"] if one["severity"] == "error"}
        assert found == ({rule} if rule else set())
