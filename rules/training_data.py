"""Checks that training data files exist, are complete, and contain enough data."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.job import Draw
from preflight.source.resolved_words import Needed, Reason


@rule(id="data-cut-off", severity=Severity.ERROR, reads=("(site)",))
def data_cut_off(job: Job) -> Iterator[Finding]:
    """A dataset has fewer tokens than its index counts.

    ## What it does
    With `--site`, compares the size of `PREFIX.bin` with the end of the last sequence in `PREFIX.idx`.

    ## Why is this bad?
    An empty file stops the run at once. A truncated file lets the run start, but stops it at the first sample past the
    cut, possibly hours later, because samples are drawn in random order.

    ## Example
    With an index that counts 400,000 bytes of tokens and a `.bin` file of 399,872 bytes, under `--site`:

        --data-path /data/wiki_text_document

    Instead, use the complete file: copy it again, and compare the sizes.

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py, _MMapBinReader
    """
    for file in job.site.data if job.site is not None else ():
        if file.fault not in ("short", "empty"):
            continue
        message = Message("{path}.bin is empty", path=file.path)
        if file.fault == "short":
            message = Message(
                "{path}.bin has {size:,} bytes, but its index expects {needed:,}, so the run fails when it reads the "
                "last {lost:,}",
                path=file.path,
                size=file.size,
                needed=file.needed,
                lost=file.needed - file.size,
            )
        yield Finding(message, job.place(job.arguments.given(file.argument)))


BROKEN = {
    "header": "{path}.idx is not a data index: {because}",
    "version": "{path}.idx has a version that the loader rejects: {because}",
    "type": "{path}.idx uses a type that the loader does not support: {because}",
    "cut-off": "{path}.idx is truncated: {because}",
    "documents": "{path}.idx is incomplete: {because}",
}


@rule(id="data-index-broken", severity=Severity.ERROR, reads=("(site)",))
def data_index_broken(job: Job) -> Iterator[Finding]:
    """The loader cannot read the index of a dataset.

    ## What it does
    With `--site`, checks what the loader asserts about `PREFIX.idx`: the header, the version, the code of the token
    type, the file size, and that the last document ends with the last sequence.

    ## Why is this bad?
    The loader stops the run when it builds its datasets. An index whose documents end too early is the result of a
    merge or a copy that did not finish.

    ## Example
    With an index that was only half copied, under `--site`:

        --data-path /data/wiki_text_document

    Instead, use an index that `tools/preprocess_data.py` or `tools/merge_datasets.py` has finished writing.

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py:262, _IndexReader, and :660, IndexedDataset
    """
    for file in job.site.data if job.site is not None else ():
        if (template := BROKEN.get(file.fault)) is not None:
            message = Message(template, path=file.path, because=file.because)
            yield Finding(message, job.place(job.arguments.given(file.argument)))


MISSING = {
    "missing": "{path}.idx does not exist (checked on {host})",
    "no-tokens": "{path}.idx exists, but {path}.bin does not (checked on {host})",
    "no-list": "{path} does not exist (checked on {host})",
}


@rule(id="data-missing", severity=Severity.ERROR, reads=("(site)",))
def data_missing(job: Job) -> Iterator[Finding | Unverified]:
    """The training data does not exist at the given path.

    ## What it does
    With `--site`, looks for `PREFIX.idx` and `PREFIX.bin` of each dataset that the run names, and for the files that
    list datasets. A path whose parent folders do not exist on this machine is not checked, because the job may run
    elsewhere; neither is a path in an empty folder, where a file system may be mounted on the job's nodes, nor a link
    to a place that this machine does not have.

    ## Why is this bad?
    The loader stops the run when it builds its datasets, after the job has waited in the queue, started all processes
    and built the model.

    ## Example
    With `/data/wiki_text_document.idx` but no `/data/wiki_text_document.bin`, under `--site`:

        --data-path /data/wiki_text_document

    Instead, use a prefix for which both files exist.

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py:698, IndexedDataset.initialize
    """
    for file in job.site.data if job.site is not None else ():
        if file.fault == "unread":
            yield Unverified(file.because)
        elif (template := MISSING.get(file.fault)) is not None:
            host = job.site.host if job.site is not None else ""
            yield Finding(Message(template, path=file.path, host=host), job.place(job.arguments.given(file.argument)))


IDS = 1 << 16
NO_IDS = ("float32", "float64", "uint8", "int8")
ROWS = 65_536 + 4_096
"""A 16-bit vocabulary has at most this many embedding rows after padding; only more rows show a different one."""


@rule(id="data-of-other-vocabulary", severity=Severity.WARNING, reads=("(site)",))
def data_of_other_vocabulary(job: Job) -> Iterator[Finding | Unverified]:
    """The token type of a dataset does not match the vocabulary of the run.

    ## What it does
    With `--site`, compares the token type in `PREFIX.idx` with the size of the vocabulary: 16 bits hold 65,536 ids, and
    `tools/preprocess_data.py` uses 16 bits only for a vocabulary of fewer than 65,500. 8-bit and floating-point tokens
    are reported as well.

    ## Why is this bad?
    The data was made with a different tokenizer. The loader reads it without a warning, and the network learns from ids
    that mean something else.

    ## Example
    With 16-bit tokens in the data, under `--site`:

        --vocab-size 128256 --data-path /data/llama2_text_document

    Instead, use data that was made with the tokenizer of the run.

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py, DType.optimal_dtype
    """
    files = job.site.data if job.site is not None else ()
    for file in files:
        if file.dtype in NO_IDS:
            message = Message(
                "{path}.idx contains {dtype}, which cannot be token ids", path=file.path, dtype=file.dtype
            )
            yield Finding(message, job.place(job.arguments.given(file.argument)))
    narrow = [file for file in files if file.dtype in ("uint16", "int16")]
    if not narrow:
        return
    if (found := known(job.plan.model.vocab)) is None:
        yield Unverified(Reason("the vocabulary size is unknown", Needed.VOCABULARY))
        return
    for file in narrow:
        if found[0] > ROWS:
            message = Message(
                "{path}.idx contains {dtype} with at most {ids:,} ids, but the vocabulary has {vocabulary:,}, so it "
                "was created with another tokenizer",
                path=file.path,
                dtype=file.dtype,
                ids=IDS,
                vocabulary=found[0],
            )
            yield Finding(message, job.place(job.arguments.given(file.argument)))


FEW = 2
"""At least this many passes are reported."""


@rule(id="data-repeated", severity=Severity.NOTE, reads=("(site)",))
def data_repeated(job: Job) -> Iterator[Finding]:
    """The run passes over its training data more than once.

    ## What it does
    With `--site`, reports how often the run passes over each of its datasets. The number is computed as the loader
    computes it: samples times sequence length, plus one token, divided by the tokens of the training split.

    ## Why is this bad?
    Repetition can be intended, because small datasets are often repeated on purpose. A large number of passes often
    means that a dataset is smaller than expected, for example after an incomplete copy.

    ## Example
    With 50,000 tokens in the dataset, under `--site`:

        --train-iters 1000 --global-batch-size 32 --seq-length 1024 --data-path /data/small_text_document

    Instead, use more data or fewer iterations, unless the repetition is intended.

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/gpt_dataset.py, GPTDataset._get_num_epochs
    """
    for draw in job.site.draws if job.site is not None else ():
        if draw.split == "training" and draw.samples is not None and draw.epochs >= FEW:
            message = Message(
                "{samples:,} samples are {epochs:,} passes over the {tokens:,} training tokens of {name}",
                samples=draw.samples,
                epochs=draw.epochs,
                tokens=draw.tokens,
                name=draw.name,
            )
            yield Finding(message, job.place(job.arguments.given(draw.argument)))


@rule(id="data-runs-out", severity=Severity.ERROR, reads=("(site)",))
def data_runs_out(job: Job) -> Iterator[Finding | Unverified]:
    """The run needs more data than the datasets contain.

    ## What it does
    With `--site`, adds up the samples of datasets that are given without weights. The loader makes a single pass over
    these datasets; it repeats only a dataset that is given alone, or datasets with weights.

    ## Why is this bad?
    The loader runs out of samples, and the run stops partway with `StopIteration`.

    ## Example
    With three datasets of 1,000 samples each, under `--site`:

        --train-iters 100 --global-batch-size 64 --data-path /data/a /data/b /data/c

    Instead, give weights so that the loader repeats the data:

        --train-iters 100 --global-batch-size 64 --data-path 1 /data/a 1 /data/b 1 /data/c

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/blended_megatron_dataset_builder.py, _build_blended_dataset_splits
    """
    site = job.site
    once = [draw for draw in site.draws if draw.samples is None and draw.split == "training"] if site else []
    if len(once) < 2 or site is None:
        return
    steps, batch = job.arguments.get("train_iters").raw, job.plan.batch.total.raw
    samples = job.arguments.get("train_samples").raw
    wanted = samples if isinstance(samples, int) else None
    if wanted is None and isinstance(steps, int) and isinstance(batch, int):
        wanted = steps * batch
    if wanted is None or job.arguments.get("dataloader_type").raw not in (None, "single"):
        return
    lost = next((file for file in site.data if file.fault not in ("", "short")), None)
    if lost is not None:
        yield Unverified(lost.because or f"{lost.name} is not read")
        return
    there = sum(draw.length for draw in once)
    if there < wanted:
        message = Message(
            "the run trains on {wanted:,} samples, but one pass over its {count} datasets has only {there:,}, "
            "because datasets without weights are not repeated",
            wanted=wanted,
            count=len(once),
            there=there,
        )
        yield Finding(message, job.place(job.arguments.given(once[0].argument)))


ENDLESS = (
    "the {split} split of {name} has no tokens ({sequences:,} sequences in all), so the loader searches for samples "
    "forever"
)
REFUSED = (
    "the {split} split of {name} has no samples ({sequences:,} sequences in all): a blend without weights rejects "
    "such a part"
)


@rule(id="data-split-empty", severity=Severity.ERROR, reads=("(site)",))
def data_split_empty(job: Job) -> Iterator[Finding]:
    """A split of a dataset has no tokens, so the run never starts.

    ## What it does
    With `--site`, counts the tokens of each split that the run builds. The shares given by `--split` are rounded to
    whole sequences: one percent of a dataset with 40 sequences rounds to zero.

    ## Why is this bad?
    The loader adds passes over the split until it has enough tokens. For a split without tokens, this loop never ends,
    so all processes wait until the job reaches its time limit. Datasets without weights are weighted by their number
    of samples, and a dataset without samples is rejected.

    ## Example
    With 40 sequences in the dataset, under `--site`:

        --split 990,10,0

    Use instead:

        --split 90,10,0

    ## References
    Megatron-LM core_v0.19.0, megatron/core/datasets/gpt_dataset.py, GPTDataset._get_num_epochs, and
    megatron/core/datasets/blended_dataset.py, BlendedDataset
    """
    site = job.site
    for draw in site.draws if site is not None else ():
        if draw.epochs and (draw.length or draw.samples is not None or not _blended(job, draw)):
            continue
        sequences = next((file.sequences for file in site.data if file.name == draw.name), 0) if site else 0
        message = Message(
            ENDLESS if not draw.epochs else REFUSED,
            split=draw.split,
            name=draw.name,
            sequences=sequences,
        )
        split = job.arguments.given("split")
        shared = draw.argument in ("data_path", "data_args_path")
        yield Finding(message, job.place(split if shared else None, job.arguments.given(draw.argument)))


def _blended(job: Job, draw: Draw) -> bool:
    """Whether the dataset is one of several without weights, which are weighted by their number of samples."""
    draws = job.site.draws if job.site is not None else ()
    return len({one.name for one in draws if one.argument == draw.argument and one.split == draw.split}) > 1
