"""Kubernetes jobs at the gate: what their containers launch, on how many devices."""

from __future__ import annotations

from textwrap import indent

import pytest

from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, Verdict, judge
from preflight.plugins import load
from preflight.source import Source

ARGS = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16 --seq-length 4096 --max-position-embeddings 4096 "
    "--lr 1e-4 --train-iters 100 --micro-batch-size 1 --global-batch-size 64"
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
    return head("batch.volcano.sh/v1alpha1", "Job") + f"  minAvailable: 2\n  tasks:\n  - replicas: 2\n    name: worker\n{pod}\n"


def ascend(tensor: int) -> str:
    pod = indent(container(launch(tensor), 'huawei.com/Ascend910: "8"'), " " * 6)
    return head("mindxdl.gitee.com/v1", "AscendJob") + f"  replicaSpecs:\n    Master:\n      replicas: 1\n{pod}\n    Worker:\n      replicas: 1\n{pod}\n"


def mpi(tensor: int) -> str:
    words = f"[mpirun, -np, '16', python, pretrain_gpt.py, {', '.join(repr(word) for word in ARGS.split())}, '--tensor-model-parallel-size', '{tensor}']"
    pod = "      template:\n        spec:\n          containers:\n          - "
    first = f"    Launcher:\n{pod}{{name: l, command: {words}}}\n"
    return (
        head("kubeflow.org/v2beta1", "MPIJob")
        + f"  mpiReplicaSpecs:\n{first}    Worker:\n      replicas: 2\n{pod}{{name: w, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}\n"
    )


def jobset(tensor: int) -> str:
    pod = indent(container(launch(tensor), "nvidia.com/gpu: 8"), " " * 10)
    return head("jobset.x-k8s.io/v1alpha2", "JobSet") + f"  replicatedJobs:\n  - name: w\n    template:\n      spec:\n          parallelism: 2\n{pod}\n"


@pytest.fixture(scope="module")
def gate():
    plugins = load()
    return lambda text: judge(Submission(text.encode(), "job.yaml", "manifest"), plugins, Policies(seconds=20))


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.report.findings if finding.severity == "error"}


@pytest.mark.parametrize("make", [pytorch, volcano, ascend, mpi, jobset])
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
        pytorch(3, extra="  elasticPolicy: {minReplicas: 1, maxReplicas: 4}\n").replace("--num-attention-heads 32", "--num-attention-heads 33"),
        pytorch(32, workers='replicas: "{{ workers }}"').replace("--num-attention-heads 32", "--num-attention-heads 64"),
        pytorch(32, more="--nnodes $PET_NNODES --nproc-per-node 8", extra="  elasticPolicy: {}\n"),
    ],
    ids=["elastic", "template", "operator's variable"],
)
def test_what_is_not_known_never_refuses(gate, text):
    verdict = gate(text)
    assert "device-count" not in rules(verdict) and not verdict.submission.allocation.known


def test_what_a_launcher_leaves_out_the_operator_sets(gate):
    assert gate(pytorch(16)).word == "pass"  # torchrun's own default would be one process


def test_what_a_launcher_says_itself_counts(gate):
    assert "world-sizes-disagree" in {f.rule for f in gate(pytorch(8, "--nnodes 1 --nproc-per-node 8")).report.findings}


@pytest.mark.parametrize("text", ["", "kind: Pod\n", "- 1\n", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {}\n"])
def test_other_manifests_are_unknown(gate, text):
    assert (gate(text).word, gate(text).code) == ("unknown", 0)


def test_broken_yaml_is_unreadable(gate):
    assert gate("a: [\n").code == 2
