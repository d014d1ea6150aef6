"""Checks for an ignored learning rate and a missing loss scale."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

HALF = "float16"


@rule(severity=Severity.NOTE, id="mindformers/ignored-rate", frameworks=("mindformers",), reads=("lr_schedule",))
def ignored_rate(job: Job) -> Iterator[Finding]:
    """The learning rate of the optimizer is ignored because the schedule sets a different one.

    ## What it does
    Finds training runs with a `learning_rate` in `optimizer` and another one in `lr_schedule`.

    ## Why is this bad?
    With a schedule, the optimizer is built with the rates of the schedule, and its own `learning_rate` is never read.
    Changing that setting does not change the rate of the run.

    ## Example
        optimizer: {type: AdamW, learning_rate: 1.0e-4}
        lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-6, warmup_steps: 0}

    Use instead:

        optimizer: {type: AdamW}
        lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-4, warmup_steps: 0}

    ## References
    MindFormers v1.7.0, mindformers/trainer/base_trainer.py:601, create_optimizer_scheduler: default_args
    """
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or a.get("training").raw is not True:
        return
    own, used = a.given("optimizer.learning_rate"), a.given("lr_schedule.learning_rate")
    if own is None or used is None or a.given("lr_schedule.type") is None or a.given("grouped_lr_schedule") is not None:
        return
    rates = [value.raw for value in (own, used)]
    if not all(isinstance(rate, float) for rate in rates) or rates[0] == rates[1]:
        return
    message = Message(
        ("optimizer.learning_rate {own} is not used, because lr_schedule.learning_rate is {used}"),
        own=rates[0],
        used=rates[1],
    )
    yield Finding(message, job.place(own, used), key=own.key)


@rule(severity=Severity.WARNING, id="mindformers/half-unscaled", frameworks=("mindformers",), reads=("runner_wrapper",))
def half_unscaled(job: Job) -> Iterator[Finding]:
    """The network computes in float16, but the loss is not scaled.

    ## What it does
    Finds training runs that compute in float16, which is the default of most network classes, and whose
    `MFTrainOneStepCell` has a `scale_sense` of 1, which is also the default.

    ## Why is this bad?
    Float16 gradients below 6e-8 are rounded to 0. Without a loss scale, most of them are lost, and the weights hardly
    move.

    ## Example
        model: {model_config: {type: LlamaConfig, compute_dtype: float16}}
        runner_wrapper: {type: MFTrainOneStepCell, scale_sense: 1.0}

    Use instead `compute_dtype: bfloat16`, or:

        runner_wrapper:
          type: MFTrainOneStepCell
          scale_sense: {type: DynamicLossScaleUpdateCell, loss_scale_value: 65536, scale_factor: 2, scale_window: 1000}

    ## References
    MindFormers v1.7.0, mindformers/wrapper/wrapper.py:238, MFTrainOneStepCell: scale_sense=1.0
    """
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or a.get("training").raw is not True or a.open:
        return
    given, wrapper = a.given("model.model_config.compute_dtype"), a.given("runner_wrapper.type")
    kind = given if given is not None else a.get("model.model_config.compute_dtype")
    scale = a.given("runner_wrapper.scale_sense")
    if kind.raw != HALF or wrapper is None or wrapper.raw != "MFTrainOneStepCell":
        return
    if scale is None or (scale.raw == 1 and not isinstance(scale.raw, bool)):
        message = (
            Message("compute_dtype is float16 and scale_sense is 1, so small gradients become 0")
            if given is not None
            else Message("compute_dtype defaults to float16 and scale_sense is 1, so small gradients become 0")
        )
        yield Finding(message, job.place(given, scale, wrapper), key=kind.key)
