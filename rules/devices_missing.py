"""The run asks for more devices than there are.

## What it does
Compares the devices that a front end asks for in its own keys (`trainer.nnodes` x `trainer.n_gpus_per_node`,
`--actor-num-nodes` x `--actor-num-gpus-per-node`, `cluster.num_nodes` x `cluster.gpus_per_node`) with the
stated number (`--world-size`).

## Why is this bad?
Ray places the workers of a run together. verl refuses a run that asks for more than there is; others wait for devices
that never come.

## Example
With `--world-size 8`:

    trainer.nnodes=2 trainer.n_gpus_per_node=8

Use instead

    trainer.nnodes=1 trainer.n_gpus_per_node=8

## Fix safety
No fix: the cluster may be the mistake.

## References
verl 0.9.0, verl/single_controller/ray/base.py:235: Total available GPUs is less than total desired GPUs
slime 0.3.1, slime/ray/placement_group.py:108: the placement group of all devices is waited for
NeMo RL 0.7.0, nemo_rl/distributed/virtual_cluster.py:789: Not enough GPUs available
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule


@rule(severity=Severity.ERROR)
def check(job: Job) -> Iterator[Finding]:
    there, asked = job.cluster.count, job.cluster.asked
    if not (there.known and asked.known and isinstance(asked.raw, int) and isinstance(there.raw, int)):
        return
    if asked.raw > there.raw:
        yield Finding(
            Message("the run asks for {asked} devices, and there are {there}", asked=asked.raw, there=there.raw),
            span=job.place(asked),
        )
