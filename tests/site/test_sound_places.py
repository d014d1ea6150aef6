"""Places that look faulty on this machine, or that another program reads: none of them is an error."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
from harness import Cli

from preflight.site.isolated_file_reading import Eyes
from preflight.site.megatron_checkpoint import read_checkpoint
from preflight.site.mindformers_files import read_weights
from preflight.site.path_existence import read_path, read_save_folder

SIZES = (
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
    "--micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16 --split 100,0,0"
)
NULL = "--tokenizer-type NullTokenizer --vocab-size 1000"
HERE = {"data-missing", "path-missing", "loaded-checkpoint-missing", "loaded-checkpoint-broken", "save-folder-closed"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, a tokenizer, weights and links."""
    for folder in ("data", "tokenizer", "weights", "mounted", "images", "here/data"):
        (tmp_path / folder).mkdir(parents=True)
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 100, 101)
    numbers = struct.pack("<100i", *[200] * 100) + struct.pack("<100q", *range(0, 40_000, 400))
    (tmp_path / "data/a.idx").write_bytes(head + numbers + struct.pack("<101q", *range(101)))
    (tmp_path / "data/a.bin").write_bytes(bytes(40_000))
    (tmp_path / "data/rows.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "images/one.jpg").write_bytes(b"")
    (tmp_path / "tokenizer/qwen.tiktoken").write_text("")
    (tmp_path / "tokenizer/config.json").write_text("{}")
    (tmp_path / "weights/config.json").write_text("{}")
    (tmp_path / "weights/model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    for end in ("idx", "bin"):
        (tmp_path / f"data/elsewhere.{end}").symlink_to(f"/own_disk_of_a_node/a.{end}")
        (tmp_path / f"data/linked.{end}").symlink_to(f"a.{end}")
    (tmp_path / "folder").symlink_to("/own_disk_of_a_node/data")
    (tmp_path / "other").symlink_to("data")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


SOUND = {
    "a link to a disk of the node": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/data/elsewhere",
    "a folder that leads to a disk of the node": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/folder/a",
    "a link": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/data/linked",
    "a folder that is a link": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/other/a",
    "a place at which nothing is mounted": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/mounted/a --save @/mounted/x",
    "another folder to start in": f"pretrain_gpt.py {SIZES} {NULL} --data-path data/a",
    "a blend with weights": f"pretrain_gpt.py {SIZES} {NULL} --data-path 0.5 @/data/a 0.5 @/data/linked",
    "rows that a fork reads": f"pretrain_qwen.py {SIZES} --train-data-path @/data/rows.jsonl --dataset JSON-SFT",
    "a data set of Energon": f"train.py {SIZES} {NULL} --data-path @/data/rows.jsonl --dataloader-type external",
    "images": f"pretrain_vision_classify.py {SIZES} --data-path @/images @/images",
    "a vocabulary that is not read": f"pretrain_gpt.py {SIZES} {NULL} --data-path @/data/a --vocab-file @/data/no.json",
    "a tokenizer with its own code": f"pretrain_gpt.py {SIZES} --data-path @/data/a --trust-remote-code "
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model @/tokenizer",
    "weights that are converted": f"pretrain_gpt.py --use-mcore-models {SIZES} --data-path @/data/a --load @/weights "
    "--tokenizer-type PretrainedFromHF --tokenizer-name-or-path @/tokenizer --enable-hf2mg-convert",
}


def test_no_sound_place_is_an_error(real_cli: Cli, place: Path) -> None:
    for at, words in enumerate(SOUND.values()):
        (place / f"{at}.sh").write_text(f"torchrun --nproc-per-node 8 {words.replace('@', str(place))}\n")
    scripts = [str(place / f"{at}.sh") for at in range(len(SOUND))]
    report = json.loads(real_cli("check", *scripts, "--site", "-f", "json").out)
    names = list(SOUND)
    wrong = [(names[int(Path(one["path"]).stem)], one["message"]) for one in report["findings"] if one["rule"] in HERE]
    assert not wrong


def test_what_upstreams_program_cannot_read_is_an_error(real_cli: Cli, place: Path) -> None:
    (place / "rows.sh").write_text(f"torchrun pretrain_gpt.py {SIZES} {NULL} --data-path {place}/data/rows.jsonl\n")
    (place / "none.sh").write_text(f"torchrun pretrain_qwen.py {SIZES} {NULL} --data-path {place}/data/none\n")
    report = json.loads(real_cli("check", str(place / "rows.sh"), str(place / "none.sh"), "--site", "-f", "json").out)
    found = [Path(one["path"]).stem for one in report["findings"] if one["rule"] == "data-missing"]
    assert sorted(found) == ["none", "rows"]


def test_a_relative_name_starts_where_the_script_goes(real_cli: Cli, place: Path) -> None:
    (place / "here/data/other.idx").write_bytes(b"")
    run = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {NULL} --data-path data/a\n"
    for folder, missing in ((place, 0), (place / "here", 1), ("$WORK", 0)):
        (place / "here/run.sh").write_text(f"cd {folder}\n{run}")
        report = json.loads(real_cli("check", "run.sh", "--site", "-f", "json").out)
        assert sum(one["rule"] == "data-missing" for one in report["findings"]) == missing, folder


def test_a_folder_that_is_mounted_read_only_here_may_be_open_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert read_save_folder(Eyes(), str(place / "data"), "save", ()).fault == "no-right"
    state = os.statvfs(place)
    closed = type("State", (), {"f_flag": state.f_flag | os.ST_RDONLY})
    monkeypatch.setattr(os, "statvfs", lambda _: closed)
    assert read_save_folder(Eyes(), str(place / "data"), "save", ()).fault == "unread"


def test_a_folder_with_no_file_of_a_tokenizer_is_told(place: Path) -> None:
    wanted = ("tokenizer.json",)
    for folder, fault in (("weights", "no-files"), ("tokenizer", "")):
        assert read_path(Eyes(), str(place / folder), "tokenizer_model", (), wanted).fault == fault


def test_an_index_of_other_weights_is_not_judged(place: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (place / "weights/model.safetensors.index.json").write_text(json.dumps(index))
    assert read_weights(Eyes(), str(place / "weights"), "load_checkpoint", ()).fault == "unread"
    (place / "weights/model.safetensors").unlink()
    assert read_weights(Eyes(), str(place / "weights"), "load_checkpoint", ()).fault == "cut-off"


def test_a_checkpoint_without_a_tracker_yields_to_the_pretrained_one(place: Path) -> None:
    from preflight.site.megatron_checkpoint import first_checkpoint

    for name in ("load", "pretrained"):
        (place / name / "iter_0000500").mkdir(parents=True)
    (place / "pretrained/latest_checkpointed_iteration.txt").write_text("500")
    names = (("load", str(place / "load")), ("pretrained_checkpoint", str(place / "pretrained")))
    found = first_checkpoint(Eyes(), names, (), 500, False, None)
    assert found.argument == "pretrained_checkpoint"
    assert read_checkpoint(Eyes(), str(place / "load"), "load", (), 500, False).fault == "kind"
