"""The rank table contradicts itself.

## What it does
Reads the file that RANK_TABLE_FILE names, where it is there, and checks that `server_count` is the number of servers
listed and that the rank ids are 0, 1, 2 … without a gap or a repetition.

## Why is this bad?
HCCL builds its communicators from this table: processes wait for ranks that no device has, and the job hangs or dies at
start-up, after the queue wait has been paid.

## Example
    {"server_count": "2", "server_list": [{"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}]}]}

Use instead:

    {"server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}]}]}

## Fix safety
No fix: the table is written by a tool; record it again.

## References
Ascend HCCL, rank table configuration resource file, version 1.0
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.machine import server_devices, servers
from preflight.job import OF_FILES
from preflight.loaders.document import Document


@rule(severity=Severity.ERROR, reads=(OF_FILES,))
def check(job: Job) -> Iterator[Finding | Unverified]:
    for document in job.documents[1:]:
        if document.tree is not None and document.tree.get("server_list") is not None:
            yield from _table(document)


def _table(document: Document) -> Iterator[Finding | Unverified]:
    assert document.tree is not None
    listed = servers(document.tree)
    status, count = document.tree.get("status"), document.tree.get("server_count")
    if status is not None and status.value == "initializing":
        yield Unverified("the rank table is still a placeholder")
        return
    if count is not None and str(count.value).isdigit() and int(str(count.value)) != len(listed):
        yield Finding(
            Message("server_count is {said}, but server_list has {listed}", said=count.value, listed=len(listed)),
            count.span,
            key=("server_count",),
        )
    nodes = [
        node for server in listed for device in server_devices(server) if (node := device.get("rank_id")) is not None
    ]
    ranks = [int(str(node.value)) for node in nodes if str(node.value).isdigit()]
    if len(ranks) == len(nodes) and sorted(ranks) != list(range(len(ranks))):
        strange = next(
            node for node, rank in zip(nodes, ranks, strict=True) if rank >= len(ranks) or ranks.count(rank) > 1
        )
        yield Finding(
            Message("rank ids are not 0 to {last} once each: {strange}", last=len(ranks) - 1, strange=strange.value),
            strange.span,
            key=("server_list",),
        )
