"""The checkpoint that a Megatron run loads: tracker, kind, completeness, and the arguments of the run that saved it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from preflight.job import Checkpoint, Plain
from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.path_resolution import find
from preflight.site.pickles import Made, fields, is_named, loaded, mapping, plain
from preflight.site.torch_zip import CutOff, Window, saved, whole
from preflight.source.typing_without_import import Any

TRACKER = "latest_checkpointed_iteration.txt"
NOT_PERSISTENT = "non_persistent"
RANK_0 = ("mp_rank_00", "mp_rank_00_000", "mp_rank_00_000_000")
STATE = "model_optim_rng.pt"
FIRST_SHARD = "__0_0.distcp"
COMMON = "common_state"
LARGEST_METADATA = 4 * 1024 * 1024
"""Bytes of metadata read to see whether the checkpoint is whole."""
MOST_RANKS = 4096
NETWORK = ("embedding.", "decoder.", "output_layer.")
"""How the names of a network's tensors begin; those of the optimizer's state begin otherwise."""
MOST_TENSORS = 200
"""Kinds of tensors that are kept: a network has some twenty."""
OFTEN = re.compile(r"^decoder\.layers\.(\d+)\.|(?<=\.local_experts)\.\d+(?=\.)")
"""The numbers of layers and experts: their tensors have one shape and are stored once."""
MOST_AXES = 8

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


Layout = tuple[object, ...] | None
"""The tensor-, pipeline- and expert-parallel sizes of the run; None if they are unknown."""


def first_checkpoint(
    eyes: Eyes, names: Sequence[tuple[str, str]], folders: Sequence[str], step: int, fsdp: bool, layout: Layout
) -> Checkpoint:
    """The checkpoint in the first of several folders (argument and name) that has a tracker file, otherwise in the
    last."""
    found = Checkpoint("", "")
    for argument, name in names:
        found = read_checkpoint(eyes, name, argument, folders, step, fsdp, layout)
        others = len(names) > 1 and found.path and not eyes.is_file(os.path.join(found.path, TRACKER))
        if found.fault not in ("missing", "no-tracker") and not (others and (argument, name) != names[-1]):
            break
    return found


def read_checkpoint(
    eyes: Eyes, name: str, argument: str, folders: Sequence[str], step: int, fsdp: bool, layout: Layout = None
) -> Checkpoint:
    """The checkpoint in a folder. step: the requested iteration, 0 for the latest."""
    found = Checkpoint(name, argument)
    try:
        place = find(eyes, name, folders)
        found = found._replace(path=place.path)
        if not place.there or not eyes.is_folder(place.path):
            return found._replace(fault="missing")
        found = _step(eyes, found, step)
        return found if found.fault else _contents(eyes, found, fsdp, layout)
    except CutOff as error:
        return found._replace(fault="cut-off", because=str(error))
    except Unread as error:
        return found._replace(fault="unread", because=str(error))


def _step(eyes: Eyes, found: Checkpoint, step: int) -> Checkpoint:
    """Add the iteration that is loaded, and its folder."""
    if eyes.is_file(os.path.join(found.path, NOT_PERSISTENT, TRACKER)):
        raise Unread(f"{found.path}/{NOT_PERSISTENT} has checkpoints as well, which are not read")
    tracker = os.path.join(found.path, TRACKER)
    if step:
        found = found._replace(iteration=step)
    elif not eyes.is_file(tracker):
        return found._replace(fault="no-tracker")
    else:
        text = eyes.text(tracker, 100).strip()
        if text != "release" and not text.isdecimal():
            return found._replace(fault="tracker", because=text[:40])
        found = found._replace(release=text == "release", iteration=0 if text == "release" else int(text))
    folder = "release" if found.release else f"iter_{found.iteration:07d}"
    found = found._replace(step=os.path.join(found.path, folder))
    return found if eyes.is_folder(found.step) else found._replace(fault="no-step")


def _contents(eyes: Eyes, found: Checkpoint, fsdp: bool, layout: Layout) -> Checkpoint:
    """Add its kind, and the arguments of the run that saved it."""
    inside = found.step
    if (text := _text(eyes, os.path.join(inside, "metadata.json"))) is not None:
        try:
            backend = str(json.loads(text)["sharded_backend"])
        except (ValueError, KeyError, TypeError):
            return found._replace(fault="cut-off", because=f"{inside}/metadata.json does not describe a checkpoint")
        found = found._replace(kind=backend)
        if backend == "zarr":
            return _zarr(eyes, found)
        if backend != "torch_dist":
            return found
        state, shapes = _common(eyes, inside)
        return _with_state(found, state)._replace(shapes=shapes)
    for name in RANK_0:
        if eyes.is_folder(os.path.join(inside, name)):
            found = found._replace(kind="torch")
            path = os.path.join(inside, name, STATE)
            if not eyes.is_file(path):
                return found._replace(fault="cut-off", because=f"{path} is missing")
            state = mapping(saved(eyes, whole(eyes, path)))
            return _whole(eyes, _with_state(found, state)._replace(shapes=shapes_of_rank(state)), name, layout)
    if eyes.is_file(os.path.join(inside, ".metadata")):
        found = found._replace(kind="fsdp_dtensor" if fsdp else "torch_dcp")
        entries = _entries(eyes, inside, ("args", "iteration"))
        if "args" not in entries and not fsdp:
            raise CutOff(f"{inside}/metadata.json, which is written last, is missing")
        return _with_state(found, entries)
    if any(eyes.is_file(os.path.join(inside, name)) for name in (FIRST_SHARD, "common.pt")):
        because = f"{inside}/metadata.json, which is written last, is missing"
        return found._replace(fault="cut-off", because=because)
    return found._replace(fault="kind")


def _zarr(eyes: Eyes, found: Checkpoint) -> Checkpoint:
    """The same of a folder of arrays, one folder per tensor, whose `.zarray` has the shape."""
    path = os.path.join(found.step, "common.pt")
    if not eyes.is_file(path):
        return found._replace(fault="cut-off", because=f"{path} is missing")
    state = mapping(saved(eyes, whole(eyes, path)))
    tensors: list[tuple[str, tuple[int, ...] | None]] = []
    for name in eyes.listed(found.step):
        if not name.startswith(NETWORK):
            continue
        described = os.path.join(found.step, name, ".zarray")
        if (text := _text(eyes, described)) is None:
            if not eyes.is_folder(os.path.join(found.step, name)) or name.endswith("_extra_state"):
                continue  # objects of bytes lie in files by shard
            return found._replace(fault="cut-off", because=f"{described} is missing")
        try:
            tensors.append((name, _sizes(tuple(json.loads(text)["shape"]))))
        except (ValueError, KeyError, TypeError, RecursionError):
            return found._replace(fault="cut-off", because=f"{described} does not describe an array")
    return _with_state(found, state)._replace(shapes=_kept(iter(tensors)))


def _text(eyes: Eyes, path: str) -> str | None:
    return eyes.text(path) if eyes.is_file(path) else None


def _common(eyes: Eyes, inside: str) -> tuple[Mapping[str, Any], Shapes]:
    """The state common to all ranks, in a separate file or, since 0.19, in one of the shards; and the shapes of
    tensors, if the metadata is small."""
    path = os.path.join(inside, "common.pt")
    metadata = os.path.join(inside, ".metadata")
    if not eyes.is_file(metadata):
        raise CutOff(f"{metadata} is missing")
    small = (eyes.size(metadata) or 0) <= LARGEST_METADATA
    windows, shapes = _shards(eyes, inside) if small or not eyes.is_file(path) else ({}, ())
    if eyes.is_file(path):
        return mapping(saved(eyes, whole(eyes, path))), shapes
    for name, window in windows.items():
        if name.partition("/")[0] == COMMON:
            state = saved(eyes, window)
            return mapping(state[0] if isinstance(state, list) and state else state), shapes
    raise Unread(f"{inside} does not name the run that saved it")


def _entries(eyes: Eyes, inside: str, wanted: Sequence[str]) -> Mapping[str, Any]:
    """Values saved as separate entries."""
    windows, _ = _shards(eyes, inside)
    return {name: saved(eyes, windows[name]) for name in wanted if name in windows}


def _shards(eyes: Eyes, inside: str) -> tuple[dict[str, Window], Shapes]:
    """The place of each entry of bytes, and the shapes of tensors. Raises CutOff if a shard is missing or short."""
    metadata = loaded(eyes.read(os.path.join(inside, ".metadata")))
    stored = fields(metadata).get("storage_data")
    ends: dict[str, int] = {}
    windows: dict[str, Window] = {}
    for key, value in stored.items() if isinstance(stored, dict) else ():
        info = fields(value)
        file, begin, length = info.get("relative_path"), info.get("offset"), info.get("length")
        if not (isinstance(file, str) and type(begin) is int and type(length) is int) or "/" in file:
            raise Unread(f"{inside}/.metadata has an unknown format")
        ends[file] = max(ends.get(file, 0), begin + length)
        index = fields(key)
        name = index.get("fqn")
        if isinstance(name, str) and is_named(key, "MetadataIndex") and not index.get("offset"):
            windows[name] = Window(os.path.join(inside, file), begin, length)
    for file, end in ends.items():
        path = os.path.join(inside, file)
        size = eyes.size(path)
        if size is None:
            raise CutOff(f"{path} is missing")
        if size < end:
            raise CutOff(f"{path} has {size:,} bytes, but its metadata expects {end:,}")
    return windows, distributed_shapes(metadata)


def _with_state(found: Checkpoint, state: Mapping[str, Any]) -> Checkpoint:
    """Add the values recorded in the state of a run."""
    arguments = []
    for name, value in sorted(fields(state.get("args")).items()):
        known, made = plain(value)
        if known:
            arguments.append((name, made))
    content = mapping(state.get("content_metadata"))
    sharding, version = content.get("distrib_optim_sharding_type"), state.get("checkpoint_version")
    by_name: dict[str, Plain] = dict(arguments)
    if not content:  # before 0.13
        full = by_name.get("ckpt_fully_parallel_save") is True
        sharding = "fully_sharded_model_space" if full else "dp_zero_gather_scatter"
    return found._replace(
        arguments=tuple(arguments),
        sharding=sharding if isinstance(sharding, str) else "",
        version=float(version) if isinstance(version, (int, float)) else 0.0,
    )


def _whole(eyes: Eyes, found: Checkpoint, first: str, layout: Layout) -> Checkpoint:
    """A checkpoint with one file per rank; the fault is noted if one is missing that the run loads. The arguments in a
    checkpoint that another program has converted may have another layout than its files."""
    said = dict(found.arguments)
    sizes = [said.get(f"{name}_model_parallel_size") for name in ("tensor", "pipeline", "expert")]
    tensor, pipeline, expert = (size if type(size) is int and size > 0 else 1 for size in sizes)
    if layout != (tensor, pipeline, expert) or tensor * pipeline * expert > MOST_RANKS:
        return found
    parts = first.count("_") - 1
    by_pipeline = pipeline > 1 or parts == 3
    for rank in range(tensor * pipeline * expert):
        t, p, e = rank % tensor, rank // tensor % pipeline, rank // (tensor * pipeline)
        name = f"mp_rank_{t:02d}" + (f"_{p:03d}" if by_pipeline else "") + (f"_{e:03d}" if expert > 1 else "")
        path = os.path.join(found.step, name, STATE)
        if not eyes.is_file(path):
            return found._replace(fault="cut-off", because=f"{path} is missing")
    return found


def distributed_shapes(metadata: object) -> Shapes:
    """The global shapes in the metadata of a distributed checkpoint."""
    stored = fields(metadata).get("state_dict_metadata")
    pairs = stored.items() if isinstance(stored, dict) else ()
    return _kept((name, _sizes(fields(value).get("size"))) for name, value in pairs)


def shapes_of_rank(state: Mapping[str, Any]) -> Shapes:
    """The shapes of the tensors in the state saved by one rank."""
    return _kept((name, _rebuilt(value)) for name, value in mapping(state.get("model")).items())


def _kept(tensors: Iterator[tuple[Any, tuple[int, ...] | None]]) -> Shapes:
    """One tensor per kind: `decoder.layers.*.mlp.router.weight` is that of the first layer with a router."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in tensors:
        if shape is None or not isinstance(name, str) or not name.startswith(NETWORK) or len(name) > 200:
            continue
        kind = OFTEN.sub(lambda number: "decoder.layers.*." if number[1] else "", name)
        if kind not in found and len(found) < MOST_TENSORS:
            found[kind] = shape
    return tuple(sorted(found.items()))


def _sizes(value: object) -> tuple[int, ...] | None:
    """The numbers of a torch.Size, or of a tuple."""
    if isinstance(value, Made):
        value = value.given[0] if len(value.given) == 1 else None
    if not isinstance(value, (tuple, list)) or len(value) > MOST_AXES:
        return None
    return tuple(value) if all(type(size) is int for size in value) else None


def _rebuilt(value: object) -> tuple[int, ...] | None:
    """The sizes of a tensor, or of a parameter that wraps one."""
    if not isinstance(value, Made):
        return None
    if value.named[1] in ("_rebuild_parameter", "_rebuild_parameter_with_state") and value.given:
        return _rebuilt(value.given[0])
    sizes = value.named[1] in ("_rebuild_tensor_v2", "_rebuild_tensor") and len(value.given) > 2
    return _sizes(value.given[2]) if sizes else None
