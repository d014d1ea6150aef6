"""FlagScale: an experiment with its training config, options as passed to Megatron, fixes in place."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from composed import real_hydra, written
from harness import Cli

import preflight
from preflight import Severity
from preflight.frontends.flagscale import FLAGSCALE

EXPERIMENT = """\
defaults:
  - train: 7b
  - _self_
experiment:
  exp_name: run
  exp_dir: ./outputs
  seed: 42
  load: null
  task:
    type: train
    backend: megatron
    entrypoint: ./flagscale/train/train_gpt.py
  runner:
    backend: torchrun
    nnodes: 1
    nproc_per_node: 8
  envs:
    CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7
    CUDA_DEVICE_MAX_CONNECTIONS: 1
action: run
"""
BODY = """\
system:
  tensor_model_parallel_size: 2 # within a node
  pipeline_model_parallel_size: 1
  sequence_parallel: true
  use_distributed_optimizer: True
  overlap_grad_reduce: false
  precision:
    bf16: true
    initial_loss_scale: 522893
  logging:
    log_interval: 1
    log_dir: ./logs
  checkpoint:
    load: ${experiment.load}
    save_interval: 100 # often
model:
  num_layers: 8
  hidden_size: 1024
  num_attention_heads: 16
  seq_length: 2048
  max_position_embeddings: 2048
  swiglu: true
  multiple_of: 256
  seed: ${experiment.seed}
  weight_decay: 0.1
  micro_batch_size: 1
  global_batch_size: 64
  train_iters: 1000
  optimizer:
    weight_decay: 0.01
    lr_scheduler:
      lr: 2e-4
      lr_decay_style: cosine
data:
  data_path: [0.5, ./a, 0.5, ./b]
  split: 1
  tokenizer:
    tokenizer_type: HFTokenizerFS
    tokenizer_path: ./tokenizer
    vocab_size: 32000
"""


def report(folder: Path, body: str = BODY, experiment: str = EXPERIMENT, **more: Any) -> preflight.Report:
    written(folder, {"setup.py": "", "conf/train.yaml": experiment, "conf/train/7b.yaml": body})
    found = preflight.check([str(folder / "conf" / "train.yaml")], **more)
    assert not found.crashes, found.crashes[0].trace
    return found


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def test_an_experiment_is_read_over_the_config_of_its_training(tmp_path: Path) -> None:
    found = report(tmp_path)
    (job,) = found.jobs
    assert str(job.target) == "flagscale@0.9.0"
    assert (job.plan.layout.world.raw, job.plan.layout.tensor.raw, job.plan.layout.data.raw) == (8, 2, 4)
    assert (job.plan.batch.total.raw, job.plan.batch.micro.raw) == (64, 1)
    assert said(found) == {}


def test_options_are_what_flagscale_hands_to_the_parser(tmp_path: Path) -> None:
    arguments = report(tmp_path).jobs[0].arguments
    assert arguments.get("overlap_grad_reduce").raw is False
    assert "overlap_grad_reduce" not in arguments.written
    assert (arguments.get("weight_decay").raw, arguments.get("seed").raw, arguments.get("lr").raw) == (0.01, 42, 2e-4)
    assert arguments.get("data_path").raw == ["0.5", "./a", "0.5", "./b"]
    assert arguments.get("ffn_hidden_size").raw == 2816
    assert (arguments.get("save").raw, arguments.get("load").raw) == ("./outputs/checkpoints",) * 2


def _parser() -> argparse.ArgumentParser:
    """The front end's options as argparse has them."""
    kinds = {"int": int, "float": float, "str": str}
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in {flag.option: flag for flag in FLAGSCALE.keys.options.values()}.values():
        if flag.kind in ("true", "false"):
            parser.add_argument(flag.option, *flag.also, dest=flag.dest, action=f"store_{flag.kind}", default=None)
        elif flag.option.startswith("--") and flag.kind != "help":
            kind = kinds.get(flag.kind, str)
            parser.add_argument(flag.option, *flag.also, dest=flag.dest, type=kind, nargs=flag.nargs)
    return parser


def _words(config: dict[str, Any]) -> Iterator[str]:
    """flagscale/runner/utils.py, flatten_dict_to_args."""
    for key, value in config.items():
        if key in ("log_dir", "details_dir", "scripts_dir", "pids_dir"):
            continue
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, dict):
            yield from _words(value)
        elif isinstance(value, list):
            yield from (option, *(f"{one}" for one in value))
        elif value is not False:
            yield from (option,) if value is True else (option, f"{value}")


def taken(folder: Path, name: str) -> dict[str, Any]:
    """The result of Hydra, FlagScale's runner and argparse for an experiment."""
    train = real_hydra(folder, name)["train"]
    for part, keys in (("checkpoint", ("save", "load")), ("logging", ("tensorboard_dir", "wandb_save_dir"))):
        for key in keys:  # _update_config_train puts folders of the experiment in their place
            if not (train["system"].get(part) or {}).get(key):
                (train["system"].get(part) or {}).pop(key, None)
    found, left = _parser().parse_known_args(list(_words({**train["system"], **train["model"], **train["data"]})))
    assert not left
    return {dest: raw for dest, raw in vars(found).items() if raw is not None}


BODIES = [
    BODY,
    BODY.replace("  weight_decay: 0.1\n", "").replace("swiglu: true", "swiglu: True\n  clip_grad: 1"),
    BODY.replace("  optimizer:\n    weight_decay: 0.01\n", "  optimizer:\n    optimizer: sgd\n    weight_decay: 1\n"),
    BODY.replace("data:\n", "data:\n  seed: 7\n  micro_batch_size: 2\n"),
    BODY.replace("train_iters: 1000", "train_iters: 1_000\n  eval-iters: 0\n  init_method_std: 1.5e-2"),
]


@pytest.mark.parametrize("body", BODIES)
def test_values_are_those_of_hydra_and_argparse(tmp_path: Path, body: str) -> None:
    arguments = report(tmp_path, body).jobs[0].arguments
    flags = {flag.dest for option, flag in FLAGSCALE.keys.options.items() if option.startswith("--")}
    ours = {dest: value.raw for dest, value in arguments.written.items() if dest in flags}
    assert ours == taken(tmp_path / "conf", "train")


def test_a_fix_is_written_where_the_value_stands_and_keeps_comments(tmp_path: Path, real_cli: Cli) -> None:
    body = BODY.replace("sequence_parallel: true", "sequence_paralel: true # slip").replace(
        "    save_interval: 100 # often\n", ""
    )
    found = report(tmp_path, body)
    assert said(found) == {
        "unread-key": (
            "flagscale 0.9.0 has no key sequence_paralel and rejects the run; did you mean sequence_parallel?"
        ),
        "megatron/save-interval-missing": "--save needs --save-interval, the number of iterations between checkpoints",
    }
    assert real_cli("fix", "--unsafe", str(tmp_path / "conf" / "train.yaml")).code == 0
    text = (tmp_path / "conf" / "train" / "7b.yaml").read_text(encoding="utf-8")
    assert "  sequence_parallel: true # slip\n" in text
    assert "  tensor_model_parallel_size: 2 # within a node\n" in text
    assert text.replace("sequence_parallel: true", "sequence_paralel: true").splitlines() == [
        *(lines := body.splitlines())[: (at := lines.index("model:"))],
        "  save_interval: 1000",
        *lines[at:],
    ]
    assert (tmp_path / "conf" / "train.yaml").read_text(encoding="utf-8") == EXPERIMENT
    assert said(preflight.check([str(tmp_path / "conf" / "train.yaml")])) == {}


def test_a_key_of_another_release_is_no_error_unless_the_release_is_stated(tmp_path: Path) -> None:
    body = BODY.replace("system:\n", "system:\n  moe_router_fusion: true\n")
    (finding,) = [f for f in report(tmp_path, body).findings if f.rule == "unread-key"]
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("; other releases have it")
    (finding,) = [f for f in report(tmp_path, body, target="flagscale").findings if f.rule == "unread-key"]
    assert finding.severity is Severity.ERROR


def test_what_false_leaves_out_and_null_writes(tmp_path: Path) -> None:
    body = BODY.replace("overlap_grad_reduce: false", "num_workers: null")
    assert said(report(tmp_path, body)) == {"bad-value": "--num-workers takes an integer, not 'None'"}
    body = BODY.replace("seq_length: 2048", "seq_length: 2048.0")
    assert said(report(tmp_path, body)) == {"bad-value": "--seq-length takes an integer, not '2048.0'"}


@pytest.mark.parametrize(
    ("change", "world"),
    [
        (("nproc_per_node: 8", "nproc_per_node: 4"), 4),
        (("    nproc_per_node: 8\n", ""), 8),
        (("CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7", "CUDA_VISIBLE_DEVICES: 0,1"), 2),
        (("    CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7\n", ""), 8),
        (("nnodes: 1", "nnodes: 4"), 8),
        (("nnodes: 1", "nnodes: 2\n    type: cloud"), 16),
        (("nnodes: 1", 'nnodes: "2:4"\n    type: cloud'), 16),
        (("nnodes: 1", "nnodes: 2\n    type: cloud\n    per_node_task: true"), 8),
        (("nnodes: 1", "nnodes: 1\n    hostfile: ./hostfile"), None),
        (("nnodes: 1", "nnodes: 1\n    hostfile: null"), 8),
        (("action: run", "action: auto_tune"), None),
    ],
)
def test_devices_are_those_that_the_runner_starts(tmp_path: Path, change: tuple[str, str], world: int | None) -> None:
    value = report(tmp_path, experiment=EXPERIMENT.replace(*change)).jobs[0].plan.layout.world
    assert value.raw == world if world is not None else not value.known


def test_the_auto_tuner_chooses_the_layout(tmp_path: Path) -> None:
    wrong = BODY.replace("tensor_model_parallel_size: 2", "tensor_model_parallel_size: 3")
    assert "device-count" in said(report(tmp_path, wrong))
    assert said(report(tmp_path, wrong, EXPERIMENT.replace("action: run", "action: auto_tune"))) == {}


def test_a_body_that_is_not_there_and_an_entry_of_ones_own_leave_values_unknown(tmp_path: Path) -> None:
    own = BODY.replace("system:\n", "system:\n  my_option: 3\n")
    found = report(tmp_path, own, EXPERIMENT.replace("train_gpt.py", "my_train.py"))
    assert said(found) == {}
    assert not found.jobs[0].plan.layout.context.known
    (tmp_path / "conf" / "train" / "7b.yaml").unlink()
    found = preflight.check([str(tmp_path / "conf" / "train.yaml")])
    assert not found.crashes
    assert said(found) == {}
    assert not found.jobs[0].plan.layout.tensor.known


def test_what_is_to_be_filled_in_is_not_known(tmp_path: Path) -> None:
    found = report(tmp_path, BODY.replace("vocab_size: 32000", "vocab_size: xxxx"))
    assert said(found) == {}
    assert not found.jobs[0].arguments.get("vocab_size").known


def test_variables_of_the_experiment_reach_the_run(tmp_path: Path, real_cli: Cli) -> None:
    assert said(report(tmp_path, device="h100")) == {}
    found = report(tmp_path, experiment=EXPERIMENT.replace("CONNECTIONS: 1", "CONNECTIONS: 8"), device="h100")
    (message,) = said(found).values()
    assert "CUDA_DEVICE_MAX_CONNECTIONS" in message
    run = str(tmp_path / "conf" / "train.yaml")
    assert real_cli("fix", "--unsafe", "--device", "h100", run).code == 0
    assert (tmp_path / "conf" / "train.yaml").read_text(encoding="utf-8") == EXPERIMENT


def test_the_config_of_the_training_is_checked_alone_too(tmp_path: Path, real_cli: Cli) -> None:
    report(tmp_path, BODY.replace("num_attention_heads: 16", "num_attention_heads: 15 # odd"))
    body = tmp_path / "conf" / "train" / "7b.yaml"
    found = preflight.check([str(body)])
    (job,) = found.jobs
    assert not found.crashes
    assert (job.plan.layout.tensor.raw, job.plan.layout.world.known, job.arguments.get("seed").known) == (
        2,
        False,
        False,
    )
    assert {f.span.line for f in found.findings if f.severity is Severity.ERROR} == {18}
    body.write_text(BODY.replace("sequence_parallel", "sequence_paralel"), encoding="utf-8")
    assert real_cli("fix", "--unsafe", str(body)).code == 0
    assert body.read_text(encoding="utf-8") == BODY


def test_the_length_of_a_run_that_may_be_tuned_is_not_known(tmp_path: Path) -> None:
    body = BODY.replace("train_iters: 1000", "train_samples: 100\n  lr_warmup_samples: 2000")
    assert list(said(report(tmp_path, body))) == ["megatron/warmup-over-decay"]
    assert said(preflight.check([str(tmp_path / "conf" / "train" / "7b.yaml")])) == {}


MESHES = """\
  hetero:
    enable_hetero: true
    untie_embeddings_and_output_weights: true
    hetero_process_meshes: [1, 1, 1, 4, 1, 2, 1, 1, 2, 1]
    hetero_device_types: [A800, A100]
    hetero_current_device_type: A800
"""


def test_with_process_meshes_no_size_is_that_of_all_ranks(tmp_path: Path) -> None:
    body = BODY.replace("  precision:\n", f"{MESHES}  precision:\n", 1)
    found = report(tmp_path, body)
    assert said(found) == {
        "flagscale/mesh-stages": "pipeline_model_parallel_size is 1, but the process meshes have 2 stages",
        "flagscale/mesh-checkpoints": said(found)["flagscale/mesh-checkpoints"],
    }
    layout = found.jobs[0].plan.layout
    assert not layout.tensor.known
    assert not layout.data.known


def test_configs_that_name_themselves_end_and_nothing_outside_is_opened(tmp_path: Path, real_cli: Cli) -> None:
    again = "defaults: [a, a, /train/a, _self_]\n" + BODY
    written(tmp_path, {"conf/train/a.yaml": again, "7b.yaml": BODY})
    assert said(report(tmp_path, again)) == {}
    out = EXPERIMENT.replace("train: 7b", "train: ../../7b")
    assert len(report(tmp_path, experiment=out).jobs[0].documents) == 1
    report(tmp_path, BODY.replace("tensor_model_parallel_size: 2", "tensor_model_parallel_size: 3"))
    run = str(tmp_path / "conf" / "train.yaml")
    assert "not a multiple of tensor 3" in real_cli("check", run).out
    assert "not a multiple of tensor 3" in real_cli("check", "--isolated", run).out


@pytest.mark.parametrize("text", ["experiment: {task: {backend: vllm}, runner: {}}\n", "experiment: []\n", "- 1\n"])
def test_other_files_are_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert not preflight.check([str(tmp_path / "a.yaml")]).jobs


@pytest.mark.parametrize("text", ["experiment: {task: {backend: megatron}, runner: 1}\ntrain: 3\n"])
def test_sections_of_another_kind_are_no_crash(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert not preflight.check([str(tmp_path / "a.yaml")]).crashes


def test_memory_and_layouts_answer(tmp_path: Path, real_cli: Cli) -> None:
    report(tmp_path)
    run = str(tmp_path / "conf" / "train.yaml")
    assert "required" in real_cli("memory", run, "--device", "h100").out
    found = real_cli("layouts", run, "--device", "h100")
    assert (found.code, found.err) == (0, "")
    assert "layouts considered" in found.out


def test_a_layout_is_written_into_the_file_that_says_it(tmp_path: Path, real_cli: Cli) -> None:
    report(tmp_path)
    run = str(tmp_path / "conf" / "train.yaml")
    found = real_cli("layouts", run, "--device", "h100", "--keep", "tp=4", "--apply", "1")
    assert (found.code, "7b.yaml: layout 1 was written" in found.err) == (0, True)
    text = (tmp_path / "conf" / "train" / "7b.yaml").read_text(encoding="utf-8")
    assert "  tensor_model_parallel_size: 4 # within a node\n" in text
    assert (tmp_path / "conf" / "train.yaml").read_text(encoding="utf-8") == EXPERIMENT
    assert preflight.check([run]).jobs[0].plan.layout.tensor.raw == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("train: 7b", "train: 7bb", "there is no train/7bb.yaml; did you mean 7b?"),
        ("exp_name: run", "exp_name: run_${experiment.sed}", "experiment.exp_name refers to experiment.sed, which"),
        ("action: run", "action: run\nhydra: {run: {dir: '${experiment.exp_dirs}/h'}}", "hydra.run.dir refers to"),
    ],
)
def test_what_hydra_refuses(tmp_path: Path, old: str, new: str, message: str) -> None:
    found = said(report(tmp_path, experiment=EXPERIMENT.replace(old, new)))
    assert found["composition-refused"].startswith(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("train: 7b", "train: 70x4"),
        ("exp_name: run", "exp_name: run_${experiment.seed}"),
        ("action: run", "action: run\nhydra: {run: {dir: '${experiment.exp_dir}/h'}}"),
        ("action: run", "action: run\nhydra: {sweep: {subdir: '${hydra.job.num}'}}"),
        ("exp_name: run", "exp_name: ${oc.env:NAME}"),
    ],
)
def test_what_hydra_takes(tmp_path: Path, old: str, new: str) -> None:
    assert "composition-refused" not in said(report(tmp_path, experiment=EXPERIMENT.replace(old, new)))


@pytest.mark.parametrize(("release", "judged"), [("1.0.0", False), ("", True)])
def test_a_release_with_another_megatron_has_other_options(tmp_path: Path, release: str, judged: bool) -> None:
    """From 1.0 on, FlagScale trains with a separately installed Megatron."""
    if release:
        (tmp_path / "flagscale" / "transformations").mkdir(parents=True)
        (tmp_path / "flagscale" / "transformations" / "__init__.py").write_text("", encoding="utf-8")
        text = f'[project]\nname = "flagscale"\nversion = "{release}"\n'
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    body = BODY.replace("  hidden_size: 1024\n", "  hidden_size: 1024\n  engram_layer_ids: 3\n")
    assert ("unread-key" in said(report(tmp_path, body))) is judged
    body = BODY.replace("  hidden_size: 1024\n", "  hidden_size: 1024\n  position_embedding_type: alibi\n")
    assert ("bad-choice" in said(report(tmp_path, body))) is judged
