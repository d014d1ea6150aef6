"""Checks of variables with which the communication library starts."""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.job import OF_ENVIRONMENT

CONNECT = "HCCL_CONNECT_TIMEOUT"
RANGES = {
    CONNECT: (120, 7200),
    "HCCL_BUFFSIZE": (1, 2**32 - 1),
    "HCCL_IF_BASE_PORT": (1024, 65520),
    "HCCL_RDMA_TC": (0, 255),
    "HCCL_RDMA_SL": (0, 7),
    "HCCL_RDMA_TIMEOUT": (5, 24),
    "HCCL_RDMA_RETRY_CNT": (1, 7),
    "HCCL_WHITELIST_DISABLE": (0, 1),
}
"""Numbers that HCCL reads, with the least and the most that it accepts."""
WITHOUT_UNIT = ("HCCL_BUFFSIZE",)
"""Variables that another check compares with numbers."""
CHOICES = {
    "HCCL_DETERMINISTIC": ("true", "false", "strict"),
    "HCCL_INTER_HCCS_DISABLE": ("true", "false"),
    "HCCL_SOCKET_FAMILY": ("AF_INET", "AF_INET6"),
}
"""Words that HCCL reads; those in lower case may be written in any case."""
ASCEND = frozenset({"mindspeed", "mindformers", "mindspeed-llm-fsdp2", "mindspeed-mm"})
"""Frameworks that run on NPUs."""
GPUS = frozenset({"megatron", "nemo-rl", "megatron-bridge"})
"""Frameworks that never read these variables."""


@rule(id="hccl-variable-refused", severity=Severity.ERROR, sometimes=(Severity.WARNING,), reads=(OF_ENVIRONMENT,))
def hccl_variable_refused(job: Job) -> Iterator[Finding]:
    """A variable of the launch has a value that HCCL rejects when it starts.

    ## What it does
    Compares `HCCL_CONNECT_TIMEOUT`, `HCCL_IF_BASE_PORT`, `HCCL_BUFFSIZE` and the `HCCL_RDMA_` variables with the ranges
    that HCCL accepts, and `HCCL_DETERMINISTIC`, `HCCL_INTER_HCCS_DISABLE` and `HCCL_SOCKET_FAMILY` with its words. The
    finding is an error for `HCCL_CONNECT_TIMEOUT`, whose range is the same in all releases of CANN, if the run has
    several NPUs. Runs of frameworks for GPUs are not checked.

    ## Why is this bad?
    HCCL reads all variables when it creates the first communicator. If one is out of range, it fails with EI0001, and
    so does every rank.

    ## Example
        export HCCL_CONNECT_TIMEOUT=36000
        torchrun --nproc_per_node 8 pretrain_gpt.py

    Use instead:

        export HCCL_CONNECT_TIMEOUT=7200
        torchrun --nproc_per_node 8 pretrain_gpt.py

    ## References
    CANN, Environment Variables, HCCL_CONNECT_TIMEOUT: 120 to 7200; hcomm, src/platform/common/externalinput.cc,
    InitEnvVarParam
    """
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    ascend = not ASCEND.isdisjoint((*job.versions, job.target.framework))
    if not ascend and job.target.framework in GPUS:
        return
    world = job.plan.layout.world.raw
    several = ascend and isinstance(world, int) and world > 1
    for name, word in given.items():
        if (
            not name.startswith("HCCL_")
            or not word.text
            or word.maybe
            or (expected := _expected(name, word.text)) is None
        ):
            continue
        message = Message(
            "{name} is {text}, but HCCL accepts only {expected}", name=name, text=word.text, expected=expected
        )
        severity = Severity.ERROR if several and name == CONNECT else Severity.WARNING
        yield Finding(message, word.span, severity=severity)


def _expected(name: str, text: str) -> Message | str | None:
    """What HCCL accepts instead of a value; None if it accepts the value."""
    if name in CHOICES:
        words = CHOICES[name]
        return None if text in words or text.lower() in words else ", ".join(words)
    if name not in RANGES:
        return None
    least, most = RANGES[name]
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else None
    if number is None and name in WITHOUT_UNIT:
        return None
    if number is None or not least <= number <= most:
        return Message("numbers from {least} to {most}", least=least, most=most)
    return Message("multiples of 4") if name == "HCCL_RDMA_TC" and number % 4 else None
