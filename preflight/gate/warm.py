"""Loads what checks need before workers are copied from this process: one that replaces another is as fast as that."""

from __future__ import annotations

from importlib import import_module

from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, judge
from preflight.plugins.manager import Plugins
from preflight.source.extras import missing

SIZES = "--num-layers 4 --hidden-size 64 --num-attention-heads 3 --seq-length 64 --max-position-embeddings 64"
BATCH = "--micro-batch-size 1 --global-batch-size 3 --lr 1e-4 --train-iters 1 --tensor-model-parallel-size 2"
SCRIPT = """\
#!/bin/bash
#SBATCH -N2
#SBATCH --gpus-per-node=8
A=1
srun torchrun --nnodes 2 --nproc-per-node 8 {start} {arguments}
"""
STARTS = (
    "pretrain_gpt.py",
    "posttrain_gpt.py --use-mcore-models --ai-framework pytorch",
    "run_mindformer.py --config a.yaml",
)
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec:
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: a, command: [torchrun, pretrain_gpt.py]}]}}}
"""
SECONDS = 10.0


def warm(plugins: Plugins, policies: Policies) -> None:
    """Judge a job of each kind; what comes of it does not matter."""
    plugins.rules(None)
    try:
        import_module("preflight.layouts.search")
    except ModuleNotFoundError as error:
        if not missing(error):  # without numpy the gate gives no layouts that would run
            raise
    patient = Policies(SECONDS, policies.final, device=policies.device)
    for start in STARTS:
        judge(Submission(SCRIPT.format(start=start, arguments=f"{SIZES} {BATCH}").encode()), plugins, patient)
    judge(Submission(MANIFEST.encode(), "job.yaml", "manifest"), plugins, patient)
