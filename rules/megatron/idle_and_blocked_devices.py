"""Checks for idle pipeline stages, and for collectives that wait for computation."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule
from preflight.job import OF_ENVIRONMENT
from preflight.source.finding import Kind


@rule(severity=Severity.WARNING, id="megatron/idle-stages", frameworks=("megatron",), reads=("global_batch_size",))
def idle_stages(job: Job) -> Iterator[Finding | Unverified]:
    """A pre-training step has only one micro-batch for all pipeline stages.

    ## What it does
    Computes the number of micro-batches per step, which is the global batch size divided by the micro-batch size and
    the data-parallel size, if `--pipeline-model-parallel-size` is greater than 1 and the command starts an entry script
    for pre-training.

    ## Why is this bad?
    A micro-batch passes through the stages one after another. With four stages, three of them are idle at any time, and
    the run trains at a quarter of its speed or less.

    ## Example
        --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 1

    Use instead:

        --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 32

    ## References
    Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2: the bubble takes (p - 1) / m of a step
    """
    batch, stages = job.plan.batch.count, job.plan.layout.pipeline
    numbers = known(batch, stages)
    if numbers is None:
        yield Unverified(batch.because or stages.because)
        return
    pretrains = str(job.arguments.get("entry").raw).startswith("pretrain") and job.arguments.given("stage") is None
    if numbers[0] == 1 < numbers[1] and pretrains and job.arguments.given("finetune") is None:
        message = Message(
            ("1 micro-batch for {stages} pipeline stages leaves all but one stage idle"), stages=numbers[1]
        )
        size = job.arguments.given("global_batch_size")
        yield Finding(message, job.place(size, stages), related=stages.related)


NAME = "CUDA_DEVICE_MAX_CONNECTIONS"
OTHERWISE = ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp", "overlap_moe_expert_parallel_comm")


@rule(
    severity=Severity.WARNING,
    id="connection-variable-left-out",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    after=("megatron/connection-variable-missing", "megatron/one-connection-missing"),
    reads=(OF_ENVIRONMENT,),
)
def connection_variable_left_out(job: Job) -> Iterator[Finding | Unverified]:
    """A script that sets other environment variables does not set CUDA_DEVICE_MAX_CONNECTIONS.

    ## What it does
    Reports the parallel size that needs `CUDA_DEVICE_MAX_CONNECTIONS=1`, in a script that exports other variables but
    not this one. The device must be known: an Ascend NPU, or a GPU that is named and older than Blackwell.

    ## Why is this bad?
    The caller of the script may set the variable. Otherwise, the run fails at launch.

    ## Example
        export NCCL_IB_TIMEOUT=22
        torchrun pretrain_gpt.py --tensor-model-parallel-size 2

    Use instead:

        export NCCL_IB_TIMEOUT=22
        export CUDA_DEVICE_MAX_CONNECTIONS=1
        torchrun pretrain_gpt.py --tensor-model-parallel-size 2

    ## Fix safety
    Unsafe and only offered, because the variable may be set outside the script.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py, validate_args; core_v0.12.1 :779
    """
    launch, device = job.documents[0].launch, job.cluster.device
    ascend = "mindspeed" in job.versions
    if launch is None or not launch.environment or NAME in tuple(job.arguments.environment):
        return
    if not ascend and (device is None or not 0 < device.architecture < 10):
        return
    layout = job.plan.layout
    if (sizes := known(layout.tensor, layout.context)) is None:
        yield Unverified(layout.tensor.because or layout.context.because)
        return
    split = layout.tensor if sizes[0] > 1 else layout.context
    others = [job.arguments.get(name) for name in OTHERWISE]
    if (sizes[0] < 2 and (ascend or sizes[1] < 2)) or any(other.known and other.raw for other in others):
        return
    if (unknown := next((other for other in others if not other.known), None)) is not None:
        yield Unverified(unknown.because)
        return
    edits = job.arguments.export(NAME, 1)
    yield Finding(
        Message("{name} is not set here, so the run fails at startup unless the environment sets it to 1", name=NAME),
        job.place(split),
        key=split.key,
        fix=Fix(f"set {NAME}=1", edits, offered=True) if edits else None,
    )
