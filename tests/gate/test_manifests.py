"""Kubernetes jobs at the gate: what their containers launch, on how many devices."""

from __future__ import annotations

from textwrap import indent

import pytest

from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, Verdict, judge
from preflight.plugins.manager import load
from preflight.source.text import Source

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


@pytest.fixture(scope="module")
def gate():
    plugins = load()
    return lambda text: judge(Submission(text.encode(), "job.yaml", "manifest"), plugins, Policies(seconds=20))


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.report.findings if finding.severity == "error"}


@pytest.mark.parametrize("make", [pytorch, volcano, ascend, mpi, jobset, hyperjob, trainjob, rayjob])
def test_every_kind_is_counted_and_judged(gate, make):
    good, bad = gate(make(4)), gate(make(3))
    assert (good.word, good.report.jobs != ()) == ("pass", True), [f.message for f in good.report.findings]
    assert good.submission.allocation == (2, 8, 16, "manifest")
    assert bad.word == "refuse" and "device-count" in rules(bad)


def test_findings_stand_where_the_manifest_says_it(gate):
    text = "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" + pytorch(3)
    found = next(f for f in gate(text).report.findings if f.rule == "device-count")
    source = Source(text, "job.yaml")
    assert source.line(found.line)[found.column - 1 :] == "3" and "TP=" in source.line(found.line)


@pytest.mark.parametrize(
    "text",
    [
        pytorch(3, extra="  elasticPolicy: {minReplicas: 1, maxReplicas: 4}\n").replace(
            "--num-attention-heads 32", "--num-attention-heads 33"
        ),
        pytorch(32, workers='replicas: "{{ workers }}"').replace(
            "--num-attention-heads 32", "--num-attention-heads 64"
        ),
        pytorch(32, more="--nnodes $PET_NNODES --nproc-per-node 8", extra="  elasticPolicy: {}\n"),
    ],
    ids=["elastic", "template", "operator's variable"],
)
def test_what_is_not_known_never_refuses(gate, text):
    verdict = gate(text)
    assert "device-count" not in rules(verdict) and not verdict.submission.allocation.known


@pytest.mark.parametrize(
    "text",
    [
        trainjob(3, nodes=""),
        trainjob(3, devices=""),
        trainjob(3, devices="resourcesPerNode: {limits: {cpu: 8}}"),
        hyperjob(3, jobs="    replicas: 2\n"),
        hyperjob(3, jobs="    splitPolicy: {mode: static, accelerators: 8}\n"),
        rayjob(3, more=""),
        rayjob(3, more="--nproc-per-node $GPUS"),
    ],
    ids=[
        "the runtime's nodes",
        "the runtime's devices",
        "no device",
        "several jobs",
        "a split",
        "Ray's workers",
        "a variable",
    ],
)
def test_what_another_object_says_never_refuses(gate, text):
    verdict = gate(text.replace("--num-attention-heads 32", "--num-attention-heads 33"))
    assert verdict.report.jobs and "device-count" not in rules(verdict)


def test_processes_outweigh_devices_where_both_are_asked_for(gate):
    assert gate(
        trainjob(4, devices="numProcPerNode: auto\n    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}")
    ).submission.allocation == (
        2,
        8,
        16,
        "manifest",
    )
    assert gate(
        trainjob(4, devices="numProcPerNode: 6\n    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}")
    ).submission.allocation == (2, 6, 12, "manifest")


def test_half_of_what_a_launcher_states_is_multiplied_with_the_manifest(gate):
    found = gate(trainjob(8, "--nproc-per-node 6"))
    assert "12 devices are not a multiple" in next(f.message for f in found.report.findings if f.rule == "device-count")
    assert gate(pytorch(4, "--nproc-per-node 4")).word == "pass"
    assert "device-count" not in rules(gate(trainjob(3, "--nproc-per-node 6", nodes="")))
    assert "24 devices are not a multiple" in next(
        f.message for f in gate(pytorch(16, "--nnodes 3")).report.findings if f.rule == "device-count"
    )


@pytest.mark.parametrize(
    ("text", "allocation"),
    [
        (rayjob(8), (2, 8, 16, "manifest")),
        (rayjob(8, replicas="replicas: 2\n      numOfHosts: 2"), (5, 8, 40, "manifest")),
        (rayjob(8, cluster="    enableInTreeAutoscaling: true\n"), (None, None, None, "unknown")),
        (rayjob(8, replicas="minReplicas: 1"), (None, None, None, "unknown")),
    ],
)
def test_a_ray_cluster_is_counted_and_its_entrypoint_runs_on_one_node(gate, text, allocation):
    verdict = gate(text)
    assert (verdict.submission.allocation, verdict.as_dict()["launcher"]["world"]) == (allocation, 8)
    found = next(f for f in gate(text.replace("size 8", "size 3")).report.findings if f.rule == "device-count")
    assert Source(text, "job.yaml").line(found.line).startswith("  entrypoint: torchrun")


def test_what_a_launcher_leaves_out_the_operator_sets(gate):
    assert gate(pytorch(16)).word == "pass"  # torchrun's own default would be one process


def test_what_a_launcher_says_itself_counts(gate):
    assert "world-sizes-disagree" in {f.rule for f in gate(pytorch(8, "--nnodes 1 --nproc-per-node 8")).report.findings}


def test_an_empty_manifest_is_unreadable(gate):
    assert (gate("").word, gate("").code) == ("unknown", 2)


@pytest.mark.parametrize("text", ["kind: Pod\n", "- 1\n", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {}\n"])
def test_other_manifests_are_unknown(gate, text):
    assert (gate(text).word, gate(text).code) == ("unknown", 0)


def test_broken_yaml_is_unreadable(gate):
    assert gate("a: [\n").code == 2
