"""Checks of launchers, such as torchrun and srun: their options, and the number of processes that they start."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.device_and_release import server_devices, servers
from preflight.job import OF_FILES
from preflight.loaders.document import Document


@rule(id="launcher-option", severity=Severity.ERROR, noticed=True)
def launcher_option(job: Job) -> Iterator[Finding]:
    """A launcher is given an option that it does not have.

    ## What it does
    Compares the options before the script name with those of torchrun (`torch.distributed.run`,
    `torch.distributed.launch`) and msrun. An unknown option is reported only if its name is very similar to a known
    one, because other names may be options of a newer release. Both launchers accept abbreviated option names. A
    `python -m` module whose name is very similar to torch's launcher is reported as well.

    ## Why is this bad?
    The launcher rejects its command line on every node and starts nothing. If the module does not exist, nothing starts
    either.

    ## Example
        torchrun --nproc-pernode 8 pretrain_gpt.py --num-layers 32

    Use instead:

        torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32

    ## Fix safety
    Unsafe: when the option takes effect, a different number of processes may start.

    ## References
    PyTorch 010929f, torch/distributed/run.py, get_args_parser and parse_args
    MindSpore 2.7, mindspore/python/mindspore/parallel/cluster/run.py, get_args
    """
    yield from job.noticed("launcher-option")


@rule(id="launcher-value", severity=Severity.ERROR, noticed=True)
def launcher_value(job: Job) -> Iterator[Finding]:
    """An option of a launcher has a value that the launcher rejects.

    ## What it does
    Checks the numbers, switches and ports that torchrun (`torch.distributed.run`) and msrun parse themselves, by the
    rules of each launcher: `--worker_num` and `--nproc-per-node` are numbers, `--join` of msrun must be the literal
    True or False, `--local_worker_num` is at most `--worker_num`, a port is at most 65535.

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
    """srun starts a launcher in every task, but one launcher already starts all processes of a node.

    ## What it does
    Finds torchrun started by srun with more tasks than torchrun has nodes.

    ## Why is this bad?
    torchrun must be started once per node. If several launchers run on one node, the first uses the port and the
    devices. The other launchers cannot bind the port, or compete with the first one for the devices, and the job fails
    or waits until a timeout.

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
    """A multi-node batch job starts torchrun on only one node.

    ## What it does
    Finds `torchrun` with `--nnodes` greater than 1 in a batch script whose `#SBATCH` lines request several nodes, if
    nothing starts it on the other nodes: the script does not use srun, mpirun, ssh, pdsh or similar commands, and does
    not read a node rank.

    ## Why is this bad?
    Slurm runs a single copy of the batch script on one of the nodes, typically the first. torchrun must be started on
    every node. The single launcher waits at the rendezvous for the other nodes until it times out, while all allocated
    nodes stay idle.

    The finding is a warning, because something else may start the script once on each node.

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


@rule(id="ranks-not-set", severity=Severity.WARNING, frameworks=("megatron",), noticed=True)
def ranks_not_set(job: Job) -> Iterator[Finding]:
    """srun starts Megatron-LM in several tasks, but does not set their ranks.

    ## What it does
    Finds `srun python pretrain_gpt.py` with more than one task, if the script mentions neither ranks nor containers nor
    MPI.

    ## Why is this bad?
    Megatron-LM reads `RANK` and `WORLD_SIZE`, which Slurm does not set. Every task is therefore rank 0 of 1. If the
    layout needs more than one device, Megatron-LM refuses to start; otherwise, each task trains and saves the same
    model on its own.

    The finding is a warning, because a prolog or a plugin of the cluster may set the variables.

    ## Example
        #SBATCH --nodes=2 --ntasks-per-node=8
        srun python pretrain_gpt.py --tensor-model-parallel-size 8

    Use instead:

        #SBATCH --nodes=2 --ntasks-per-node=1
        srun torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint $HOST:29500 pretrain_gpt.py --bf16

    ## References
    Megatron-LM core_v0.12.1, megatron/training/arguments.py, parse_args: RANK and WORLD_SIZE; core_v0.19.0, :143
    """
    yield from job.noticed("ranks-not-set")


@rule(id="rank-of-another-kind", severity=Severity.ERROR, frameworks=("megatron",), noticed=True)
def rank_of_another_kind(job: Job) -> Iterator[Finding]:
    """A rank or the world size is set from the wrong Slurm variable.

    ## What it does
    Reads `RANK`, `LOCAL_RANK` and `WORLD_SIZE` in the environment of a `pretrain_*.py` whose processes are all started
    by srun itself, with several tasks per node. Reports a world size that is set to the number of nodes, a local rank
    that is set to the rank in the whole job if that exceeds the devices of a node (16 if the job requests no number),
    and a rank that is set to the node number or the rank within the node. A variable that the script sets more than
    once is not reported.

    ## Why is this bad?
    The process group cannot be built: ranks exceed the world size, two processes have the same rank, or a local rank
    exceeds the devices of the node.

    ## Example
        #SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8
        srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python pretrain_gpt.py'

    Use instead:

        #SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8
        srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS python pretrain_gpt.py'

    ## References
    Megatron-LM core_v0.16.0, megatron/training/initialize.py:331, _initialize_distributed: set_device(local_rank);
    Slurm, man srun, OUTPUT ENVIRONMENT VARIABLES
    """
    yield from job.noticed("rank-of-another-kind")


@rule(id="devices-without-process", severity=Severity.WARNING, frameworks=("megatron",), noticed=True)
def devices_without_process(job: Job) -> Iterator[Finding]:
    """srun starts one process on nodes with several devices.

    ## What it does
    Finds scripts that start Python once per node, without torchrun, and request several devices per node.

    ## Why is this bad?
    Megatron-LM uses one device per process: all other devices of the allocation are idle.

    ## Example
        #SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8
        srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS python pretrain_gpt.py'

    Use instead:

        #SBATCH --nodes=4 --ntasks-per-node=8 --gpus-per-node=8
        srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS python pretrain_gpt.py'

    ## References
    Megatron-LM core_v0.16.0, megatron/training/initialize.py:331, _initialize_distributed: set_device(local_rank)
    """
    yield from job.noticed("devices-without-process")


@rule(id="launcher-beyond-allocation", severity=Severity.ERROR, noticed=True)
def launcher_beyond_allocation(job: Job) -> Iterator[Finding]:
    """A launcher needs more nodes, tasks or devices than the job has requested.

    ## What it does
    Compares what launchers such as torchrun and msrun start with what the same file requests: the nodes, tasks and
    devices of `#SBATCH` lines and of srun, the pods of a Kubernetes job and their devices, and the devices that
    `CUDA_VISIBLE_DEVICES` or `ASCEND_RT_VISIBLE_DEVICES` leaves visible. Numbers that the environment may replace
    (`${NNODES:-2}`) are not compared. If the caller states a number of nodes (`--nodes`, or the scheduler at the gate),
    it replaces the number in the `#SBATCH` lines, as `sbatch --nodes` does.

    ## Why is this bad?
    In a job with two nodes, a rendezvous of four nodes waits until it times out. A process whose local rank has no
    device ends the job with "invalid device ordinal" before anything is built.

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
    """msrun_launcher.sh is called with the wrong number of arguments.

    ## What it does
    Counts the arguments of MindFormers' `scripts/msrun_launcher.sh`. It accepts 1, 2, 6 or 9 arguments; the first is
    the whole command in quotes, and the second is a plain number.

    ## Why is this bad?
    The launcher prints its usage and exits with code 1. The most common cause is a command without quotes.

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
    """msrun_launcher.sh does nothing because it is started with one worker.

    ## What it does
    Finds `msrun_launcher.sh` with a worker count of 1.

    ## Why is this bad?
    The launcher prints a hint to run the script directly and exits with code 0, so the job ends at once and appears to
    have succeeded.

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
    """The rank table is inconsistent.

    ## What it does
    Reads the file that RANK_TABLE_FILE names, if it exists, and checks that `server_count` equals the number of listed
    servers and that the rank ids are 0, 1, 2 … without gaps or repetitions.

    ## Why is this bad?
    HCCL builds its communicators from this table. If it is inconsistent, processes wait for ranks that no device has,
    and the job hangs or fails at startup, after it has waited in the queue.

    ## Example
        {"server_count": "2", "server_list": [{"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}]}]}

    Use instead:

        {"server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}]}]}

    ## Fix safety
    No fix: the table is generated by a tool, so generate it again.

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
            Message(
                ("the rank ids must be 0 to {last}, each exactly once: {strange}"),
                last=len(ranks) - 1,
                strange=strange.value,
            ),
            strange.span,
            key=("server_list",),
        )
