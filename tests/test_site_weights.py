"""Weights of MindSpore and MindFormers, written byte by byte in their formats: kind, whole or cut off, hidden size."""

from __future__ import annotations

import contextlib
import json
import os
import random
from pathlib import Path

import pytest

from preflight.job import NamedPath
from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.mindformers_files import read_weights
from preflight.site.mindspore_checkpoint import read_ckpt

TENSORS = {"model.tok_embeddings.embedding_weight": (300, 64), "model.norm_out.weight": (64,), "step_num": (1,)}


def number(value: int) -> bytes:
    """Seven bits a byte, as protobuf writes numbers."""
    more = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(byte | 0x80 for byte in more[:-1]), more[-1]])


def field(key: int, data: bytes) -> bytes:
    """A field of bytes."""
    return bytes([key]) + number(len(data)) + data


def ckpt(tensors: dict[str, tuple[int, ...]] = TENSORS) -> bytes:
    """A checkpoint by checkpoint.proto of MindSpore: values of tag, shape, type and content."""
    found = b""
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        dims = b"".join(b"\x08" + number(size) for size in shape)
        tensor = dims + field(0x12, b"Float16") + field(0x1A, bytes(2 * count))
        found += field(0x0A, field(0x0A, name.encode()) + field(0x12, tensor))
    return found


def safetensors(tensors: dict[str, tuple[int, int]]) -> bytes:
    """A file of safetensors of single bytes."""
    head, at = {}, 0
    for name, (rows, columns) in tensors.items():
        head[name] = {"dtype": "U8", "shape": [rows, columns], "data_offsets": [at, at + rows * columns]}
        at += rows * columns
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


def weights(path: Path) -> NamedPath:
    return read_weights(Eyes(), str(path), "load_checkpoint", ())


def test_a_file_of_mindspore_is_whole_or_cut_off(tmp_path: Path) -> None:
    path, whole = tmp_path / "x.ckpt", ckpt()
    path.write_bytes(whole)
    assert read_ckpt(Eyes(), str(path)).tensors == TENSORS
    assert (weights(path).kind, weights(path).fault, weights(path).width) == ("mindspore-ckpt", "", 64)
    path.write_bytes(whole + b"crc_num" + bytes(10))
    assert weights(path).fault == ""
    for size in (len(whole) - 1, len(whole) // 2, 0):
        path.write_bytes(whole[:size])
        assert weights(path).fault == "cut-off", size


@pytest.mark.parametrize("head", [b"PK\3\4", b"\x80\x02}q\0.", b"\n\n\n\n\n\n", bytes(40), b"\x9f" * 80])
def test_another_format_is_not_judged(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "x.ckpt").write_bytes(head * 4)
    assert weights(tmp_path / "x.ckpt").fault == "unread"


def ranks(folder: Path, steps: tuple[int, ...] = (20, 20), *, cut: int = 0) -> Path:
    """A folder by ranks, as callbacks of MindFormers 1.x write it."""
    for rank, step in enumerate(steps):
        inside = folder / f"rank_{rank}"
        inside.mkdir(parents=True)
        file = f"llama_rank_{rank}-1_{step}.ckpt"
        (inside / file).write_bytes(ckpt()[: -cut or None] if rank else ckpt())
        (inside / "meta.json").write_text(json.dumps({"last_epoch": 1, "last_step": step, "last_ckpt_file": file}))
    return folder


def test_a_folder_by_ranks(tmp_path: Path) -> None:
    assert weights(ranks(tmp_path / "a"))[3:] == ("", "", "mindspore-ranks", 0)
    assert weights(ranks(tmp_path / "b", cut=1)).fault == "cut-off"
    assert "different steps" in weights(ranks(tmp_path / "c", (20, 30), cut=1)).because
    newer = ranks(tmp_path / "d") / "rank_0" / "llama_rank_0-1_40.ckpt"
    newer.write_bytes(ckpt()[:-1])
    os.utime(newer, (2e9, 2e9))
    assert weights(tmp_path / "d").fault == "unread"


def iteration(folder: Path, *, shape: tuple[int, int] = (10, 8)) -> Path:
    """A checkpoint of MindFormers 1.8: the table of embeddings in two files, described by metadata.json."""
    inside = folder / "iteration_00000020"
    inside.mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text("20")
    (inside / "common.json").write_text(json.dumps({"step_num": 20, "global_step": 20}))
    name, files = "embedding.word_embeddings.weight", ["m-model-0000000-0000002.safetensors"]
    files.append("m-model-0000001-0000002.safetensors")
    stored = {f"({name!r}, ({at}, 0))": [{"file_name": file, "storage_rank": at}] for at, file in enumerate(files)}
    data = {"state_dict_metadata": {name: {"global_shape": shape}}, "storage_data": stored}
    (inside / "metadata.json").write_text(json.dumps(data))
    for file in files:
        (inside / file).write_bytes(safetensors({name: (shape[0] // 2, shape[1])}))
    return folder


def test_an_iteration_of_json_and_safetensors(tmp_path: Path) -> None:
    assert weights(iteration(tmp_path / "a"))[3:] == ("", "", "mindformers", 8)
    part = iteration(tmp_path / "b") / "iteration_00000020/m-model-0000001-0000002.safetensors"
    part.write_bytes(part.read_bytes()[:-1])
    assert weights(tmp_path / "b").fault == "cut-off"
    part.unlink()
    assert weights(tmp_path / "b").because.endswith("m-model-0000001-0000002.safetensors is missing")
    (tmp_path / "a/iteration_00000020/common.json").unlink()
    assert weights(tmp_path / "a").fault == "cut-off"


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    generator, whole = random.Random(38), ckpt({"a.b": (3, 4), "c": (2,)})
    path = tmp_path / "x.ckpt"
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(data))
            data[at : at + generator.randint(0, 3)] = generator.randbytes(generator.randint(0, 4))
        path.write_bytes(bytes(data))
        with contextlib.suppress(Unread):
            read_ckpt(Eyes(), str(path))
