"""The batch of a run. The global batch is one micro-batch per data-parallel rank unless it is set."""

from __future__ import annotations

import re

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives


@derives("global_batch_size", "is_global_batch_size_explicitly_specified")
def global_batch(run: Run) -> None:
    """Evaluation uses the training batch size unless it has its own."""
    given = run.value("global_batch_size")
    run.derive("is_global_batch_size_explicitly_specified", not given.known or given.raw is not None)
    if run.global_batch_size is None:
        micro, data = run.micro_batch_size, run.data_parallel_size
        run.derive("global_batch_size", micro * data, f"micro-batch {micro} × data parallel {data}")


@derives("eval_global_batch_size")
def eval_global_batch(run: Run) -> None:
    """Evaluation uses the training batch unless it has its own."""
    if run.eval_global_batch_size is None and "eval_global_batch_size" in run.table.defaults:
        run.derive("eval_global_batch_size", run.global_batch_size, "global batch size", of="global_batch_size")


@derives("eval_micro_batch_size")
def eval_micro_batch(run: Run) -> None:
    """The same for its micro-batch."""
    if run.eval_micro_batch_size is None and "eval_micro_batch_size" in run.table.defaults:
        run.derive("eval_micro_batch_size", run.micro_batch_size, "micro-batch size", of="micro_batch_size")


@derives("num_microbatches")
def microbatches(run: Run) -> None:
    """Micro-batches per step on each data-parallel rank; with a batch-size schedule, those of its first phase."""
    size = run.micro_batch_size * run.data_parallel_size * run.gtp_weight_remat_size
    if size < 1:
        raise NotKnown("the micro-batch size is not positive")
    batch = run.global_batch_size
    if run.step_batch_size_schedule is not None:
        batch = schedule_of(run)[0][1]
    elif run.is_core("<0.18") and run.rampup_batch_size:
        batch = int(run.rampup_batch_size[0])
    if run.step_batch_size_schedule is not None:  # rounded down silently, even to zero
        run.derive("num_microbatches", batch // size, f"{batch} samples / {size}")
        return
    if batch % size and run.decrease_batch_size_if_needed:
        batch = batch // size * size
    if batch % size or batch < size:
        raise NotKnown(f"a global batch of {batch} is not a multiple of {size}")
    run.derive("num_microbatches", batch // size, f"{batch} samples / {size}")


@derives("train_iters")
def train_iters(run: Run) -> None:
    """Converts a number of samples to a number of steps."""
    if (
        run.train_iters is not None
        or not run.train_samples
        or run.skip_train
        or (run.is_core("<0.18") and run.rampup_batch_size)
    ):
        return
    if run.step_batch_size_schedule is None:
        run.derive(
            "train_iters",
            run.train_samples // run.global_batch_size,
            "train samples / global batch",
            of="train_samples",
        )
        return
    steps = consumed = 0
    phases = schedule_of(run)
    for (_, size), end in zip(phases, [*(start for start, _ in phases[1:]), run.train_samples], strict=True):
        more = -(-(min(end, run.train_samples) - consumed) // size)
        if more > 0:
            steps, consumed = steps + more, consumed + more * size
    run.derive("train_iters", steps, "steps of the batch size schedule", of="train_samples")


def schedule_of(run: Run) -> list[tuple[int, int]]:
    """The phases of --step-batch-size-schedule: the first sample and the batch size. Thresholds are in tokens."""
    phases = []
    for part in run.step_batch_size_schedule.split():
        found = re.fullmatch(r"([\d.]+)([KMBT]?):(\d+)", part)
        if found is None or int(found[3]) < 1:
            raise NotKnown("the batch size schedule cannot be read")
        threshold = int(float(found[1]) * {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[found[2]])
        phases.append((threshold // run.seq_length, int(found[3])))
    if not phases:
        raise NotKnown("the batch size schedule is empty")
    return phases


@derives("lr_decay_steps", "lr_warmup_steps", "lr_wsd_decay_steps")
def schedule(run: Run) -> None:
    """Decay and warm-up in samples, as the scheduler receives them."""
    batch = run.global_batch_size
    by_iterations = run.written.get("train_iters") is not None and run.train_iters
    if by_iterations:
        decay = (run.train_iters if run.lr_decay_iters is None else run.lr_decay_iters) * batch
        wsd = run.lr_wsd_decay_iters * batch if run.lr_wsd_decay_iters is not None else None
        warmup, of = run.lr_warmup_iters * batch, "lr_decay_iters"
    elif run.train_samples:
        decay = run.train_samples if run.lr_decay_samples is None else run.lr_decay_samples
        warmup, wsd, of = run.lr_warmup_samples, run.lr_wsd_decay_samples, "lr_decay_samples"
    elif run.value("entry_trains").raw is False:
        return
    else:
        raise NotKnown("neither training iterations nor samples are given")
    if run.lr_warmup_fraction is not None:
        warmup = run.lr_warmup_fraction * decay
    run.derive("lr_decay_steps", decay, "in samples", of=of)
    run.derive("lr_warmup_steps", warmup, "in samples")
    run.derive("lr_wsd_decay_steps", wsd, "in samples")


STEPS = (global_batch, eval_global_batch, eval_micro_batch, microbatches, train_iters, schedule)
