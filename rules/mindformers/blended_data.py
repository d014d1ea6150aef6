"""Checks of Megatron-format data: the columns of the loader, and the training split."""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.registry import trains
from preflight.run.version_ranges import matches

LOADER = "train_dataset.data_loader"
CONFIG = f"{LOADER}.config"
COLUMNS = "train_dataset.input_columns"
PLAIN, WITH_MASK = 4, 5


def _is_blended(job: Job) -> bool:
    a = job.arguments
    return (
        trains(a)
        and a.get(f"{LOADER}.type").raw == "BlendedMegatronDatasetDataLoader"
        and a.get(f"{LOADER}.datasets_type").raw == "GPTDataset"
        and matches(job.target.version, ">=1.5, <2")
    )


@rule(id="mindformers/blended-columns", severity=Severity.ERROR, frameworks=("mindformers",), reads=(COLUMNS,))
def blended_columns(job: Job) -> Iterator[Finding]:
    """The number of named input columns differs from the number of columns that the data loader produces.

    ## What it does
    Compares the length of `input_columns` with the columns that `BlendedMegatronDatasetDataLoader` produces: tokens,
    labels, loss mask and positions, and a fifth column with `create_attention_mask` or `create_compressed_eod_mask`.
    One of these two settings must be given.

    ## Why is this bad?
    MindSpore stops at the first batch, because every column needs a name.

    ## Example
        train_dataset:
          data_loader:
            type: BlendedMegatronDatasetDataLoader
            datasets_type: GPTDataset
            config: {seq_length: 4096, create_attention_mask: False}
          input_columns: [input_ids, labels, loss_mask, position_ids, attention_mask]

    Use instead:

        train_dataset:
          data_loader:
            type: BlendedMegatronDatasetDataLoader
            datasets_type: GPTDataset
            config: {seq_length: 4096, create_attention_mask: True}
          input_columns: [input_ids, labels, loss_mask, position_ids, attention_mask]

    ## Fix safety
    No fix: either the mask or the column may be intended.

    ## References
    MindFormers v1.5.0, mindformers/dataset/blended_datasets/gpt_dataset.py:231, GPTDataset.__getitem__; v1.7.0, :225
    MindFormers v1.5.0, mindformers/dataset/dataloader/blended_megatron_dataloader.py:192; v1.7.0, :200
    """
    if not _is_blended(job):
        return
    columns = job.arguments.given(COLUMNS)
    mask, compressed = (
        job.arguments.get(f"{CONFIG}.{name}") for name in ("create_attention_mask", "create_compressed_eod_mask")
    )
    if columns is None or not isinstance(columns.raw, list):
        return
    if not all(value.raw in (None, True, False) for value in (mask, compressed)) or not (
        mask.written or compressed.raw
    ):
        return
    made = PLAIN if mask.raw is False and compressed.raw is not True else WITH_MASK
    if len(columns.raw) == made:
        return
    place = next((v for v in (mask, compressed) if v.written and v.raw is (made == WITH_MASK)), columns)
    message = Message(
        "the loader creates {made} columns, but input_columns names {named}", made=made, named=len(columns.raw)
    )
    yield Finding(message, job.place(columns, place), place.related, key=columns.key)


@rule(id="mindformers/no-training-split", severity=Severity.ERROR, frameworks=("mindformers",), reads=(CONFIG,))
def no_training_split(job: Job) -> Iterator[Finding]:
    """The data split leaves no data for training.

    ## What it does
    Reads the first number in the `split` of `BlendedMegatronDatasetDataLoader`, which is the share of the training
    data.

    ## Why is this bad?
    If the share is 0, there is no training dataset, and the run stops when it builds the loader.

    ## Example
        config: {split: "0, 1, 0"}

    Use instead:

        config: {split: "1, 0, 0"}

    ## Fix safety
    No fix: the intended shares are unknown.

    ## References
    MindFormers v1.7.0, mindformers/dataset/blended_datasets/blended_megatron_dataset_builder.py,
    _build_megatron_dataset_splits; mindformers/dataset/dataloader/blended_megatron_dataloader.py:130
    """
    split = job.arguments.given(f"{CONFIG}.split") if _is_blended(job) else None
    if split is None or not isinstance(split.raw, str):
        return
    yield from _empty(job, split, re.findall(r"[.0-9]+", split.raw[:100]))


def _empty(job: Job, split: Value, shares: list[str]) -> Iterator[Finding]:
    try:
        numbers = [float(share) for share in shares]
    except ValueError:
        return
    if numbers and numbers[0] == 0 and any(numbers):
        yield Finding(
            Message("split {split!r} leaves no data to train on", split=split.raw), job.place(split), key=split.key
        )
