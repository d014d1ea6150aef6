"""The paths of a MindFormers run: weights, data, output folder. Newer checkpoints are JSON and safetensors, so
completeness is checked without unpickling."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial

from preflight.job import Job, NamedPath
from preflight.site.data_index import Bounds
from preflight.site.isolated_file_reading import Eyes, Task, Unread
from preflight.site.megatron_files import WHOLE, Data, Part, read_blend
from preflight.site.mindspore_checkpoint import MOST_RANKS, Shapes, by_rank, read_ckpt, read_strategy
from preflight.site.path_existence import read_path, read_save_folder
from preflight.site.sample_counts import SPLITS, SURPLUS, Need, split_bounds
from preflight.source.record import NamedTuple

DATA = (
    *("train_dataset.data_loader.dataset_dir", "train_dataset.data_loader.dataset_files"),
    *("train_dataset.data_loader.path", "train_dataset.dataloader.path"),
)
LOADER = "train_dataset.data_loader"
BLENDED = "BlendedMegatronDatasetDataLoader"
WITHOUT_TRAINING = ("predict", "eval")
"""Values of `run_mode` with which no training data is read."""
BLEND = f"{LOADER}.config.data_path"
WEIGHTS = ("load_checkpoint", "checkpoint.load_path", "pretrained_model_dir")
STRATEGY = "src_strategy_path_or_dir"
SAVE = ("output_dir", "checkpoint.save_path")
TRACKER = "latest_checkpointed_iteration.txt"
LIST = "model.safetensors.index.json"
MOST_FILES = 256
"""Maximum number of weight files with headers that are read."""
EMBEDDINGS = ("embedding.word_embeddings.weight", "model.tok_embeddings.embedding_weight", "model.embed_tokens.weight")
"""Tables of vocabulary by hidden size: of MindFormers' networks, of its earlier ones, of Hugging Face."""
HEAD = 16 * 1024 * 1024
"""Bytes of a head that are read."""


def mindformers_tasks(job: Job, folders: tuple[str, ...]) -> list[Task]:
    """The files to examine."""
    trains = _raw(job, "run_mode") not in WITHOUT_TRAINING
    tasks: list[Task] = _blended(job, folders) if trains else []
    for argument in DATA if trains and _raw(job, f"{LOADER}.type") != BLENDED else ():
        for name in _paths(job, argument):
            tasks.append(partial(read_path, name=name, argument=argument, folders=folders))
    for argument in WEIGHTS:
        for name in _paths(job, argument):
            tasks.append(partial(read_weights, name=name, argument=argument, folders=folders))
    for name in _paths(job, STRATEGY) if _transforms(job) else ():
        tasks.append(partial(read_strategies, name=name, argument=STRATEGY, folders=folders))
    for argument in SAVE:
        for name in _paths(job, argument)[:1]:
            tasks.append(partial(read_save_folder, name=name, argument=argument, folders=folders))
    return tasks


def _transforms(job: Job) -> bool:
    """Whether the run surely transforms `.ckpt` files that it loads, for which it reads their strategies."""
    switched = _raw(job, "auto_trans_ckpt") is True and _raw(job, "use_parallel") is True
    ends = job.arguments.given("only_save_strategy") is not None and _raw(job, "only_save_strategy") is not False
    return switched and not ends and bool(_paths(job, WEIGHTS[0])) and _raw(job, "load_ckpt_format") == "ckpt"


def _blended(job: Job, folders: tuple[str, ...]) -> list[Task]:
    """Data in Megatron's format, from which the run draws a stated number of samples."""
    if _raw(job, f"{LOADER}.type") != BLENDED:
        return []
    words, split = _raw(job, BLEND), _raw(job, f"{LOADER}.config.split")
    words = [words] if isinstance(words, str) else words
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, (str, int, float)) for word in words):
        return []
    bounds = split_bounds(split) if isinstance(split, str) else None
    sizes, sequence = _raw(job, f"{LOADER}.sizes"), _raw(job, f"{LOADER}.config.seq_length")
    size = sizes[0] if isinstance(sizes, (list, tuple)) and sizes else None
    need = None
    if bounds is not None and type(size) is int and size > 0 and type(sequence) is int and sequence > 0:
        extra = 0 if _raw(job, f"{LOADER}.config.add_extra_token_to_sequence") is False else 1
        need = Need((size, None, None), sequence, SURPLUS, extra)
    part = Part(BLEND, tuple(map(str, words)), (0, 1, 2))
    return [partial(_drawn, part=part, folders=folders, bounds=bounds or (WHOLE, WHOLE, WHOLE), need=need)]


def _raw(job: Job, argument: str) -> object:
    """The known value of an argument, otherwise None."""
    value = job.arguments.given(argument)
    sure = value is not None and value.known and (value.setting is None or not value.setting.maybe)
    return value.raw if value is not None and sure else None


def _drawn(eyes: Eyes, part: Part, folders: Sequence[str], bounds: Sequence[Bounds], need: Need | None) -> Data:
    """The data at the prefixes, and the samples that training draws; there are no other splits."""
    found = read_blend(eyes, part, folders, bounds, need)
    return found._replace(draws=tuple(draw for draw in found.draws if draw.split == SPLITS[0]))


def _paths(job: Job, argument: str) -> list[str]:
    """The paths in an argument; a name without a folder may be a model's name."""
    value = job.arguments.given(argument)
    if value is None or not value.known:
        return []
    raw = value.raw if isinstance(value.raw, (list, tuple)) else [value.raw]
    return [one for one in raw if isinstance(one, str) and "/" in one]


def read_weights(eyes: Eyes, name: str, argument: str, folders: Sequence[str]) -> NamedPath:
    """The contents of a folder or file of weights: kind and completeness."""
    found = read_path(eyes, name, argument, folders)
    if found.fault:
        return found
    try:
        kind, because, width = _weights(eyes, found.path)
        return found._replace(fault="cut-off" if because else "", because=because, kind=kind, width=width)
    except Unread as error:
        return found._replace(fault="unread", because=str(error))


def read_strategies(eyes: Eyes, name: str, argument: str, folders: Sequence[str]) -> NamedPath:
    """The strategies by which weights were cut."""
    found = read_path(eyes, name, argument, folders)
    if found.fault:
        return found
    try:
        because = read_strategy(eyes, found.path)
        return found._replace(fault="not-usable" if because else "", because=because)
    except Unread as error:
        return found._replace(fault="unread", because=str(error))


class Weights(NamedTuple):
    """Weights: their kind, what is missing ("" if nothing), and the hidden size."""

    kind: str = ""
    because: str = ""
    width: int = 0


def _weights(eyes: Eyes, path: str) -> Weights:
    if eyes.is_file(path):
        return _of_file(eyes, path)
    if eyes.is_file(os.path.join(path, TRACKER)):
        return _of_iteration(eyes, path)
    if eyes.is_file(os.path.join(path, LIST)):
        files = _listed(eyes, os.path.join(path, LIST))
        if others := [file for file in eyes.listed(path) if file.endswith(".safetensors") and file not in files]:
            raise Unread(f"{path} has {others[0]}, which its index does not list")
        found = _of_files(eyes, path, files)
        return found._replace(kind="hugging-face")
    ranks = [f"rank_{rank}" for rank in range(MOST_RANKS)]
    if not eyes.is_folder(os.path.join(path, ranks[0])):
        return Weights()
    for file in by_rank(eyes, path, ranks):
        if because := _of_file(eyes, file).because:
            return Weights("mindspore-ranks", because)
    return Weights("mindspore-ranks")  # a rank has a part of each tensor


def _of_file(eyes: Eyes, path: str) -> Weights:
    if path.endswith(".safetensors"):
        shapes = _safetensors(eyes, path)
        return Weights("safetensors", shapes.because, _width(shapes.tensors))
    if not path.endswith(".ckpt"):
        return Weights()
    shapes = read_ckpt(eyes, path)
    return Weights("mindspore-ckpt", shapes.because, _width(shapes.tensors))


def _of_iteration(eyes: Eyes, path: str) -> Weights:
    """The iteration to load from a checkpoint of JSON and safetensors."""
    text, kind = eyes.text(os.path.join(path, TRACKER), 100).strip(), "mindformers"
    if not text.isdecimal():
        return Weights(kind)
    path = os.path.join(path, f"iteration_{int(text):08d}")
    for wanted in (path, os.path.join(path, "common.json")):
        if eyes.status(wanted) is None:
            return Weights(kind, f"{wanted} is missing")
    names, whole, stored = eyes.listed(path), dict[str, tuple[int, ...]](), set[str]()
    if "metadata.json" in names:
        whole, stored = _metadata(eyes, os.path.join(path, "metadata.json"))
    files = sorted({*(file for file in names if file.endswith(".safetensors")), *stored})
    found = _of_files(eyes, path, files)
    return Weights(kind, found.because, _width(whole) if whole else found.width if len(files) == 1 else 0)


def _metadata(eyes: Eyes, path: str) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """The whole shapes of tensors, by name, and the files that hold them. Raises Unread."""
    try:
        data = json.loads(eyes.read(path).decode())
        shapes = {name: tuple(one["global_shape"]) for name, one in data["state_dict_metadata"].items()}
        files = {part["file_name"] for parts in data["storage_data"].values() for part in parts}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unread(f"{path} has an unknown format") from None
    if not all(isinstance(file, str) and file.endswith(".safetensors") and "/" not in file for file in files):
        raise Unread(f"{path} has an unknown format")
    return shapes, files


def _width(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The hidden size: the last dimension of the embedding table; 0 if there is no such table."""
    shape: tuple[int, ...] = next((shapes[name] for name in EMBEDDINGS if name in shapes), ())
    return shape[1] if len(shape) == 2 and type(shape[1]) is int else 0


def _listed(eyes: Eyes, path: str) -> list[str]:
    """The files named in the index of a folder. Raises Unread."""
    try:
        files = json.loads(eyes.read(path).decode())["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unread(f"{path} is not a list of weights") from None
    names = sorted({file for file in files if isinstance(file, str)})
    if any("/" in file or file in ("", "..") for file in names):
        raise Unread(f"{path} names files elsewhere")
    return names


def _of_files(eyes: Eyes, folder: str, files: Sequence[str]) -> Weights:
    """The missing parts of the files of a folder; the hidden size comes from the file with the embeddings."""
    width = 0
    for file in files[:MOST_FILES]:
        path = os.path.join(folder, file)
        if not eyes.is_file(path):
            return Weights("", f"{path} is missing")
        if file.endswith(".safetensors"):
            shapes = _safetensors(eyes, path)
            if shapes.because:
                return Weights("", shapes.because)
            width = width or _width(shapes.tensors)
    return Weights("", "", width)


def _safetensors(eyes: Eyes, path: str) -> Shapes:
    """The tensors of a file, and a fault if it is shorter than its header states. Raises Unread."""
    size = eyes.size(path) or 0
    head = eyes.read(path, 0, 8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or 8 + length > size:
        return Shapes({}, f"{path} has {size:,} bytes, but its header alone needs {8 + length:,}")
    if length > HEAD:
        raise Unread(f"the header of {path} has {length:,} bytes; more than {HEAD:,} are not read")
    try:
        tensors = {
            name: part
            for name, part in json.loads(eyes.read(path, 8, length).decode()).items()
            if name != "__metadata__"
        }
        ends = [part["data_offsets"][1] for part in tensors.values()]
        shapes = {name: tuple(part["shape"]) for name, part in tensors.items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise Unread(f"{path} is not a safetensors file") from None
    needed = 8 + length + max((end for end in ends if type(end) is int), default=0)
    return Shapes(shapes, f"{path} has {size:,} bytes, but its header expects {needed:,}" if size < needed else "")
