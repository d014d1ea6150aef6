"""The paths of a Megatron run: data and the samples drawn from it, checkpoint, tokenizer, save folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial

from preflight.job import DataFile, Draw, Job
from preflight.run.value import known
from preflight.site.data_index import Bounds, read_data
from preflight.site.isolated_file_reading import Eyes, Task, Unread
from preflight.site.megatron_checkpoint import first_checkpoint
from preflight.site.path_existence import read_path, read_save_folder
from preflight.site.path_resolution import find
from preflight.site.sample_counts import SPLITS, SURPLUS, Blend, Need, blend_of, draws, split_bounds
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

WHOLE: Bounds = (0.0, 1.0)
PER_SPLIT = ("train_data_path", "valid_data_path", "test_data_path")
OTHER_DATA = (
    *("mock_data", "sft", "fim_data", "is_instruction_dataset", "is_pairwise_dataset", "dataloader_fast_cache_load"),
    *("use_flash_attn_fim", "per_dataset_sequences_path", "perform_rl_step", "multimodal", "stage"),
    *("retro_project_dir",),
)
"""Arguments with which data is otherwise, or is drawn otherwise."""
ENTRIES = ("pretrain_gpt.py", "pretrain_bert.py", "pretrain_t5.py", "pretrain_mamba.py", "pretrain_hybrid.py")
"""Programs that read only indexed data."""
MOST = 32_766
"""Datasets of a blend: its index counts them in 16 bits."""


class Part(NamedTuple):
    """A blend for some splits, by number. file: the file that lists the blend; `words` is empty then. own: the program
    may read data of other kinds."""

    argument: str
    words: tuple[str, ...]
    splits: tuple[int, ...]
    file: str = ""
    own: bool = False


class Data(NamedTuple):
    """The existing datasets, and the samples drawn from them."""

    files: tuple[DataFile, ...] = ()
    draws: tuple[Draw, ...] = ()


TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model"),
    *("tiktoken.model", "sentencepiece.bpe.model"),
)
"""Files of which a tokenizer's folder has one."""
BY_FILES = ("GPT2BPETokenizer", "BertWordPieceLowerCase", "BertWordPieceCase")
NOTHING = ("NullTokenizer", "NullMultimodalTokenizer")
"""Tokenizers that read a vocabulary and merges, and those that read no file."""
HUB = ("HuggingFaceTokenizer", "MultimodalTokenizer", "PretrainedFromHF", "SFTTokenizer")
"""Tokenizers with a name that may be one of a hub."""


def megatron_tasks(job: Job, folders: tuple[str, ...]) -> list[Task]:
    """The inspection tasks of a run: data, checkpoint, tokenizer and save folder."""
    checkpoint = checkpoint_task(job, folders)
    tasks = [*data_tasks(job, folders), *([checkpoint] if checkpoint is not None else [])]
    kind = job.arguments.get("tokenizer_type").raw
    for argument in ("tokenizer_model", "tokenizer_name_or_path", "vocab_file", "merge_file"):
        folder = argument.startswith("tokenizer")
        unused = kind in NOTHING or (kind is not None and (kind in BY_FILES) == folder)
        if (name := _path(job, argument)) and not unused:
            hub = folder and kind in (*HUB, None)
            wanted = TOKENIZERS if folder else ()
            named: dict[str, Any] = {"name": name, "argument": argument, "folders": folders}
            tasks.append(partial(read_path, **named, wanted=wanted, remote=hub))
    if name := _path(job, "save"):
        tasks.append(partial(read_save_folder, name=name, argument="save", folders=folders))
    return tasks


def _path(job: Job, argument: str) -> str:
    """The text of an argument that is given for sure, otherwise ""."""
    value = job.arguments.given(argument)
    if value is None or not isinstance(value.raw, str) or (value.setting is not None and value.setting.maybe):
        return ""
    return value.raw


def data_tasks(job: Job, folders: tuple[str, ...]) -> list[Task]:
    """The files to examine."""
    arguments = job.arguments
    if any((value := arguments.given(name)) is not None and value.raw is not False for name in OTHER_DATA):
        return []
    if arguments.get("dataloader_type").raw == "external":
        return []
    launch = job.documents[0].launch
    own = launch is None or os.path.basename(launch.entry.text or "") not in ENTRIES
    bounds = split_bounds(_split(job)) or (WHOLE, WHOLE, WHOLE)
    need = _need(job)
    parts = [part._replace(own=own) for part in _parts(job)]
    return [partial(read_blend, part=part, folders=folders, bounds=bounds, need=need) for part in parts]


def _split(job: Job) -> str:
    value = job.arguments.get("split")
    return value.raw if isinstance(value.raw, str) else ""


def _parts(job: Job) -> list[Part]:
    together, apart = (0, 1, 2), []
    for name in ("data_path", "data_args_path"):
        words = _words(job, name)
        if words:
            file = words[0] if name == "data_args_path" else ""
            return [Part(name, () if file else words, together, file)]
    for split, name in enumerate(PER_SPLIT):
        if words := _words(job, name):
            apart.append(Part(name, words, (split,)))
    listed = _words(job, "per_split_data_args_path")
    return apart or [Part("per_split_data_args_path", (), (split,), file) for file in listed for split in together]


def _words(job: Job, name: str) -> tuple[str, ...]:
    """The words of an argument; () if it is absent or unknown."""
    value = job.arguments.given(name)
    if value is None or not value.known or (value.setting is not None and value.setting.maybe):
        return ()
    raw = value.raw
    words = [raw] if isinstance(raw, str) else raw if isinstance(raw, (list, tuple)) else []
    return tuple(words) if all(isinstance(word, str) and "," not in word for word in words) else ()


def checkpoint_task(job: Job, folders: tuple[str, ...]) -> Task | None:
    """The checkpoint that the run loads; None if it loads none, or that is unknown."""
    get, names = job.arguments.get, []
    for argument in ("load", "pretrained_checkpoint"):
        value = job.arguments.given(argument)
        if value is None or value.raw is None:
            continue
        if not isinstance(value.raw, str) or not value.raw or (value.setting is not None and value.setting.maybe):
            return None
        names.append((argument, value.raw))
    step, fsdp = get("ckpt_step").raw, get("use_megatron_fsdp").raw is True
    asked = step if type(step) is int else 0
    converts = job.arguments.given("enable_hf2mg_convert")
    if not names or (converts is not None and converts.raw is not False):
        return None
    sizes = known(*(get(f"{name}_model_parallel_size") for name in ("tensor", "pipeline", "expert")))
    return partial(first_checkpoint, names=tuple(names), folders=folders, step=asked, fsdp=fsdp, layout=sizes)


def _need(job: Job) -> Need | None:
    """The samples that the run needs; None if unknown."""
    get = job.arguments.get
    may_vary = (job.plan.batch.varying, get("phase_transition_iterations"))
    if job.plan.model.family.raw != "gpt" or any(not value.known or value.raw for value in may_vary):
        return None
    found = known(*map(get, ("seq_length", "global_batch_size", "eval_iters", "eval_interval")))
    if found is None or not all(type(each) is int for each in found) or found[1] <= 0 or found[3] <= 0:
        return None
    sequence, batch, iterations, interval = found
    train, samples = get("train_iters").raw, get("train_samples").raw
    if type(samples) is int and samples:
        train, asked = samples // batch, samples
    elif type(train) is int:
        asked = train * batch
    else:
        return None
    skipped, other = get("start_eval_at_iter").raw, get("eval_global_batch_size").raw
    points = max(0, train // interval + 1 - (skipped // interval if type(skipped) is int else 0))
    each = iterations * (other if type(other) is int and other else batch)
    validation = each if get("skip_train").raw is True else points * each
    surplus = get("mid_level_dataset_surplus").raw
    samples = (asked, None if get("full_validation").raw is True else validation, each)
    return Need(samples, sequence, surplus if type(surplus) is float else SURPLUS)


def read_blend(eyes: Eyes, part: Part, folders: Sequence[str], bounds: Sequence[Bounds], need: Need | None) -> Data:
    """The data at the prefixes of a part, and the samples drawn from it."""
    words: tuple[str, ...] | None = part.words
    if part.file:
        try:
            words = _listed(eyes, part, folders)
        except Unread as error:
            return Data((DataFile(part.file, part.argument, fault="unread", because=str(error)),))
        if words is None:
            return Data((DataFile(part.file, part.argument, part.file, "no-list"),))
    blend = blend_of(words) if words else None
    if blend is None or len(blend.names) > MOST:
        return Data()
    splits = bounds if len(part.splits) == len(SPLITS) else (WHOLE, WHOLE, WHOLE)
    files = tuple(read_data(eyes, name, part.argument, folders, splits, part.own) for name in blend.names)
    if need is None:
        return Data(files)
    if len(part.splits) == 1 and len(files) == 1:
        blend = Blend(blend.names, None)  # a separate split with one dataset is not a blend
    built = [split for split in part.splits if splits[split] is not None]
    return Data(files, tuple(draws(blend, files, built, need)))


def _listed(eyes: Eyes, part: Part, folders: Sequence[str]) -> tuple[str, ...] | None:
    """The words of the blend that a file lists; None if there is no file. Raises Unread."""
    place = find(eyes, part.file, folders)
    if not place.there:
        return None
    text = eyes.text(place.path)
    if len(part.splits) > 1:
        return tuple(text.split())
    try:
        found: Any = json.loads(text)
    except ValueError:
        raise Unread(f"{part.file} is not JSON") from None
    words = found.get(("train", "valid", "test")[part.splits[0]]) if isinstance(found, dict) else None
    words = words.split() if isinstance(words, str) else words
    return tuple(map(str, words)) if isinstance(words, list) else ()
