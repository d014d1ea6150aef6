"""A variable that configures the launched processes is not exported.

## What it does
Finds assignments to variables of CUDA, NCCL, HCCL, PyTorch, Ascend and the frameworks that the script neither exports
nor uses itself.

## Why is this bad?
The launched processes do not see the variable, so it changes nothing. Megatron, for one, stops when
`CUDA_DEVICE_MAX_CONNECTIONS` is missing where it needs it.

## Example
    CUDA_DEVICE_MAX_CONNECTIONS=1
    torchrun pretrain_gpt.py $GPT_ARGS
Use instead:
    export CUDA_DEVICE_MAX_CONNECTIONS=1
    torchrun pretrain_gpt.py $GPT_ARGS

## Fix safety
Unsafe: the processes see a variable that they did not see before.

## References
GNU Bash Reference Manual, section 3.7.4, Environment
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule

# fmt: off
PREFIXES = ("CUDA_", "NCCL_", "HCCL_", "TORCH_", "PYTORCH_", "ASCEND_", "NVTE_", "NPU_", "MS_", "TASK_QUEUE_",
    "CPU_AFFINITY_", "GLOO_", "OMP_", "ACLNN_")
# fmt: on
OF_THE_SCRIPT = re.compile(r"\w+_(?:IMAGE|VERSION|VER|TAG|CONTAINER|REPO|URL|BRANCH|COMMIT|ARGS|OPTS|OPTIONS)")
"""Names of what a script installs, starts or passes on: no process reads them."""


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    for finding in job.noticed("not-exported"):
        name = str(finding.values["name"])
        if name.startswith(PREFIXES) and not OF_THE_SCRIPT.fullmatch(name):
            yield finding
