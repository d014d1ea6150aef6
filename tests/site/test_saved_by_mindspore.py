"""Weights that MindSpore 2.10 and MindFormers' own savers have written: kind, whole or cut off, hidden size."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from preflight.job import NamedPath
from preflight.site.isolated_file_reading import Eyes
from preflight.site.mindformers_files import read_weights

ARCHIVE = Path(__file__).parent / "mindspore.tar.xz"
SOUND = {
    "plain.ckpt": ("mindspore-ckpt", 64),
    "crc.ckpt": ("mindspore-ckpt", 64),
    "with_step.ckpt": ("mindspore-ckpt", 64),
    "plain.safetensors": ("safetensors", 64),
    "ranks": ("mindspore-ranks", 0),
    "mindformers-1.8": ("mindformers", 64),
    "mindformers-1.8-two": ("mindformers", 64),
    "mindformers-2": ("mindformers", 64),
    "mindformers-2-two": ("mindformers", 64),
}
"""Kind and hidden size; those of two cards have the shapes in metadata.json."""


@pytest.fixture
def places(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            assert member.isdir() or (member.isfile() and ".." not in member.name)
            archive.extract(member, tmp_path)
    return tmp_path


def read(path: Path) -> NamedPath:
    return read_weights(Eyes(), str(path), "load_checkpoint", ())


@pytest.mark.parametrize("name", SOUND)
def test_sound_ones_are_read(places: Path, name: str) -> None:
    found = read(places / name)
    assert (found.fault, found.because, found.kind, found.width) == ("", "", *SOUND[name])


def test_an_encrypted_one_is_not_judged(places: Path) -> None:
    assert read(places / "encrypted.ckpt").fault == "unread"


@pytest.mark.parametrize("name", SOUND)
def test_without_its_end_each_is_cut_off(places: Path, name: str) -> None:
    whole = places / name
    for path in [whole] if whole.is_file() else sorted(whole.rglob("*")):
        if path.suffix in (".ckpt", ".safetensors"):
            data = path.read_bytes()
            for end in (len(data) // 2, len(data) - 40 if name == "crc.ckpt" else len(data) - 1):
                path.write_bytes(data[:end])
                assert read(whole).fault == "cut-off", (path.name, end)
            path.write_bytes(data)
    assert read(whole).fault == ""


@pytest.mark.parametrize("name", [name for name in SOUND if name.startswith("mindformers")])
def test_every_file_of_an_iteration_counts(places: Path, name: str) -> None:
    whole = places / name
    for path in sorted((whole / "iteration_00000100").iterdir()):
        place = Path(shutil.copytree(whole, places / "copy"))
        (place / "iteration_00000100" / path.name).unlink()
        fault = read(place).fault
        named = path.name == "common.json" or (path.suffix == ".safetensors" and name.endswith("two"))
        assert fault == ("cut-off" if named else ""), path.name
        shutil.rmtree(place)
