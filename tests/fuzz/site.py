"""The target for the files of a job: indexes, pickles, zips, checkpoints, weights, inventories. Files are
bytes in memory, and whatever a reader opens, imports, starts or resolves by name is a find."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pickle
import stat
import sys
import zipfile
from collections.abc import Callable
from os import stat_result

from preflight.job import Opened
from preflight.site.data_index import read_data
from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.megatron_checkpoint import read_checkpoint
from preflight.site.mindformers_files import read_weights
from preflight.site.packages_and_nodes import nodes
from preflight.site.pickles import loaded
from preflight.site.torch_zip import saved, whole

from .choices import Choices

FORBIDDEN = ("open", "import", "exec", "compile", "os.", "subprocess.", "socket.", "ctypes.", "pickle.find_class")
_watched = {"hook": False, "on": False}


def _watch(event: str, values: tuple[object, ...]) -> None:
    if _watched["on"] and event.startswith(FORBIDDEN):
        _watched["on"] = False
        raise AssertionError(f"a reader does {event}: {values!r}"[:200])


class Memory(Eyes):
    """Files that are texts of bytes, by their paths."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files = files
        self.folders = {path[:at] for path in files for at, sign in enumerate(path) if sign == "/" and at}

    def status(self, path: str) -> stat_result | None:
        if path in self.folders or path in self.files:
            kind = stat.S_IFDIR if path in self.folders else stat.S_IFREG
            return stat_result((kind, 0, 0, 1, 0, 0, len(self.files.get(path, b"")), 0, 0, 0))
        return None

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        if path not in self.files:
            raise Unread(f"{path} does not exist")
        self.opened[path, "read"] = Opened(path, "read")
        assert start >= 0, "a reader asks for bytes before a file"
        return self.files[path][start : None if size is None else start + max(size, 0)]

    def is_empty(self, path: str) -> bool:
        return not self.listed(path)

    def listed(self, path: str, most: int = 4096) -> tuple[str, ...]:
        return tuple(
            sorted({name[len(path) + 1 :].split("/")[0] for name in self.files if name.startswith(path + "/")})
        )


class Metadata:
    """A name in a pickle."""


class MetadataIndex(Metadata):
    """A name in a pickle."""


def _made(kind: type[Metadata] = Metadata, **fields: object) -> Metadata:
    found = kind()
    found.__dict__.update(fields)
    return found


class _Calls:
    """Runs code if it is unpickled in the usual way."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return print, ("resolved",)


def _zip(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/data.pkl", data)
    return stream.getvalue()


STATE = {"args": argparse.Namespace(num_layers=2, a=(1, "b", 2.5)), "iteration": 7, "content_metadata": {"a": "b"}}
SHARD = _zip(pickle.dumps([STATE], 2))
STORED = {
    _made(MetadataIndex, fqn="common_state/shard_0_1", offset=None): _made(
        relative_path="__0_0.distcp", offset=0, length=len(SHARD)
    )
}
PICKLES = tuple(
    pickle.dumps(value, protocol)
    for value in (
        STATE,
        _Calls(),
        {"args": _Calls()},
        _made(storage_data=STORED),
        {(1, 2), (3,)},
        [1 << 70, -1.5, b"x"],
    )
    for protocol in range(6)
)
METADATA = pickle.dumps(_made(storage_data=STORED), 2)
INDEX = b"MMIDIDX\0\0" + b"\1" + bytes(7) + b"\x08\2" + bytes(7) + b"\3" + bytes(7)
INDEX += b"\5\0\0\0\7\0\0\0" + bytes(8) + b"\x0a" + bytes(7) + bytes(8) + b"\1" + bytes(7) + b"\2" + bytes(7)
CKPT = b"\x0a\x17\x0a\3a.b\x12\x10\x08\2\x08\2\x12\7Float16\x1a\1\0" * 2
HEAD = b'{"model.embed_tokens.weight":{"dtype":"U8","shape":[2,4],"data_offsets":[0,8]}}'
TENSORS = len(HEAD).to_bytes(8, "little") + HEAD + bytes(8)
LISTING = json.dumps({"weight_map": {"a": "m.safetensors"}}).encode()
SHARDS = {
    "state_dict_metadata": {"a": {"global_shape": [2, 4]}},
    "storage_data": {"a": [{"file_name": "m.safetensors"}]},
}
META = json.dumps({"last_epoch": 1, "last_step": 2, "last_ckpt_file": "a.ckpt"}).encode()
GROUPS = {"sinfo": [{"nodes": {"total": 2}, "gres": {"total": "gpu:h100:4"}, "partition": {"name": "a"}}]}
INVENTORY = json.dumps({"nodes": [{"gres": "npu:8", "partitions": ["b"]}], **GROUPS}).encode()


def _changed(choices: Choices, data: bytes) -> bytes:
    """Bytes with a few of them taken out, put in, or cut off."""
    found = bytearray(data)
    for _ in range(choices.below(5)):
        at, width = choices.below(len(found) + 1), choices.below(4)
        found[at : at + width] = (
            choices.text(6).encode("latin-1", "replace")
            if choices.one_in(2)
            else bytes(choices.of((0, 1, 0x7F, 0x80, 0xFF, choices.below(256))) for _ in range(choices.below(9)))
        )
    return bytes(found[: choices.below(len(found) + 1)] if choices.one_in(6) else found)


def _pickle(choices: Choices) -> None:
    loaded(_changed(choices, choices.of(PICKLES)))


def _archive(choices: Choices) -> None:
    eyes = Memory({"/d/x/a.pt": _changed(choices, _zip(choices.of(PICKLES)))})
    saved(eyes, whole(eyes, "/d/x/a.pt"))


def _index(choices: Choices) -> None:
    eyes = Memory({"/d/x/a.idx": _changed(choices, INDEX), "/d/x/a.bin": bytes(choices.below(40))})
    read_data(eyes, "/d/x/a", "data_path", (), ((0.0, 0.5), (0.5, 1.0), None))


def _checkpoint(choices: Choices) -> None:
    inside = "/d/x/iter_0000007"
    files = {
        f"{inside}/metadata.json": b'{"sharded_backend": "torch_dist"}',
        f"{inside}/.metadata": METADATA,
        f"{inside}/__0_0.distcp": SHARD,
        f"{inside}/common.pt": _zip(pickle.dumps(STATE, 2)),
        f"{inside}/mp_rank_00/model_optim_rng.pt": _zip(pickle.dumps(STATE, 2)),
    }
    kept = {name: _changed(choices, data) for name, data in files.items() if not choices.one_in(3)}
    eyes = Memory({"/d/x/latest_checkpointed_iteration.txt": _changed(choices, b"7"), **kept})
    read_checkpoint(eyes, "/d/x", "load", (), 0, choices.one_in(2))


def _weights(choices: Choices) -> None:
    files = {
        "model.safetensors.index.json": LISTING,
        "m.safetensors": TENSORS,
        "latest_checkpointed_iteration.txt": b"7",
        "iteration_00000007/common.json": b"{}",
        "iteration_00000007/metadata.json": json.dumps(SHARDS).encode(),
        "iteration_00000007/m.safetensors": TENSORS,
        "rank_0/a.ckpt": CKPT,
        "rank_0/meta.json": META,
    }
    eyes = Memory({f"/d/x/{name}": _changed(choices, data) for name, data in files.items() if not choices.one_in(2)})
    read_weights(eyes, choices.of(("/d/x", "/d/x/rank_0/a.ckpt", "/d/x/m.safetensors")), "load_checkpoint", ())


def _nodes(choices: Choices) -> None:
    nodes(_changed(choices, INVENTORY).decode("utf-8", "replace"))


READERS: tuple[Callable[[Choices], None], ...] = (_pickle, _archive, _index, _checkpoint, _weights, _nodes)


def site(choices: Choices) -> None:
    """The files are read or refused; nothing is opened, imported, started or resolved."""
    if not _watched["hook"]:
        sys.addaudithook(_watch)
        _watched["hook"] = True
    for reader in READERS:  # each is warm before it is watched
        with contextlib.suppress(Unread):
            if "warm" not in _watched:
                reader(Choices(b""))
    _watched["warm"] = True
    reader = choices.of(READERS)
    _watched["on"] = True
    try:
        with contextlib.suppress(Unread):
            reader(choices)
    finally:
        _watched["on"] = False
