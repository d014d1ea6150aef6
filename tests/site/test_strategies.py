"""Files of strategies of MindSpore: whole, cut off, merged. What is expected is what its own code does with them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.mindspore_checkpoint import read_strategy

WRITTEN = base64.b64decode(
    "CAESFgoKTWF0TXVsLW9wMBIICAASBAgBCAISFgoKTWF0TXVsLW9wMRIICAASBAgBCAISFgoKTWF0TXVsLW9wMhIICAASBAgBCAIa"
    "LwoQbW9kZWwubGF5ZXJzLjAudxIbCgQIAggCEg0IAQj///////////8BKAAwADgAGi8KEG1vZGVsLmxheWVycy4xLncSGwoECAII"
    "AhINCAEI////////////ASgAMAA4ABovChBtb2RlbC5sYXllcnMuMi53EhsKBAgCCAISDQgBCP///////////wEoADAAOAA="
)
"""Three operators and three tensors of stage 0, written by `node_strategy_pb2` of MindSpore 2.10."""
WHOLE = (2, 26, 50, 74, 123, 172, 221)
"""The lengths at which its `ParseFromString` takes the file."""
TEXT = (
    b'{"current_stage": 1, "parallel_strategy_item": {"a": {"stage": 0}}, "parallel_layout_item": {"w": {"field": 0}}}'
)


def read(path: Path) -> str:
    return read_strategy(Eyes(), str(path))


def test_each_length_is_taken_as_by_the_real_reader(tmp_path: Path) -> None:
    path = tmp_path / "strategy.ckpt"
    taken = []
    for end in range(len(WRITTEN) + 1):
        path.write_bytes(WRITTEN[:end])
        taken += [] if read(path) else [end]
    assert tuple(taken) == WHOLE
    path.write_bytes(b"")
    assert read(path) == f"{path} is empty"
    path.write_bytes(WRITTEN[:-3])
    assert read(path) == f"{path} is cut off: it has 218 bytes, and its last entry needs more"


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "strategy.json"
    for end in range(len(TEXT) + 1):
        path.write_bytes(TEXT[:end])
        assert bool(read(path)) == (end < len(TEXT)), end


@pytest.mark.parametrize(
    "files, because",
    [
        ({"a.ckpt": WRITTEN}, ""),
        ({"a.json": TEXT, "b.json": TEXT}, ""),
        ({"a.ckpt": WRITTEN, "merged_ckpt_strategy.ckpt": b"", "notes.txt": b"", ".a.ckpt": b""}, ""),
        ({}, ""),
        ({"a.ckpt": WRITTEN, "b.json": TEXT}, "a.ckpt and b.json, and only files of one of the two formats are merged"),
        ({"a.ckpt": WRITTEN, "b.ckpt": b""}, "b.ckpt is empty"),
        ({"a.ckpt": WRITTEN[:123]}, ""),
        ({"a.ckpt": WRITTEN[:74]}, "a.ckpt has no parallel_layout_item"),
        ({"a.json": b"{}"}, "a.json has no parallel_strategy_item"),
    ],
)
def test_a_folder_is_merged(tmp_path: Path, files: dict[str, bytes], because: str) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    found = read(tmp_path)
    assert found.endswith(because) if because else not found, found


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"\x12\x00" * 20_001])
def test_what_is_not_understood_is_not_judged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "strategy.ckpt"
    path.write_bytes(data)
    with pytest.raises(Unread):
        read(path)
