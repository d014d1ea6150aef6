"""Keys and options that the source around a run declares, although no known release has them."""

from pathlib import Path

import pytest

import preflight
from preflight import Severity

SWIFT = "NPROC_PER_NODE=8 megatron sft --model m --dataset d --train_iters 10 --tensor_model_parallel_size 8 {more}\n"
LIES = "class MegatronArguments:\n    load_safetensors: bool = False\n    no_initialization: bool = True\n"
SLIME = "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 {more}\n"
ADDS = "def add(parser):\n    parser.add_argument('--prefill-num-servers', type=int)\n"


def kinds(folder: Path, name: str, files: dict[str, str]) -> dict[str, Severity | None]:
    for at, text in files.items():
        path = folder / at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return {one.rule: one.severity for one in preflight.check(folder / name).findings}


@pytest.mark.parametrize(
    ("option", "told"),
    [("load_safetensors true", False), ("no_initialization false", False), ("load_safetensorz true", True)],
)
def test_an_older_program_at_hand_has_options_of_its_own(tmp_path: Path, option: str, told: bool) -> None:
    files = {
        "swift/version.py": "__version__ = '3.11.0.dev0'\n",
        "swift/megatron/argument/megatron_args.py": LIES,
        "run.sh": SWIFT.format(more=f"--{option}"),
    }
    assert ("unread-key" in kinds(tmp_path, "run.sh", files)) is told


def test_a_described_release_at_hand_is_judged_by_its_table(tmp_path: Path) -> None:
    files = {
        "swift/version.py": "__version__ = '4.5.2'\n",
        "swift/megatron/argument/megatron_args.py": LIES,
        "run.sh": SWIFT.format(more="--no_initialization false"),
    }
    assert "unread-key" in kinds(tmp_path, "run.sh", files)


@pytest.mark.parametrize(("option", "told"), [("--prefill-num-servers 1", False), ("--prefil-num-servers 1", True)])
def test_a_renamed_fork_of_slime_adds_options_in_other_back_ends(tmp_path: Path, option: str, told: bool) -> None:
    files = {
        "vime/utils/arguments.py": "",
        "vime/backends/megatron_utils/arguments.py": "",
        "vime/backends/vllm_utils/arguments.py": ADDS,
        "run.sh": SLIME.format(more=option),
    }
    assert ("unread-key" in kinds(tmp_path, "run.sh", files)) is told


FLAGSCALE = """
system: {tensor_model_parallel_size: 1}
model: {num_layers: 2, hidden_size: 64, num_attention_heads: 2, seq_length: 64, max_position_embeddings: 64,
  train_iters: 10, micro_batch_size: 1, global_batch_size: 1, optimizer: muon, own_key: true}
data: {data_path: a, tokenizer: {tokenizer_type: NullTokenizer, vocab_size: 64}}
"""


@pytest.mark.parametrize(
    ("version", "told"), [("version = '1'", False), ('version = "1.0.0-alpha.0"', False), (None, True)]
)
def test_options_of_a_flagscale_after_the_described_one_are_not_judged(
    tmp_path: Path, version: str | None, told: bool
) -> None:
    files = {"conf/train/run.yaml": FLAGSCALE}
    if version is not None:
        files |= {"flagscale/transformations/__init__.py": "", "pyproject.toml": f"{version}\n"}
    found = kinds(tmp_path, "conf/train/run.yaml", files)
    assert (not {"unread-key", "bad-choice"}.isdisjoint(found)) is told


@pytest.mark.parametrize(
    ("more", "severity"),
    [
        ("--context_parallel_size 2", Severity.ERROR),
        ("--context_parallel_size 2 --output_dir $save_dir", Severity.WARNING),
        ("--context_parallel_size 2 --output_dir ${SAVE_DIR}", Severity.WARNING),
        ("--context_parallel_size 1 --output_dir $save_dir", None),
    ],
)
def test_the_environment_that_sets_variables_may_set_the_nodes(
    tmp_path: Path, more: str, severity: Severity | None
) -> None:
    assert kinds(tmp_path, "run.sh", {"run.sh": SWIFT.format(more=more)}).get("device-count") is severity


@pytest.mark.parametrize(("action", "told"), [(", action='append'", False), ("", True)])
def test_an_option_of_an_entry_script_may_collect_its_values(tmp_path: Path, action: str, told: bool) -> None:
    sizes = "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64 --max-position-embeddings 64"
    files = {
        "megatron/training/arguments.py": "def parse_args(extra_args_provider=None):\n    pass\n",
        "pretrain_own.py": f"def add(parser):\n    parser.add_argument('--more-data', type=str{action})\n",
        "run.sh": f"torchrun --nproc_per_node 1 pretrain_own.py {sizes} --more-data a --more-data b\n",
    }
    assert ("repeated-flag" in kinds(tmp_path, "run.sh", files)) is told
