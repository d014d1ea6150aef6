"""Options without effect, or that contradict each other, are refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

SCRIPT = """NNODES=${NNODES:-1}
source ./sizes.sh
run() {
  echo "on $HOSTS"
  torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py --num-layers 8 --hidden-size 1024 \\
  --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size $MICRO --bf16 \\
  --lr 1e-4 \\
  --global-batch-size $((BATCH*8)) --train-iters 10 --tokenizer-type HuggingFaceTokenizer --tokenizer-model $TOK
}
run
"""
SIZES = "MICRO=${MICRO_BATCH:-1}\nBATCH=8\n"
YAML = """run_mode: train
use_parallel: True
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1}
runner_config: {epochs: 2, batch_size: 1}
model:
  model_config: {type: LlamaConfig, num_layers: 4, hidden_size: 512, num_heads: 8, seq_length: 1024}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "sizes.sh").write_text(SIZES)
    (tmp_path / "model.yaml").write_text(YAML)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "said", "meant"),
    [
        ("run.sh", "NNODE=2", "; did you mean 'NNODES'?"),
        ("run.sh", "nnodes=2", "; did you mean 'NNODES'?"),
        ("run.sh", "MICROS=2", "; did you mean 'MICRO'?"),
        ("run.sh", "MICRO_BATCHES=2", "; did you mean 'MICRO_BATCH'?"),
        ("run.sh", "num_layer=4", "; did you mean 'num_layers'?"),
        ("run.sh", "hidden-sizes=4", "; did you mean 'hidden_size'?"),
        ("run.sh", "zzzzzz=4", ""),
        ("model.yaml", "num_layer=4", "; did you mean 'num_layers'?"),
        ("model.yaml", "NNODES=2", ""),
        ("run.sh model.yaml", "NNODE=2", "; did you mean 'NNODES'?"),
    ],
)
def test_a_name_that_nothing_reads_is_refused(real_cli: Cli, project: Path, files: str, said: str, meant: str) -> None:
    ran = real_cli("check", *files.split(), "--set", said, "--world-size", "8")
    name = said.partition("=")[0]
    expected = f"preflight: --set {said}: no checked file reads {name}{meant}\n"
    assert (ran.code, ran.out, ran.err.splitlines(keepends=True)[-1]) == (2, "", expected)


@pytest.mark.halved
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("run.sh", "NNODES=2"),
        ("run.sh", "MICRO=2"),
        ("run.sh", "MICRO_BATCH=2"),
        ("run.sh", "BATCH=2"),
        ("run.sh", "HOSTS=all"),
        ("run.sh", "TOK=/models/tok"),
        ("run.sh", "num_layers=4"),
        ("run.sh", "num-layers=4"),
        ("run.sh", "vocab_size=1024"),
        ("run.sh", "swiglu=true"),
        ("run.sh", "no-bias-gelu-fusion=true"),
        ("model.yaml", "num_layers=6"),
        ("model.yaml", "vocab_size=1024"),
        ("model.yaml", "runner_config.epochs=3"),
        ("model.yaml", "epochs=3"),
        ("run.sh model.yaml", "MICRO=2"),
        (".", "epochs=3"),
        (".", "MICRO=1"),
    ],
)
def test_a_name_that_one_of_the_files_reads_is_taken(real_cli: Cli, project: Path, files: str, said: str) -> None:
    for words in ((), ("-f", "concise"), ("--jobs", "2", "--no-cache")):
        ran = real_cli("check", *files.split(), "--set", said, "--exit-zero", *words)
        assert "no checked file" not in ran.err, ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("check", "run.sh", "-f", "json"),
        ("check", "run.sh", "--fix"),
        ("fix", "run.sh", "--unsafe"),
        ("show", "run.sh"),
        ("memory", "run.sh"),
        ("layouts", "run.sh", "--world-size", "8", "--device", "h100"),
        ("layouts", "run.sh", "--device", "h100", "--scale", "8,16"),
        ("migrate", "run.sh", "--to", "megatron@0.16.0"),
        ("diff", "run.sh", "sizes.sh"),
        ("baseline", "run.sh"),
        ("init",),
    ],
    ids=" ".join,
)
def test_every_command_refuses(real_cli: Cli, project: Path, words: tuple[str, ...]) -> None:
    (project / "run.sh").write_text(SCRIPT.replace("--bf16", "--bf16 --sequence-paralel"))
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    ran = real_cli(*words, "--set", "NNODE=2")
    assert ran.code == 2 and "reads NNODE; did you mean 'NNODES'?" in ran.err, ran
    assert {path.name: path.read_bytes() for path in project.iterdir()} == before


def test_stdin_and_a_command_refuse(real_cli: Cli, project: Path) -> None:
    ran = real_cli("check", "--set", "NNODE=2", "--", "bash", "run.sh")
    assert ran.code == 2 and "reads NNODE" in ran.err
    assert real_cli("check", "--exit-zero", "--set", "NNODES=2", "--", "bash", "run.sh").code == 0


def test_where_nothing_is_checked_that_is_said(real_cli: Cli, project: Path) -> None:
    ran = real_cli("check", "sizes.sh", "--set", "NNODE=2")
    assert ran.code == 2 and "nothing was checked" in ran.err


def test_settings_that_no_file_of_the_project_reads_are_a_warning(real_cli: Cli, project: Path) -> None:
    (project / "preflight.toml").write_text("[set]\nNNODE = 2\nMICRO = 1\n")
    told = "preflight: preflight.toml: [set] NNODE: no checked file reads it\n"
    for _ in range(2):  # cached reports are the same
        ran = real_cli("check", ".", "--exit-zero")
        assert (ran.code, ran.err.count(told)) == (0, 1), ran.err
    for one in ("model.yaml", "run.sh"):
        assert "[set]" not in real_cli("check", one, "--exit-zero").err, "other files may read it"
    (project / "inner").mkdir()
    (project / "inner" / "model.yaml").write_text(YAML)
    assert "[set]" not in real_cli("check", "inner", "--exit-zero").err, "so may those of other folders"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--nodes 2 --set NNODES=3", "--nodes 2 contradicts --set NNODES=3"),
        ("--set NNODES=3 --set SLURM_NNODES=2", "--set NNODES=3 contradicts --set SLURM_NNODES=2"),
        ("--devices-per-node 8 --set GPUS_PER_NODE=4", "--devices-per-node 8 contradicts --set GPUS_PER_NODE=4"),
        ("--world-size 8 --nodes 2 --devices-per-node 8", "a world size of 8 contradicts 2 nodes with 8 devices each"),
        ("--world-size 8 --set NNODES=2 --devices-per-node 8", "a world size of 8 contradicts 2 nodes"),
        ("--world-size 8 --nodes 3", "a world size of 8 cannot be divided evenly among 3 nodes"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(real_cli: Cli, project: Path, words: str, told: str) -> None:
    for command in ("check", "fix", "show"):
        ran = real_cli(command, "run.sh", *words.split())
        assert ran.code == 2 and told in ran.err, ran.err


@pytest.mark.parametrize("words", ["--nodes 2 --set NNODES=2", "--world-size 16 --set NNODES=2", "--world-size 4"])
def test_counts_that_agree_are_taken(real_cli: Cli, project: Path, words: str) -> None:
    assert real_cli("check", "run.sh", "--exit-zero", *words.split()).code == 0


def test_contradictory_counts_in_settings_name_the_file(real_cli: Cli, project: Path) -> None:
    (project / "preflight.toml").write_text("nodes = 2\n[set]\nNNODES = 3\n")
    ran = real_cli("check", "run.sh")
    assert ran.code == 2 and "preflight.toml: --nodes 2 contradicts --set NNODES=3" in ran.err


@pytest.mark.parametrize("to", ["megatron@0.99", "megatron@1.0", "megatron@0.5.0", "megatron@latest"])
def test_a_release_that_is_not_described_is_no_aim_of_a_move(real_cli: Cli, project: Path, to: str) -> None:
    ran = real_cli("migrate", "run.sh", "--to", to)
    assert ran.code == 2 and f"{to} is not a known release; the known releases are 0.6.0, 0.7.0," in ran.err


@pytest.mark.parametrize("to", ["megatron@0.16.0", "megatron@0.16.1", "megatron@v0.16.0", "megatron@0.16", "megatron"])
def test_a_release_that_is_described_is(real_cli: Cli, project: Path, to: str) -> None:
    ran = real_cli("migrate", "run.sh", "--target", "megatron@0.15.0", "--to", to)
    assert ran.code in (0, 1) and "not a release" not in ran.err


def test_unsafe_fixes_without_a_fix_are_refused(real_cli: Cli, project: Path) -> None:
    ran = real_cli("check", "run.sh", "--unsafe")
    assert ran.code == 2 and "--unsafe needs --fix" in ran.err
