"""A batch job of several nodes starts torchrun on one of them only.

## What it does
Finds `torchrun --nnodes` above 1 in a batch script whose `#SBATCH` lines ask for several nodes, where nothing starts it
on the others: no srun, mpirun, ssh, pdsh or the like, and no rank of a node in the script.

## Why is this bad?
Slurm runs a single copy of the batch script, on one of the nodes, typically the first. torchrun has to be started on
every node; the one that is waits for the others at the rendezvous until that times out, while all nodes are paid for.

It is a warning: the script may be started once on each node by something else.

## Example
    #SBATCH --nodes=4
    torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint $HOST:29500 pretrain_gpt.py

Use instead:

    #SBATCH --nodes=4
    #SBATCH --ntasks-per-node=1
    srun torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint $HOST:29500 pretrain_gpt.py

## References
Slurm 26.11, doc/man/man1/sbatch.1:36: Slurm runs a single copy of the batch script on one of the nodes;
PyTorch 010929f, torch/distributed/run.py, Deployment: start torchrun with the same arguments on all the nodes
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("launcher-on-one-node")
