"""An option of a launcher has a value that the launcher refuses.

## What it does
Checks the numbers, switches and ports that torchrun (`torch.distributed.run`) and msrun read themselves, as each of them reads
them: `--worker_num` and `--nproc-per-node` are numbers, `--join` of msrun is the literal True or False, `--local_worker_num` is
at most `--worker_num`, a port is at most 65535.

## Why is this bad?
The launcher stops on every node, and nothing is started.

## Example
    msrun --worker_num=8 --local_worker_num=16 --join=Ture run_mindformer.py --config run.yaml

Use instead:

    msrun --worker_num=16 --local_worker_num=16 --join=True run_mindformer.py --config run.yaml

## References
MindSpore 2.7.1, mindspore/python/mindspore/parallel/cluster/run.py, get_args
MindSpore 2.7.1, mindspore/python/mindspore/parallel/cluster/process_entity/_api.py:164 and :575, _ProcessManager
PyTorch 010929f, torch/distributed/run.py, parse_min_max_nnodes and determine_local_world_size
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("launcher-value")
