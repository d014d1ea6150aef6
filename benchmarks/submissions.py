"""Distinct submissions in the form of training jobs."""

from __future__ import annotations

from urllib.parse import urlencode

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=run-{number}
#SBATCH -N{nodes}
#SBATCH --gpus-per-node=8
# submission {number}
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP={tensor}
PP={pipeline}
ARGS="
  --num-layers {layers} --hidden-size 4096 --num-attention-heads 32 --bf16 --seq-length 4096
  --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size {batch} --lr 1e-4 --train-iters {number}0
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
"
srun torchrun --nnodes {launched} --nproc-per-node 8 pretrain_gpt.py $ARGS {more}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: run-{number}}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: {nodes}
      template:
        spec:
          containers:
          - name: pytorch
            command: [bash, -c]
            args:
            - |
{script}
            resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""


def submission(number: int) -> tuple[str, bytes]:
    """A query and a text, no two alike: sound and faulty scripts, placeholders, other jobs, manifests, noise."""
    nodes = 1 << (number % 5)
    facts = {
        "nodes": nodes,
        "launched": nodes,
        "tensor": (1, 2, 3, 4, 8, 5)[number % 6],
        "pipeline": (1, 2, 4)[number % 3],
        "layers": 24 + number % 17,
    }
    facts |= {"batch": 8 * (1 + number % 64), "number": number, "more": '"$@"' if number % 7 == 0 else ""}
    if number % 5 == 1:
        facts |= {"launched": "$SLURM_NNODES", "tensor": "${TENSOR:?}", "batch": "$1"}
    script = SCRIPT.format(**facts)
    query = urlencode(
        {
            "user": number % 50,
            "name": f"job {number}",
            **({"nodes": nodes, "devices_per_node": 8} if number % 2 else {}),
        }
    )
    kind = number % 20
    if kind == 17:
        return query, f"#!/bin/bash\necho {number}\npython eval.py --batch-size {number}\n".encode()
    if kind == 18:
        inner = "\n".join(" " * 14 + line for line in script.splitlines())
        return query + "&kind=manifest", MANIFEST.format(number=number, nodes=nodes, script=inner).encode()
    if kind == 19:
        return query, (script * (1 + number % 20))[: 997 * (1 + number % 40)].encode()
    return query, script.encode()
