"""Launchers: their options, and how many of them start."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.identify import server_devices, servers
from preflight.job import OF_FILES
from preflight.loaders.document import Document


@rule(id="launcher-option", severity=Severity.ERROR, noticed=True)
def launcher_option(job: Job) -> Iterator[Finding]:
    """A launcher is given an option that it does not have.

    ## What it does
    Compares the options in front of the script with those of torchrun (`torch.distributed.run`, `torch.distributed.launch`)
    and msrun. Only what is nearly one of them is reported: another name may be an option of a newer release. Both accept
    the beginning of a name as the name. A module of `python -m` that is nearly torch's launcher is reported as well.

    ## Why is this bad?
    The launcher refuses its command line on every node and starts nothing; a module that does not exist starts nothing
    either.

    ## Example
        torchrun --nproc-pernode 8 pretrain_gpt.py --num-layers 32

    Use instead:

        torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32

    ## Fix safety
    Unsafe: with the option in effect another number of devices may start.

    ## References
    PyTorch 010929f, torch/distributed/run.py, get_args_parser and parse_args
    MindSpore 2.7, mindspore/python/mindspore/parallel/cluster/run.py, get_args
    """
    yield from job.noticed("launcher-option")


@rule(id="launcher-value", severity=Severity.ERROR, noticed=True)
def launcher_value(job: Job) -> Iterator[Finding]:
    """An option of a launcher has a value that the launcher refuses.

    ## What it does
    Checks the numbers, switches and ports that torchrun (`torch.distributed.run`) and msrun read themselves, as each of
    them reads
    them: `--worker_num` and `--nproc-per-node` are numbers, `--join` of msrun is the literal True or False,
    `--local_worker_num` is at most `--worker_num`, a port is at most 65535.

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
    yield from job.noticed("launcher-value")


@rule(id="launcher-per-task", severity=Severity.ERROR, noticed=True)
def launcher_per_task(job: Job) -> Iterator[Finding]:
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
    yield from job.noticed("launcher-per-task")


@rule(id="launcher-on-one-node", severity=Severity.WARNING, noticed=True)
def launcher_on_one_node(job: Job) -> Iterator[Finding]:
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
    yield from job.noticed("launcher-on-one-node")


@rule(id="launcher-beyond-allocation", severity=Severity.ERROR, noticed=True)
def launcher_beyond_allocation(job: Job) -> Iterator[Finding]:
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
    yield from job.noticed("launcher-beyond-allocation")


@rule(id="msrun-launcher-arguments", severity=Severity.ERROR, noticed=True)
def msrun_launcher_arguments(job: Job) -> Iterator[Finding]:
    """msrun_launcher.sh is given a number of arguments that it does not take.

    ## What it does
    Counts the arguments of MindFormers' `scripts/msrun_launcher.sh`: 1, 2, 6 or 9, of which the first is the whole command
    in quotes and the second a plain number.

    ## Why is this bad?
    The launcher prints its usage and exits 1. Most often the command was not put in quotes.

    ## Example
        bash scripts/msrun_launcher.sh run_mindformer.py --config run.yaml 8
    Use instead:
        bash scripts/msrun_launcher.sh "run_mindformer.py --config run.yaml" 8

    ## References
    MindFormers, scripts/msrun_launcher.sh
    """
    yield from job.noticed("msrun-launcher-arguments")


@rule(id="msrun-launcher-single-worker", severity=Severity.ERROR, noticed=True)
def msrun_launcher_single_worker(job: Job) -> Iterator[Finding]:
    """msrun_launcher.sh is started with one worker, and does nothing.

    ## What it does
    Finds `msrun_launcher.sh` with a worker number of 1.

    ## Why is this bad?
    The launcher prints a hint to run the script without it and exits 0: the job ends at once and looks as if it had
    succeeded.

    ## Example
        bash scripts/msrun_launcher.sh "run_mindformer.py --config run.yaml" 1
    Use instead:
        python run_mindformer.py --config run.yaml

    ## References
    MindFormers, scripts/msrun_launcher.sh
    """
    yield from job.noticed("msrun-launcher-single-worker")


@rule(id="rank-table", severity=Severity.ERROR, reads=(OF_FILES,))
def rank_table(job: Job) -> Iterator[Finding | Unverified]:
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
