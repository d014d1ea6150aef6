"""Kubernetes jobs at the gate: the launches of their containers, and the number of devices."""

from __future__ import annotations

import pytest
from job_manifests import (
    ascend,
    hyperjob,
    jobset,
    mpi,
    pytorch,
    rayjob,
    trainjob,
    volcano,
)

from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, Verdict, judge
from preflight.plugins.manager import load
from preflight.source.source_file import Source


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
