"""A value of the optimizer or its schedule is valid, but probably not intended.

## What it does
For training runs with an optimizer of the Adam family, checks for `betas` (or `beta1` and `beta2`) where the first is
greater than the second, a learning rate of at least 0.05 (0.01 if `run_mode` is `finetune` or a checkpoint is loaded),
a weight decay of at least 5, an `eps` of at least 0.1, and a `warmup_ratio` of at least 0.3. A first beta below 0.5 is
also reported.

## Why is this bad?
The framework accepts these values. With swapped betas, Adam averages gradients over more steps than their squares,
which violates its convergence bound. With such a high learning rate, training diverges. Weight decay is a factor, not a
percentage. With a large `eps`, weights move by far less than the learning rate. A run that warms up for most of its
steps hardly trains at its full rate.

## Example
    optimizer: {type: AdamW, betas: [0.95, 0.9]}
    lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.03, total_steps: -1}

Use instead:

    optimizer: {type: AdamW, betas: [0.9, 0.95]}
    lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.03, total_steps: -1}

## References
https://arxiv.org/abs/1412.6980v9#section-4
MindFormers v1.5.0, mindformers/core/optim/adamw.py, AdamW; mindformers/core/lr/lr_schedule.py, _get_warmup_steps
"""

import math
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.run.version_ranges import matches

ADAM = "adam"
HIGHEST_RATE = 0.05
"""More than eight times 0.005, the highest rate in the published configs."""
HIGHEST_TO_FINE_TUNE = 0.01
"""A hundred times the rate of the published configs that fine-tune; adapters take up to 0.001."""
MOST_DECAY = 5
"""Published runs use 0.1, and a few use more than 1."""
LEAST_BETA = 0.5
"""The published configs use 0.9."""
HIGHEST_EPSILON = 0.1
"""From here on, epsilon outweighs the average of the squared gradients."""
MOST_WARMUP = 0.3
"""The longest warm-up in the published configs is a tenth of the run."""


def _largest(job: Job) -> float:
    """The largest share of the run that is not an error: before 1.6, the trainer computes the steps itself, and accepts
    more than the whole run."""
    return math.inf if matches(job.target.version, "<1.6") else 1


@rule(severity=Severity.WARNING, frameworks=("mindformers",), reads=("optimizer", "lr_schedule"))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    kind = a.given("optimizer.type")
    if a.get("training").raw is not True or kind is None or ADAM not in str(kind.raw).lower():
        return
    yield from _betas(job)
    tunes = (mode := a.given("run_mode")) is not None and mode.raw == "finetune"
    loads = bool((load := a.given("load_checkpoint")) is not None and load.raw)
    highest = HIGHEST_TO_FINE_TUNE if tunes or loads else HIGHEST_RATE
    for name in ("optimizer.learning_rate", "lr_schedule.learning_rate"):
        if (rate := _number(job, name)) is not None and rate[1] >= highest:
            message = Message(
                "{name} is {rate}, so Adam moves every weight by about this much per step; the minus sign of the "
                "exponent may be missing",
                name=name,
                rate=rate[1],
            )
            yield Finding(message, job.place(rate[0]), key=rate[0].key)
    if (decay := _number(job, "optimizer.weight_decay")) is not None and decay[1] >= MOST_DECAY:
        message = Message(
            "weight_decay is {decay}, but it is a factor, and published configs use 0.1 or less", decay=decay[1]
        )
        yield Finding(message, job.place(decay[0]), key=decay[0].key)
    if (eps := _number(job, "optimizer.eps")) is not None and eps[1] >= HIGHEST_EPSILON:
        message = Message("eps is {eps}, but usual values are 1e-8 to 1e-15; a minus sign may be missing", eps=eps[1])
        yield Finding(message, job.place(eps[0]), key=eps[0].key)
    if (ratio := _number(job, "lr_schedule.warmup_ratio")) is not None and MOST_WARMUP <= ratio[1] <= _largest(job):
        message = Message(
            "warmup_ratio is {ratio}, so the warm-up takes a large part of the run; published configs use 0.1 or less",
            ratio=ratio[1],
        )
        yield Finding(message, job.place(ratio[0]), key=ratio[0].key)


def _betas(job: Job) -> Iterator[Finding]:
    both = job.arguments.given("optimizer.betas")
    if both is not None and isinstance(both.raw, (list, tuple)) and len(both.raw) == 2:
        first, second, place = both.raw[0], both.raw[1], both
    else:
        one, two = _number(job, "optimizer.beta1"), _number(job, "optimizer.beta2")
        if one is None or two is None:
            return
        (place, first), (_, second) = one, two
    if isinstance(first, float) and isinstance(second, float) and second < first < 1:
        message = Message(
            "Adam's first beta {first} is above its second {second}, so gradients are averaged over more steps than "
            "their squares",
            first=first,
            second=second,
        )
        yield Finding(message, job.place(place), key=place.key)
    elif isinstance(first, float) and 0 < first < LEAST_BETA:
        message = Message("Adam's first beta is {first}, but 0.9 is usual; a digit may be wrong", first=first)
        yield Finding(message, job.place(place), key=place.key)


def _number(job: Job, name: str) -> tuple[Value, float] | None:
    value = job.arguments.given(name)
    if value is None or isinstance(value.raw, bool) or not isinstance(value.raw, (int, float)):
        return None
    return value, value.raw
