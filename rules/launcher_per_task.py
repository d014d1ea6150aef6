"""srun starts a launcher in every task that itself starts all the processes of a node.

## What it does
Finds torchrun behind srun where there are more tasks than torchrun has nodes.

## Why is this bad?
torchrun is one agent a node. Of several on a node the first takes the port and the devices; the others cannot bind the
port, or meet the first at the devices, and the job dies or waits until a timeout.

## Example
    #SBATCH --nodes=2 --ntasks-per-node=8
    srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py

Use instead:

    #SBATCH --nodes=2 --ntasks-per-node=1
    srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py

## References
PyTorch, torch/distributed/run.py: one agent is launched on each node
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("launcher-per-task")
