"""Two places state different numbers of devices.

## What it does
Compares the number of processes that the launcher starts with the devices that the job asks for (`#SBATCH` lines, the
options of srun).

## Why is this bad?
More processes than devices cannot start. Fewer leave devices idle that the job has paid its queue wait for.

## Example
    #SBATCH --nodes=4 --gpus-per-node=8
    srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py
Use instead:
    #SBATCH --nodes=4 --gpus-per-node=8
    srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py

## References
Slurm, sbatch(1), --nodes, --gpus-per-node
PyTorch, torch/distributed/run.py: the world is nnodes x nproc_per_node
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.dialects.machine import SOURCE
from preflight.loaders.document import Count


@rule(severity=Severity.WARNING, after=("launcher-beyond-allocation",))
def check(job: Job) -> Iterator[Finding]:
    launch = job.documents[0].launch
    known = [
        count
        for count in (launch.world if launch is not None else ())
        if isinstance(count.value, int) and not count.placeholder
    ]
    known += [Count(value.raw, value.span, value.note) for value in job.cluster.said if value.note == SOURCE]
    seen: dict[str, Count] = {count.source: count for count in reversed(known)}
    if len({count.value for count in seen.values()}) < 2:
        return
    first, other = known[0], next(count for count in known[1:] if count.value != known[0].value)
    span = first.span or job.start
    related = (Related(other.span, f"{other.value} devices"),) if other.span is not None else ()
    yield Finding(
        Message(
            "{one} starts {processes} processes, {other} requests {devices} devices",
            one=first.source,
            processes=first.value,
            other=other.source,
            devices=other.value,
        ),
        span,
        related,
    )
