"""Manifests of jobs that start the same faulty training in the ways that a pod can write a command."""

from __future__ import annotations

LIST = """\
apiVersion: batch/v1
kind: Job
metadata: {name: pretrain}
spec:
  template:
    spec:
      containers:
        - name: trainer
          command:
            - torchrun
            - --nproc-per-node=8
            - pretrain_gpt.py
            - --num-layers
            - "32"
            - --hidden-size
            - "4096"
            - --num-attention-heads
            - "32"
            - --seq-length
            - "4096"
            - --max-position-embeddings
            - "2048"  # as many as tokens
            - --micro-batch-size
            - "1"
            - --recompute-granularity
            - full
            - --lr=1e-4
            - --train-iters=1000
            - --bf16
          resources: {limits: {nvidia.com/gpu: 8}}
"""
FLOW = """\
apiVersion: v1
kind: Pod
metadata: {name: pretrain}
spec:
  containers:
    - name: trainer
      command: [torchrun, --nproc-per-node, '8', pretrain_gpt.py]
      args: [--num-layers, '32', --hidden-size, '4096', --num-attention-heads, '32', --seq-length, '4096', --lr, '1e-4',
             --max-position-embeddings, '2048', --micro-batch-size, '1', --recompute-granularity, full,
             --train-iters, '9', --bf16]
      resources: {limits: {nvidia.com/gpu: 8}}
"""
SCRIPT = """\
# preflight runs on this in continuous integration
apiVersion: v1
kind: ConfigMap
metadata: {name: data}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: pretrain}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers:
          - name: pytorch
            command: ["bash", "-c"]
            args:
            - |
              set -e
              cat > /tmp/hosts <<EOF
              none
              EOF
              MODEL="--num-layers 32 --hidden-size 4096 --num-attention-heads 32"
              torchrun --nproc-per-node 8 pretrain_gpt.py $MODEL \\
                --seq-length 4096 --max-position-embeddings 2048 \\
                --micro-batch-size 1 --bf16 --recompute-granularity full \\
                --lr 1e-4 --train-iters 5
            resources: {limits: {nvidia.com/gpu: 8}}
"""
FOLDED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: pretrain}
spec:
  template:
    spec:
      containers:
      - name: trainer
        command: [sh, -c]
        args:
        - >-
          torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32
          --seq-length 4096 --max-position-embeddings 2048 --micro-batch-size 1 --bf16
          --recompute-granularity full --lr 1e-4 --train-iters 5
        resources: {limits: {nvidia.com/gpu: 8}}
"""
QUOTED = FOLDED.replace(">-", '"').replace("--train-iters 5", '--train-iters 5"')
KINDS = {"list": LIST, "flow": FLOW, "literal": SCRIPT, "folded": FOLDED, "quoted": QUOTED}
