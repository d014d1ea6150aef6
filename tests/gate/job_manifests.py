"""Manifests of jobs of every kind that the gate counts."""

from __future__ import annotations

from textwrap import indent

ARGS = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16 --seq-length 4096 "
    "--max-position-embeddings 4096 --lr 1e-4 --train-iters 100 --micro-batch-size 1 --global-batch-size 64"
)


def container(launch: str, devices: str) -> str:
    return "\n".join(
        [
            "template:",
            "  spec:",
            "    containers:",
            "    - name: ascend",
            "      image: train",
            "      command: [bash, -c]",
            "      args:",
            "      - |",
            *(f"        {line}" for line in launch.splitlines()),
            f"      resources: {{limits: {{{devices}}}}}",
        ]
    )


def launch(tensor: int, more: str = "") -> str:
    return f"TP={tensor}\ntorchrun {more} pretrain_gpt.py {ARGS} \\\n  --tensor-model-parallel-size $TP"


def head(api: str, kind: str) -> str:
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: gpt}}\nspec:\n"


def pytorch(tensor: int, more: str = "", extra: str = "", workers: str = "replicas: 1") -> str:
    pod = indent(container(launch(tensor, more), "nvidia.com/gpu: 8"), " " * 6)
    specs = f"  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n{pod}\n    Worker:\n      {workers}\n{pod}\n"
    return head("kubeflow.org/v1", "PyTorchJob") + extra + specs


def volcano(tensor: int) -> str:
    pod = indent(container(launch(tensor), "huawei.com/Ascend910: 8"), " " * 4)
    return (
        head("batch.volcano.sh/v1alpha1", "Job")
        + f"  minAvailable: 2\n  tasks:\n  - replicas: 2\n    name: worker\n{pod}\n"
    )


def ascend(tensor: int) -> str:
    pod = indent(container(launch(tensor), 'huawei.com/Ascend910: "8"'), " " * 6)
    return (
        head("mindxdl.gitee.com/v1", "AscendJob")
        + f"  replicaSpecs:\n    Master:\n      replicas: 1\n{pod}\n    Worker:\n      replicas: 1\n{pod}\n"
    )


def mpi(tensor: int) -> str:
    words = (
        f"[mpirun, -np, '16', python, pretrain_gpt.py, {', '.join(repr(word) for word in ARGS.split())}, "
        f"'--tensor-model-parallel-size', '{tensor}']"
    )
    pod = "      template:\n        spec:\n          containers:\n          - "
    first = f"    Launcher:\n{pod}{{name: l, command: {words}}}\n"
    return head("kubeflow.org/v2beta1", "MPIJob") + (
        f"  mpiReplicaSpecs:\n{first}    Worker:\n      replicas: 2\n"
        f"{pod}{{name: w, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}\n"
    )


def jobset(tensor: int) -> str:
    pod = indent(container(launch(tensor), "nvidia.com/gpu: 8"), " " * 10)
    return (
        head("jobset.x-k8s.io/v1alpha2", "JobSet")
        + f"  replicatedJobs:\n  - name: w\n    template:\n      spec:\n          parallelism: 2\n{pod}\n"
    )


def hyperjob(tensor: int, jobs: str = "") -> str:
    pod = indent(container(launch(tensor), "nvidia.com/gpu: 8"), " " * 8)
    return (
        head("training.volcano.sh/v1alpha1", "HyperJob")
        + f"  replicatedJobs:\n  - name: trainer\n{jobs}    templateSpec:\n      tasks:\n      - replicas: 2\n{pod}\n"
    )


def trainjob(
    tensor: int,
    more: str = "",
    nodes: str = "numNodes: 2",
    devices: str = "resourcesPerNode: {limits: {nvidia.com/gpu: 8}}",
) -> str:
    script = "\n".join(f"        {line}" for line in launch(tensor, more).splitlines())
    sizes = "".join(f"    {line}\n" for line in (nodes, devices) if line)
    text = (
        f"  runtimeRef: {{name: torch-distributed}}\n  trainer:\n{sizes}    command: [bash, -c]\n    args:\n"
        f"      - |\n{script}\n"
    )
    return head("trainer.kubeflow.org/v1alpha1", "TrainJob") + text


def rayjob(
    tensor: int, more: str = "--nnodes 1 --nproc-per-node 8", cluster: str = "", replicas: str = "replicas: 1"
) -> str:
    def group(indentation: int) -> str:
        return indent(
            "template: {spec: {containers: [{name: ray, resources: {limits: {nvidia.com/gpu: 8}}}]}}", " " * indentation
        )

    words = f"torchrun {more} pretrain_gpt.py {ARGS} --tensor-model-parallel-size {tensor}"
    ray = (
        f"  rayClusterSpec:\n{cluster}    headGroupSpec:\n{group(6)}\n    workerGroupSpecs:\n    - groupName: w\n"
        f"      {replicas}\n{group(6)}\n"
    )
    return head("ray.io/v1", "RayJob") + f"  entrypoint: {words}\n{ray}"
