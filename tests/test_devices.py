"""The table of accelerators: each name, in any spelling, is unambiguous."""

from __future__ import annotations

from collections import Counter

import pytest

import preflight
from preflight.run.cluster import devices, find_device, likely_device

# fmt: off
NAMES = ("A100-80GB", "dgx_a100", "dgx_h100", "H200", "GH200", "B200", "b300", "GB200", "gb300", "h20", "l40s",
    "MI300X", "910B", "Ascend 910C", "910b4")
# fmt: on


def test_no_name_means_two() -> None:
    said = Counter(name for device in devices() for name in {_bare(device.name), *map(_bare, device.aliases)})
    assert not [name for name, count in said.items() if count > 1]


def _bare(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


@pytest.mark.parametrize("name", NAMES)
def test_the_accelerators_people_train_on_are_known(name: str) -> None:
    device = find_device(devices(), name)
    assert device is not None
    assert 24e9 <= device.memory <= 300e9
    assert 0.9 < device.budget / device.memory < 1.08  # devices sold with 80 GB have 80 GiB


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("h100", "H100"),
        ("nvidia_h100_80gb_hbm3", "H100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40"),
        ("a100", "A100-80"),  # sites with both state which one; the larger one refuses nothing that fits
        ("h20", "H20-141"),
        ("tesla_v100-sxm2-32gb", "V100"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("910B3", "910B3"),
        ("module-910b-8", "910B3"),
        ("module-a3-16-super-pod", "A3"),
    ],
)
def test_a_jobs_word_for_its_device_is_understood(word: str, name: str) -> None:
    device = likely_device(devices(), word)
    assert device is not None and device.name == name


@pytest.mark.parametrize(
    "word",
    [
        "huawei-Ascend910",
        "910",
        "NVIDIA-H100-NVL",
        "NVIDIA-H100-80GB-HBM3-SHARED",
        "1g.10gb",
        "a100_3g.20gb",
        "tesla_v100-sxm2-16gb",
        "gpu",
        "pcie",
        "",
    ],
)
def test_a_word_that_does_not_tell_is_unknown(word: str) -> None:
    assert likely_device(devices(), word) is None


@pytest.mark.parametrize(
    "lines",
    [
        "--gres=gpu:h100:8",
        "--gres=gpu:nvidia_h100_80gb_hbm3:8(S:0-1)",
        "--gpus=h100:16",
        "--gpus-per-node=h100:8",
        "-G h100:16",
    ],
)
def test_a_batch_job_that_asks_for_a_kind_of_card_is_judged_on_it(lines: str) -> None:
    report = preflight.check_text(JOB.format(lines), name="job.sbatch")
    (finding,) = (f for f in report.findings if f.rule == "predicted-oom")
    assert finding.severity == "error" and "79.2 GiB are available" in finding.message
    assert [(place.span.line, place.label) for place in finding.related] == [(3, "H100")]


@pytest.mark.parametrize(
    "lines", ["--gres=gpu:8", "--gres=gpu:fast:8", "--gres=gpu:h100:4,gpu:a100:4", "--gpus=16", "--gpus-per-node=8"]
)
def test_a_batch_job_that_does_not_say_which_is_not(lines: str) -> None:
    report = preflight.check_text(JOB.format(lines), name="job.sbatch")
    assert report.jobs[0].cluster.device is None and "predicted-oom" not in {f.rule for f in report.findings}


def test_the_caller_knows_better() -> None:
    report = preflight.check_text(JOB.format("--gres=gpu:h100:8"), name="job.sbatch", device="b300")
    assert report.jobs[0].cluster.device.name == "B300"


AFFINITY = """
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {{key: nvidia.com/gpu.product, operator: In, values: [{}]}}"""


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", "H100"),
        ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}", "H100"),
        ("nodeSelector: {accelerator: huawei-Ascend910, accelerator-type: module-910b-8}", "910B3"),
        ("nodeSelector: {node.kubernetes.io/npu.chip.name: 910B3}", "910B3"),
        ("nodeSelector: {accelerator: huawei-Ascend910}", None),
        ("nodeSelector: {disk: h100}", None),
        (AFFINITY.format("NVIDIA-A100-SXM4-80GB"), "A100-80"),
        (AFFINITY.format("NVIDIA-A100-SXM4-80GB, NVIDIA-H100-80GB-HBM3"), None),
    ],
)
def test_a_manifest_chooses_its_nodes_by_their_device(lines: str, name: str | None) -> None:
    device = preflight.check_text(MANIFEST.format(lines), name="job.yaml").jobs[0].cluster.device
    assert (device.name if device else None) == name


JOB = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH {}
srun --ntasks-per-node=1 torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 80 --hidden-size 8192 \\
  --num-attention-heads 64 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4 \\
  --train-iters 5 \\
  --tensor-model-parallel-size 4 --tokenizer-type NullTokenizer --vocab-size 50257
"""
MANIFEST = """\
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      {}
      containers:
      - command: [torchrun, --nproc-per-node, '8', pretrain_gpt.py, --num-layers, '32']
        resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
