"""Checks of the time that a run spends on evaluation."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown

TRIAL = 1_000
"""Runs with fewer iterations are trials, which may evaluate as often as they like."""
READS = ("eval_iters", "eval_interval")
SEPARATE = ("valid_data_path", "per_split_data_args_path", "mock_data")


@rule(severity=Severity.WARNING, id="megatron/evaluation-longer-than-training", frameworks=("megatron",), reads=READS)
def evaluation_longer_than_training(job: Job) -> Iterator[Finding | Unverified]:
    """The run spends more iterations on evaluation than on training.

    ## What it does
    Compares `--eval-iters` with `--eval-interval`, if both are given, in runs of 1,000 iterations or more that have
    validation data and reach the first evaluation.

    ## Why is this bad?
    Each evaluation reads `--eval-iters` global batches and is repeated every `--eval-interval` iterations. If
    `--eval-iters` is larger, the devices spend a large part of the time on evaluation. A digit may be missing, or the
    two values may be swapped.

    ## Example
        --train-iters 50000 --eval-interval 10 --eval-iters 1000

    Use instead:

        --train-iters 50000 --eval-interval 1000 --eval-iters 10

    ## References
    Megatron-LM core_v0.16.0, megatron/training/training.py, train: evaluate_and_print_results every eval_interval
    """
    a = job.arguments
    often, long = a.given("eval_interval"), a.given("eval_iters")
    if often is None or long is None or a.get("skip_train").raw is True or not _validates(job):
        return
    iterations = _iterations(job)
    unknown = next((v for v in (often, long) if isinstance(v.raw, Unknown)), None)
    if unknown is not None or iterations is None:
        yield Unverified(unknown.because if unknown is not None else "the length of the run")
        return
    if not isinstance(often.raw, int) or not isinstance(long.raw, int) or often.raw <= 0:
        return
    if long.raw > often.raw and often.raw < iterations and iterations >= TRIAL:
        message = Message(
            "every {often} iterations of training are followed by {long} iterations of evaluation, because "
            "--eval-iters is larger than --eval-interval",
            long=long.raw,
            often=often.raw,
        )
        yield Finding(message, job.place(long), related=often.related, key=long.key)


def _iterations(job: Job) -> int | None:
    """The length of the run; None if it is unknown."""
    length = job.arguments.get("train_iters").raw
    samples, batch = job.arguments.get("train_samples").raw, job.arguments.get("global_batch_size").raw
    if isinstance(length, int):
        return length
    return samples // batch if isinstance(samples, int) and isinstance(batch, int) and batch > 0 else None


def _validates(job: Job) -> bool:
    """Whether the run has validation data."""
    if any(job.arguments.given(name) is not None for name in SEPARATE):
        return True
    split = job.arguments.given("split")
    if split is None:
        return True
    shares = str(split.raw).split(",") if not isinstance(split.raw, Unknown) else []
    return len(shares) > 1 and shares[1].strip().strip("0.") != ""
