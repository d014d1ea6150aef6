"""Targets that query the gate: any request, and manifests of the kinds that it supports."""

from __future__ import annotations

from typing import Any

import yaml

from preflight.gate.submission import Question, Submission
from preflight.gate.verdict import Policies, judge, told
from preflight.source.source_file import InputError

from . import configs
from .checks import script_text
from .choices import Choices
from .values import odd


def gate(choices: Choices) -> None:
    """A question to the gate: never an exception, always a verdict."""
    asked: dict[str, str] = {}
    for key in ("nodes", "devices_per_node", "world", "user", "name", "kind", "override"):
        if choices.below(3) == 0:
            asked[key] = choices.of(
                (
                    "1",
                    "8",
                    "0",
                    "x",
                    "٣",
                    "²",
                    "1" * 5000,
                    "-1",
                    "1e3",
                    "\x1b[0m",
                    "sbatch",
                    "manifest",
                    "a.yaml",
                    "../x",
                    "\u202e",
                    "",
                )
            )
    body = [
        lambda: script_text(choices).encode("utf-8", "replace"),
        lambda: choices.data,
        lambda: configs.yaml_text(choices, "graph")[0].encode(),
    ][choices.below(3)]()
    try:
        submission = Question(asked, body).submission()
    except InputError:
        return
    _answered(submission)


def manifest(choices: Choices) -> None:
    """A manifest of one of the kinds, with odd values in it."""
    text = yaml.safe_dump(_spoilt(choices, _job(choices)), allow_unicode=True)
    _answered(Submission(text.encode("utf-8", "replace"), "job.yaml", "manifest"))


def _answered(submission: Submission) -> None:
    verdict = judge(submission, configs.plugins(), Policies(seconds=0))
    assert verdict.code != 3, verdict.problem
    verdict.as_dict()
    assert all(line.isprintable() for line in told(verdict)), told(verdict)


def _job(choices: Choices) -> dict[str, Any]:
    """A job as its kind is written."""
    command = (
        ["bash", "-c", script_text(choices)]
        if choices.below(2)
        else ["torchrun", "pretrain_gpt.py", *configs.words(choices)]
    )
    run = {"command": command, "env": [{"name": "TP", "value": "2"}]}
    resources = {"limits": {choices.of(("nvidia.com/gpu", "huawei.com/Ascend910", "cpu")): 8}}
    template = {"spec": {"containers": [{"name": "c", **run, "resources": resources}]}}
    kind, api, spec = choices.of(_kinds(run, resources, template))
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def _kinds(
    run: dict[str, Any], resources: dict[str, Any], template: dict[str, Any]
) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """The kinds of job, with their API and their specification."""
    role = {"replicas": 2, "template": template}
    return (
        ("PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": {"Master": role, "Worker": role}}),
        ("MPIJob", "kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Launcher": role, "Worker": role}}),
        ("AscendJob", "mindxdl.gitee.com/v1", {"replicaSpecs": {"Master": role}}),
        ("Job", "batch.volcano.sh/v1alpha1", {"tasks": [role]}),
        (
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            {"replicatedJobs": [{"replicas": 1, "template": {"spec": {"parallelism": 2, "template": template}}}]},
        ),
        (
            "HyperJob",
            "training.volcano.sh/v1alpha1",
            {"replicatedJobs": [{"replicas": 1, "templateSpec": {"tasks": [role]}}]},
        ),
        (
            "TrainJob",
            "trainer.kubeflow.org/v1alpha1",
            {"trainer": {**run, "numNodes": 2, "numProcPerNode": 8, "resourcesPerNode": resources}},
        ),
        (
            "RayJob",
            "ray.io/v1",
            {
                "entrypoint": " ".join(run["command"][-2:]),
                "rayClusterSpec": {
                    "headGroupSpec": {"template": template},
                    "workerGroupSpecs": [{**role, "numOfHosts": 1}],
                },
            },
        ),
    )


def _spoilt(choices: Choices, value: Any) -> Any:
    """The same with odd values here and there."""
    if choices.one_in(40):
        return odd(choices)
    if isinstance(value, dict):
        return {name: _spoilt(choices, item) for name, item in value.items() if not choices.one_in(60)}
    return [_spoilt(choices, item) for item in value] if isinstance(value, list) else value
