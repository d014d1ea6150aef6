"""A launcher needs more nodes, tasks or devices than the job has.

## What it does
Compares what torchrun, msrun and the like start with what the same file asks for: the nodes, tasks and devices of
`#SBATCH` lines and of srun, the pods of a Kubernetes job and their devices, the devices that `CUDA_VISIBLE_DEVICES` or
`ASCEND_RT_VISIBLE_DEVICES` leaves visible. Numbers that the environment replaces (`${NNODES:-2}`) are not compared.
Where the caller states a number of nodes (`--nodes`, or the scheduler at the gate), it replaces that of the `#SBATCH`
lines, as `sbatch --nodes` does.

## Why is this bad?
A rendezvous of four nodes in a job of two waits until its timeout. A process whose local rank has no device ends the
job with "invalid device ordinal" before anything is built.

## Example
    #SBATCH --nodes=2 --gpus-per-node=8
    srun torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py

Use instead:

    #SBATCH --nodes=4 --gpus-per-node=8
    srun torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py

## References
PyTorch 010929f, torch/distributed/run.py: the rendezvous waits for min_nodes;
Megatron-LM core_v0.16.0, megatron/training/initialize.py:331, _initialize_distributed: set_device(local_rank);
CUDA C++ Programming Guide, section CUDA Environment Variables, CUDA_VISIBLE_DEVICES
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("launcher-beyond-allocation")
