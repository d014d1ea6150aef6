"""The cluster does not have the nodes that the run asks for.

## What it does
With `--site --inventory FILE`, or `--site=slurm`, compares the number of nodes and of devices on each with what the
scheduler lists. These are notes: a scheduler may hide partitions from you.

## Why is this bad?
The job waits in the queue for nodes that do not exist.

## Example
With 16 nodes of 8 devices in the inventory, under `--site`:

    preflight check run.sh --site --inventory nodes.json --nodes 32 --devices-per-node 8

Use instead 16 nodes at most.

## References
Slurm, sinfo and scontrol, option --json
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule

FEWER = "the run asks for {wanted:,} nodes with {each} devices, the scheduler lists {there:,}"
SMALLER = "the run asks for {each} devices on a node, the scheduler lists {most} at most"


@rule(severity=Severity.NOTE, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Nodes that are not listed."""
    groups = job.site.nodes if job.site is not None else ()
    if not any(group.devices for group in groups):
        return
    if (each := known(job.cluster.per_node)) is None:
        yield Unverified("the number of devices on a node is not known")
        return
    most = max(group.devices for group in groups)
    there = sum(group.number for group in groups if group.devices >= each[0])
    count = known(job.cluster.count)
    wanted = -(-count[0] // each[0]) if count is not None and each[0] > 0 else 0
    if each[0] > most:
        yield Finding(Message(SMALLER, each=each[0], most=most), job.place(job.cluster.per_node))
    elif wanted > there:
        yield Finding(Message(FEWER, wanted=wanted, each=each[0], there=there), job.place(job.cluster.count))
