"""The release of a front end's run: of the checkout around it, named in a file, shown by its keys, or not known."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.job import Job
from preflight.report.framework_release import heading
from preflight.report.run_overview import overview

SWIFT = "NPROC_PER_NODE=8 megatron sft --model m --dataset d --micro_batch_size 1 --global_batch_size 16 {more}\n"
VERL = "python3 -m verl.trainer.main_ppo model_engine=megatron trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
SLIME = (
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --rollout-batch-size 8"
    " --n-samples-per-prompt 4 --colocate --hf-checkpoint /models/m {more}\n"
)


def job(tmp_path: Path, script: str, **files: str) -> Job:
    for name, text in {**files, "run.sh": script}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir(exist_ok=True)
    return preflight.check(tmp_path / "run.sh").jobs[0]


PACKAGES = ".venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--tuner_type lora", "ms-swift, release unknown: 7 known releases from 4.0.4 to 4.6.0 fit; read as 4.5.2"),
        ("--tuner-type lora", "from 4.0.4 to 4.6.0 fit"),
        ("--load x --train_type lora", "5 known releases from 3.8.3 to 3.12.6 fit; read as 3.12.6"),
        ("--max_epochs 1 --save out", "5 known releases from 3.8.3 to 3.12.6 fit; read as 3.12.6"),
        ("--no_initialization false", "from 3.8.3 to 3.12.6 fit; read as 3.12.6"),
        ("--num_workers 8", "from 3.8.3 to 3.12.6 fit; read as 3.12.6"),
        ("--load_safetensors true", "of the releases that preflight knows, 3.10.3 and 3.11.3 and 3.12.6 fit"),
        ("--num_workers 8 --output_dir out", "no known release"),
        ("--packing_cache x", "ms-swift before 3.8.3, which is not a known release, is read as ms-swift@4.5.2"),
        (
            "--packing_cache x --no_log_throughput",
            "the options --no_log_throughput and --packing_cache belong to a release that is older",
        ),
        ("--decision_subsample_options 2", "of the releases that preflight knows, only 4.6.0 fits; read as 4.5.2"),
        ("--of_no_release 1", "ms-swift, release unknown: no known release has --of_no_release"),
    ],
)
def test_what_options_of_ms_swift_show(tmp_path: Path, more: str, says: str) -> None:
    assert says in heading(job(tmp_path, SWIFT.format(more=more)))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("pip install ms-swift==3.9.1", "ms-swift 3.9.1, which is not a known release, is read as ms-swift@3.9.3"),
        ("pip install 'ms-swift[all]==4.1.3'", "ms-swift@4.1.3 (the file names 4.1.3)"),
        ("cd /opt/ms-swift-3.5.3/", "ms-swift 3.5.3, which is not a known release"),
        (
            "#SBATCH --container-image=img:ubuntu22.04-vllm0.8.5-swift3.5.3",
            "ms-swift 3.5.3, which is not a known release",
        ),
        ("git clone -b v4.3.2 https://github.com/modelscope/ms-swift.git", "ms-swift@4.3.2 (the file names 4.3.2)"),
        ("pip install git+https://github.com/modelscope/ms-swift.git@v4.2.3", "ms-swift@4.2.3 (the file names"),
        ("# pip install ms-swift==3.9.1", "release unknown"),
        ("pip install 'ms-swift>=3.9'", "release unknown"),
        ("cd /data/swift-0.6B", "release unknown"),
        ("pip install ms-swift==3.9.1; cd /opt/ms-swift-4.0.4", "release unknown"),
    ],
)
def test_a_release_that_a_script_names_is_read(tmp_path: Path, line: str, says: str) -> None:
    assert says in heading(job(tmp_path, f"{line}\n{SWIFT.format(more='')}"))


@pytest.mark.parametrize(
    ("script", "files", "says"),
    [
        (VERL, {"verl/version/version": "0.7.0.dev\n"}, "verl@0.7.0 for verl 0.7.0.dev in this checkout"),
        (VERL, {"verl/version/version": "0.6.1\n"}, "verl@0.6.1 (verl/version/version)"),
        (VERL, {"verl/version/version": "0.8.0\n"}, "verl@0.8.0 (verl/version/version)"),
        (VERL, {"verl/version/version": "0.3.1.dev\n"}, "verl@0.6.0 for verl 0.3.1.dev in this checkout"),
        (VERL, {"verl/version/version": "0.10.0.dev\n"}, "verl@0.9.1 for verl 0.10.0.dev in this checkout"),
        (SLIME, {"slime/utils/arguments.py": "", "setup.py": 'setup(version="0.2.4")'}, "slime@0.2.4 (setup.py)"),
        (SLIME, {"slime/utils/arguments.py": "", "setup.py": 'version="0.2.1",'}, "slime@0.2.1 (setup.py)"),
        (SLIME, {"slime/utils/arguments.py": "", "setup.py": 'version="0.3.0",'}, "slime@0.3.0 (setup.py)"),
        (SWIFT, {"swift/version.py": "__version__ = '4.1.0.dev0'\n"}, "ms-swift@4.1.3 for ms-swift 4.1.0.dev0 in"),
        (
            SLIME,
            {
                "mine/utils/arguments.py": "",
                "mine/backends/megatron_utils/arguments.py": "",
                "setup.py": 'version="7.1"',
            },
            "slime@0.3.1 for the fork mine 7.1 in this checkout (mine/utils/arguments.py)",
        ),
        (SWIFT, {"requirements.txt": "ms-swift==4.3.2\n"}, "ms-swift@4.3.2 (requirements.txt)"),
        (
            VERL,
            {"pyproject.toml": '[project]\ndependencies = ["verl[vllm]>=0.7,<0.8"]\n'},
            "verl@0.7.1 (pyproject.toml)",
        ),
        (VERL, {"requirements.txt": "verl>=0.6,<0.8\n"}, "verl, release unknown"),
        (SWIFT, {"docker/Dockerfile": "RUN pip install ms-swift==4.3.2\n"}, "ms-swift@4.3.2 (docker/Dockerfile)"),
        (
            SWIFT,
            {".venv/pyvenv.cfg": "", f"{PACKAGES}/ms_swift-4.3.2.dist-info/METADATA": ""},
            f"ms-swift@4.3.2 ({PACKAGES}/ms_swift-4.3.2.dist-info)",
        ),
        (
            VERL,
            {"requirements.txt": "verl==0.5.0\n"},
            "verl 0.5.0, which is not a known release, is read as verl@0.6.0",
        ),
    ],
)
def test_a_checkout_is_read_at_its_own_release(tmp_path: Path, script: str, files: dict[str, str], says: str) -> None:
    assert says in heading(job(tmp_path, script.format(more=""), **files))


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ('5\nPATCH = 1\nPRE_RELEASE = ""', "megatron-bridge@0.5.1 (src/megatron/bridge/package_info.py)"),
        ('4\nPATCH = 0\nPRE_RELEASE = "rc0"', "megatron-bridge@0.4.2 for megatron-bridge 0.4.0rc0 in this checkout"),
        ('9\nPATCH = 0\nPRE_RELEASE = ""', "megatron-bridge@0.6.0 for megatron-bridge 0.9.0 in this checkout"),
    ],
)
def test_a_recipe_is_read_at_the_release_of_its_checkout(tmp_path: Path, numbers: str, says: str) -> None:
    info = tmp_path / "src/megatron/bridge/package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text(f"MAJOR = 0\nMINOR = {numbers}\n", encoding="utf-8")
    sections = (
        "train: {train_iters: 9, micro_batch_size: 1, global_batch_size: 8}\nddp: {use_distributed_optimizer: true}\n"
    )
    (tmp_path / "run.yaml").write_text(f"{sections}model: {{tensor_model_parallel_size: 1}}\n", encoding="utf-8")
    assert says in heading(preflight.check(tmp_path / "run.yaml").jobs[0])


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("tensor_model_parallel_size=4", "DP 2 · TP 4 · PP 1 · CP 1 on 8 devices"),
        ("pipeline_model_parallel_size=2", "DP 4 · TP 1 · PP 2 · CP 1 on 8 devices"),
        ("context_parallel_size=2", "DP 4 · TP 1 · PP 1 · CP 2 on 8 devices"),
        ("expert_model_parallel_size=8", "DP 8 · TP 1 · PP 1 · CP 1 · EP 8 on 8 devices"),
        ("tensor_model_parallel_size=$TP", "DP 1 · TP 8 · PP 1 · CP 1 on 8 devices"),
        ("tensor_model_parallel_size=${UNSET:-2}", "DP 4 · TP 2 · PP 1 · CP 1 on 8 devices"),
        ("virtual_pipeline_model_parallel_size=2", "DP 8 · TP 1 · PP 1 · CP 1 on 8 devices"),
        ("override_transformer_config.recompute_granularity=full", "recompute    full"),
        ("sequence_parallel=False", "DP 8 · TP 1 · PP 1 · CP 1 on 8 devices"),
        ("tensor_model_parallel_size=3", "DP ? · TP 3 · PP 1 · CP 1 on 8 devices"),
    ],
)
def test_the_sizes_of_the_mindspeed_engine_are_read(tmp_path: Path, sizes: str, says: str) -> None:
    more = f"actor_rollout_ref.actor.mindspeed.{sizes}"
    script = "TP=8\n" + VERL.format(more=more).replace("=megatron", "=mindspeed")
    found = job(tmp_path, script)
    assert says in overview(found) and "of the releases that preflight knows, 0.8.0 and 0.9.0 fit" in heading(found)


@pytest.mark.parametrize("source", ["models/qwen3-4B.sh", '"${SCRIPT_DIR}/models/qwen3-4B.sh"', "/root/m.sh"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--global-batch-size 256", "256 = micro 1 × 32 micro-batches × DP 8"),
        ("--global-batch-size 64 --tensor-model-parallel-size 4", "64 = micro 1 × 32 micro-batches × DP 2"),
        ("--micro-batch-size 2 --global-batch-size 64", "64 = micro 2 × 4 micro-batches × DP 8"),
        ("--context-parallel-size 2 --global-batch-size 32", "32 = micro 1 × 8 micro-batches × DP 4"),
    ],
)
def test_a_network_that_is_not_read_leaves_the_batch(tmp_path: Path, source: str, more: str, says: str) -> None:
    found = job(tmp_path, f"source {source}\n{SLIME.format(more=f'${{MODEL_ARGS[@]}} {more}')}")
    assert says in overview(found) and "if no other options are added" in overview(found)


@pytest.mark.parametrize(
    ("entry", "framework"),
    [("train_async.py", "slime"), ("train_async_with_own.py", "slime"), ("train_own.py", "slime")],
)
def test_entries_of_forks_are_slimes(tmp_path: Path, entry: str, framework: str) -> None:
    found = job(tmp_path, SLIME.format(more="").replace("train.py", entry))
    assert found.target.framework == framework


@pytest.mark.parametrize(
    ("branch", "says"),
    [
        ('if [ "$DEVICE" = npu ]; then T+=(trainer.n_gpus_per_node=16); fi', "on an unknown number of devices"),
        ('if [ "$D" = a ]; then T+=(trainer.nnodes=4); fi', "on an unknown number of devices"),
        ("if true; then T+=(trainer.n_gpus_per_node=16); fi", "DP 16 · TP 1 · PP 1 · CP 1 on 16 devices"),
        ("A=1\nif [ $A = 2 ]; then T+=(trainer.n_gpus_per_node=16); fi", "on 8 devices"),
        ('if [ "$D" = a ]; then T+=(actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2); fi', "TP ?"),
        ("T+=(actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2)", "DP 4 · TP 2"),
    ],
)
def test_an_override_on_a_branch_is_not_known(tmp_path: Path, branch: str, says: str) -> None:
    head = "DEVICE=$(python3 -c 'import torch_npu' && echo npu || echo gpu)\nT=(trainer.project_name=a)\n"
    assert says in overview(job(tmp_path, head + branch + "\n" + VERL.format(more='"${T[@]}"')))


@pytest.mark.parametrize(
    ("config", "claimed"),
    [("dapo_transfer_queue_trainer", True), ("own_trainer.yaml", True), ("ppo_trainer", False)],
)
def test_sizes_over_a_config_of_a_recipe_are_megatrons(config: str, claimed: bool) -> None:
    sizes = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 trainer.n_gpus_per_node=8 trainer.nnodes=2"
    script = f"python3 -m recipe.dapo.main_dapo --config-name={config} {sizes}\n"
    report = preflight.check_text(script, name="run.sh")
    assert bool(report.jobs) is claimed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "#SBATCH --container-image=verlai/verl:app-verl0.5-transformers4.55.4",
            "verl 0.5, which is not a known release",
        ),
        ("docker run verlai/verl:vllm011.latest", "release unknown"),
        ("pip install verl==0.7.1", "verl@0.7.1 (the file names 0.7.1)"),
        ("pip install git+https://github.com/volcengine/verl@v0.6.1", "verl@0.6.1 (the file names 0.6.1)"),
        ("git clone --branch release/v0.8.0 https://github.com/verl-project/verl.git", "verl@0.8.0 (the file names"),
        ("cd /opt/verl-0.5.0", "verl 0.5.0, which is not a known release, is read as verl@0.6.0"),
    ],
)
def test_a_release_of_verl_that_a_script_names_is_read(tmp_path: Path, line: str, says: str) -> None:
    assert says in heading(job(tmp_path, f"{line}\n{VERL.format(more='')}"))
