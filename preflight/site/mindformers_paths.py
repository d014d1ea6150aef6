"""What a run of MindFormers names: weights, data, the folder that it writes to. Its newer checkpoints are JSON and
safetensors, so whether they are whole is read without unpacking anything."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial

from preflight.job import Job, NamedPath
from preflight.site.apart import Eyes, Task, Unread
from preflight.site.named_paths import read_path, read_save_folder

DATA = (
    *("train_dataset.data_loader.dataset_dir", "train_dataset.data_loader.dataset_files"),
    *("train_dataset.data_loader.path", "train_dataset.dataloader.path"),
)
WEIGHTS = ("load_checkpoint", "checkpoint.load_path", "pretrained_model_dir")
SAVE = ("output_dir", "checkpoint.save_path")
TRACKER = "latest_checkpointed_iteration.txt"
LIST = "model.safetensors.index.json"
MOST_FILES = 256
"""Files of weights whose heads are read."""
HEAD = 16 * 1024 * 1024
"""Bytes of a head that are read."""


def mindformers_tasks(job: Job, folders: tuple[str, ...]) -> list[Task]:
    """What is to be looked at."""
    tasks: list[Task] = []
    for argument in DATA:
        for name in _paths(job, argument):
            tasks.append(partial(read_path, name=name, argument=argument, folders=folders))
    for argument in WEIGHTS:
        for name in _paths(job, argument):
            tasks.append(partial(read_weights, name=name, argument=argument, folders=folders))
    for argument in SAVE:
        for name in _paths(job, argument)[:1]:
            tasks.append(partial(read_save_folder, name=name, argument=argument, folders=folders))
    return tasks


def _paths(job: Job, argument: str) -> list[str]:
    """The paths that an argument has; a name without a folder may be that of a model."""
    value = job.arguments.given(argument)
    if value is None or not value.known:
        return []
    raw = value.raw if isinstance(value.raw, (list, tuple)) else [value.raw]
    return [one for one in raw if isinstance(one, str) and "/" in one]


def read_weights(eyes: Eyes, name: str, argument: str, folders: Sequence[str]) -> NamedPath:
    """What lies in a folder of weights, or at a file of them, and whether it is whole."""
    found = read_path(eyes, name, argument, folders)
    if found.fault:
        return found
    try:
        because = _lacking(eyes, found.path)
        return found._replace(fault="cut-off", because=because) if because else found
    except Unread as error:
        return found._replace(fault="unread", because=str(error))


def _lacking(eyes: Eyes, path: str) -> str:
    """What a folder or file of weights lacks; "" where nothing is known to be missing."""
    if eyes.is_file(path):
        return _short(eyes, path) if path.endswith(".safetensors") else ""
    if eyes.is_file(os.path.join(path, TRACKER)):
        text = eyes.text(os.path.join(path, TRACKER), 100).strip()
        if not text.isdecimal():
            return ""
        path = os.path.join(path, f"iteration_{int(text):08d}")
        for wanted in (path, os.path.join(path, "common.json")):
            if eyes.status(wanted) is None:
                return f"{wanted} is not there"
        return _of_files(eyes, path, [file for file in eyes.listed(path) if file.endswith(".safetensors")])
    if eyes.is_file(os.path.join(path, LIST)):
        return _of_files(eyes, path, _listed(eyes, os.path.join(path, LIST)))
    return ""


def _listed(eyes: Eyes, path: str) -> list[str]:
    """The files that the list of a folder names. Raises Unread."""
    try:
        files = json.loads(eyes.read(path))["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unread(f"{path} is not a list of weights") from None
    names = sorted({file for file in files if isinstance(file, str)})
    if any("/" in file or file in ("", "..") for file in names):
        raise Unread(f"{path} names files elsewhere")
    return names


def _of_files(eyes: Eyes, folder: str, files: Sequence[str]) -> str:
    for file in files[:MOST_FILES]:
        path = os.path.join(folder, file)
        if not eyes.is_file(path):
            return f"{path} is not there"
        if file.endswith(".safetensors") and (because := _short(eyes, path)):
            return because
    return ""


def _short(eyes: Eyes, path: str) -> str:
    """How a file of safetensors is shorter than its header states; "" where it is not."""
    size = eyes.size(path) or 0
    head = eyes.read(path, 0, 8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or 8 + length > size:
        return f"{path} has {size:,} bytes, its head alone needs {8 + length:,}"
    if length > HEAD:
        raise Unread(f"the head of {path} has {length:,} bytes; more than {HEAD:,} are not read")
    try:
        tensors = json.loads(eyes.read(path, 8, length))
        ends = [part["data_offsets"][1] for name, part in tensors.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise Unread(f"{path} is not a safetensors file") from None
    needed = 8 + length + max((end for end in ends if type(end) is int), default=0)
    return f"{path} has {size:,} bytes, its head counts {needed:,}" if size < needed else ""
