"""Checks of the weights, paths and split of the training data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown
from preflight.source.finding import Kind
from preflight.source.lazy_regex import lazy_pattern

NAME = "split"


@rule(severity=Severity.WARNING, id="megatron/no-training-split", frameworks=("megatron",), reads=(NAME,))
def no_training_split(job: Job) -> Iterator[Finding | Unverified]:
    """The split leaves no data for training, or less data than for evaluation.

    ## What it does
    Reads the numbers of `--split`, which are the shares of training, validation and test data. The first must be
    greater than 0 and at least half of the total.

    ## Why is this bad?
    With a share of 0, no training set is built, the training loop is skipped, and the job ends as if it had trained.
    With a small share, the run repeats a small part of the corpus and never trains on the rest. The numbers may be in
    the wrong order.

    ## Example
        --split 0,100,0

    Use instead: `--split 100,0,0`.

    ## References
    Megatron-LM core_v0.16.0, megatron/training/training.py, build_train_valid_test_data_loaders: do_train
    """
    a, value = job.arguments, job.arguments.given(NAME)
    if value is None or a.get("skip_train").raw is True:
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    text = str(value.raw)
    try:
        shares = [float(share) for share in text.replace("/", ",").split(",")]
    except ValueError:
        return
    if shares[0] == 0:
        yield Finding(
            Message("--split {value} leaves no data to train on", value=text), job.place(value), key=value.key
        )
    elif min(shares) >= 0 and shares[0] < sum(shares) / 2:
        message = Message(
            "--split {value} trains on {share:.3g}% of the data, because the first number is the training share",
            value=text,
            share=100 * shares[0] / sum(shares),
        )
        yield Finding(message, job.place(value), key=value.key)


SHARES = 3
DATA = ("data_path", "mock_data")
"""Data that is split; data with separate files for each share is not."""


@rule(severity=Severity.ERROR, id="megatron/split-of-too-many", frameworks=("megatron",), reads=("split", *DATA))
def split_of_too_many(job: Job) -> Iterator[Finding | Unverified]:
    """The split has more than three shares.

    ## What it does
    Counts the numbers of `--split`, which are the shares of training, validation and test data.

    ## Why is this bad?
    Every rank rejects the dataset configuration after the model is built.

    ## Example
        --split 90,5,4,1

    Use instead: `--split 90,5,5`.

    ## References
    Megatron-LM core_v0.17.0, megatron/core/datasets/blended_megatron_dataset_config.py, parse_and_normalize_split
    """
    a, value = job.arguments, job.arguments.given("split")
    if value is None or a.get("entry").raw != "pretrain_gpt.py" or all(a.given(name) is None for name in DATA):
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    shares = len(re.findall(r"[.0-9]+", str(value.raw)))
    if shares > SHARES:
        message = Message(
            "--split {value} has {shares} shares; it takes at most 3: training, validation and test",
            value=value.raw,
            shares=shares,
        )
        yield Finding(message, job.place(value), key=value.key)


LISTS = ("data_path", "train_data_path", "valid_data_path", "test_data_path")
_NUMBER = lazy_pattern(r"\d+(\.\d*)?([eE][-+]?\d+)?|\.\d+")


@rule(severity=Severity.ERROR, id="megatron/data-weights", kind=Kind.RELEASE, frameworks=("megatron",), reads=LISTS)
def data_weights(job: Job) -> Iterator[Finding | Unverified]:
    """The weights and paths of the datasets are not given in pairs.

    ## What it does
    In data lists that contain numbers, checks that each number precedes the path that it weights and that no path lacks
    a number. A list that consists only of paths is blended by size and is not reported.

    ## Why is this bad?
    If a list does not consist of pairs, all its entries are treated as paths, so Megatron looks for files named after
    the numbers, and the run fails when the dataset is built, after the model.

    ## Example
        --data-path 0.7 web_text_document books_text_document

    Use instead:

        --data-path 0.7 web_text_document 0.3 books_text_document

    ## References
    Megatron-LM d98e8a6, megatron/core/datasets/utils.py:68, get_blend_from_list; core_v0.12.1 :63
    """
    if job.arguments.get("entry_is_known").raw is not True:
        return
    for name in LISTS:
        value = job.arguments.given(name)
        if value is None:
            continue
        listed = value.raw if isinstance(value.raw, list) else []
        if job.arguments.open or not value.known or not all(isinstance(entry, str) for entry in listed):
            yield Unverified(value.because or "the paths are unknown")
            continue
        count = sum(numbers := [bool(_NUMBER.fullmatch(entry)) for entry in listed])
        if len(listed) > 1 and count and numbers != [True, False] * (len(listed) // 2):
            paths = len(listed) - count
            numbered = Message.plural(count, "{count} number", "{count} numbers", count=count)
            named = Message.plural(paths, "{paths} path", "{paths} paths", paths=paths)
            message = Message(
                "{flag} has {numbers} for {paths}; either every path or no path must have a weight before it",
                flag=job.arguments.spell(name),
                numbers=numbered,
                paths=named,
            )
            yield Finding(message, job.place(value), key=value.key)


@rule(severity=Severity.WARNING, id="megatron/data-path-repeated", frameworks=("megatron",), reads=LISTS)
def data_path_repeated(job: Job) -> Iterator[Finding | Unverified]:
    """The same dataset is listed twice.

    ## What it does
    Finds a path that occurs more than once in `--data-path` or in the list of one split, if every path has a weight.

    ## Why is this bad?
    A line was probably copied without changing its path. The intended dataset is never read, and the repeated one has
    the weight of both.

    ## Example
        --data-path 0.7 web_text_document 0.3 web_text_document

    Use instead:

        --data-path 0.7 web_text_document 0.3 books_text_document

    ## References
    Megatron-LM core_v0.16.0, megatron/core/datasets/utils.py, get_blend_from_list: one dataset per pair
    """
    for name in LISTS:
        value = job.arguments.given(name)
        if value is None:
            continue
        if not value.known:
            yield Unverified(value.because or "the paths are unknown")
            continue
        listed = value.raw if isinstance(value.raw, list) else []
        if not all(isinstance(entry, str) for entry in listed) or len(listed) % 2:
            continue
        weights, paths = listed[::2], listed[1::2]
        if not all(_NUMBER.fullmatch(weight) for weight in weights):
            continue
        if (twice := next((path for i, path in enumerate(paths) if path in paths[:i]), None)) is not None:
            message = Message(
                "{flag} lists {path} more than once; another dataset may have been meant",
                flag=job.arguments.spell(name),
                path=twice,
            )
            yield Finding(message, job.place(value), key=value.key)


_ONE_WORD = lazy_pattern(
    r"\s*[0-9][0-9.eE+-]{0,30}\s{1,20}[^\s0-9]\S*(?:\s{1,20}[0-9][0-9.eE+-]{0,30}\s{1,20}[^\s0-9]\S*){0,500}\s*"
)
"""Pairs of a weight and a path."""


@rule(id="megatron/data-path-one-word", severity=Severity.ERROR, frameworks=("megatron",), reads=LISTS)
def data_path_one_word(job: Job) -> Iterator[Finding | Unverified]:
    """Quotes turn the weights and paths of several datasets into one word.

    ## What it does
    Finds a `--data-path` with a single word that consists of weights and paths with spaces between them. Only launches
    of `pretrain_gpt.py` in scripts and commands are checked, because other programs may split the word. Launches with
    `--yaml-cfg` ignore the option.

    ## Why is this bad?
    Megatron reads the word as the path of one dataset. No file has this name, and the run stops when the dataset is
    built, after the model.

    ## Example
        DATA="0.7 /data/web_text_document 0.3 /data/books_text_document"
        torchrun pretrain_gpt.py --data-path "$DATA"

    Use instead:

        DATA="0.7 /data/web_text_document 0.3 /data/books_text_document"
        torchrun pretrain_gpt.py --data-path $DATA

    ## References
    Megatron-LM core_v0.16.0, megatron/core/datasets/utils.py, get_blend_from_list: one word is one path
    """
    if job.arguments.get("entry").raw != "pretrain_gpt.py" or job.documents[0].kind == "yaml":
        return
    if job.arguments.given("yaml_cfg") is not None or job.arguments.given("mock_data") is not None:
        return
    for name in LISTS:
        value = job.arguments.given(name)
        if value is None:
            continue
        if not value.known:
            yield Unverified(value.because or "the paths are unknown")
            continue
        listed = value.raw if isinstance(value.raw, list) else []
        if len(listed) == 1 and isinstance(listed[0], str) and _ONE_WORD.fullmatch(listed[0]):
            message = Message(
                "the value of {flag} is one quoted word with spaces, which is read as a single path; without the quotes it is a list",
                flag=job.arguments.spell(name),
            )
            yield Finding(message, job.place(value), key=value.key)
