"""The vocabulary of a run with a tokenizer next to it: read from plain files, assumed, never opened by the gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight.dialects.tokenizer_vocabulary import vocabulary
from preflight.run.value import Origin

SCRIPT = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --bf16 "
    "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --lr 1e-4 "
    "--train-iters 10 --tokenizer-type HuggingFaceTokenizer --tokenizer-model {name}\n"
)


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def sentencepiece(pieces: int) -> bytes:
    """A model with pieces, and the specification of its trainer behind them."""
    piece = b"\x0a" + varint(3) + b"\x0a\x01a"
    return piece * pieces + b"\x12" + varint(200) + b"\x0a" * 200


TOKENIZER = {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2}, {"id": 9}]}


@pytest.mark.parametrize(
    ("files", "name", "size"),
    [
        ({"config.json": json.dumps({"vocab_size": 64000}).encode()}, "", 64000),
        ({"config.json": json.dumps({"text_config": {"vocab_size": 32064}}).encode()}, "", 32064),
        ({"config.json": b"{}", "tokenizer.model": sentencepiece(300)}, "", 300),
        ({"tokenizer.json": json.dumps(TOKENIZER).encode()}, "", 10),
        ({"own.model": sentencepiece(7)}, "/own.model", 7),
        ({"config.json": b"[" * 100_000}, "", None),
        ({"config.json": json.dumps({"vocab_size": True}).encode()}, "", None),
        ({"tokenizer.model": sentencepiece(300)[:-5]}, "", None),
        ({"tokenizer.model": b"\xff" * 50}, "", None),
        ({}, "", None),
    ],
)
def test_files_say_how_large_it_is(files, name, size):
    found = vocabulary(f"folder{name}", lambda path: files.get(path.removeprefix("folder/")))
    assert (found[0] if found else None) == size


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "config.json").write_text('{"vocab_size": 60000}')
    (tmp_path / "run.sh").write_text(SCRIPT.format(name="tokens"))
    return tmp_path / "run.sh"


def test_a_folder_beside_a_script_is_assumed(script: Path) -> None:
    job = preflight.check(script, target="megatron@0.20.0").jobs[0]
    vocab = job.plan.model.vocab
    assert (vocab.raw, vocab.origin) == (60032, Origin.ASSUMED)
    assert [said.rpartition("/")[2] for said in job.memory.assumed] == ["config.json"]


def test_isolated_opens_none(real_cli: Cli, script: Path) -> None:
    said = "the vocabulary size is in the tokenizer's files"
    assert said in real_cli("memory", str(script), "--isolated").out
    assert said not in real_cli("memory", str(script)).out


def test_what_is_typed_counts_and_nothing_is_opened(script: Path) -> None:
    script.write_text(SCRIPT.format(name="tokens --vocab-size 100"))
    job = preflight.check(script, target="megatron@0.20.0").jobs[0]
    assert job.plan.model.vocab.raw == 128
