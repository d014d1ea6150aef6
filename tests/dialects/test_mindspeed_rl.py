"""MindSpeed-RL: a config with its model, the actor's options, and fixes in the section of a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity

MODEL = """\
tiny:
  use_mcore_models: true
  num_layers: 8
  hidden_size: 1024
  ffn_hidden_size: 4096
  num_attention_heads: 16
  max_position_embeddings: 4096
  padded_vocab_size: 32000
  position_embedding_type: rope
"""
RUN = """\
defaults:
  - model:
      - tiny

megatron_training:
  model: tiny
  sequence_parallel: true
  use_flash_attn: true
  bf16: true
  use_distributed_optimizer: true
  tokenizer_type: PretrainedFromHF
  tokenizer_name_or_path: ./tokenizer
  global_batch_size: 32 # prompts
  seq_length: 2048
  train_iters: 500
  stage: ray_grpo

actor_config:
  micro_batch_size: 2
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  lr: 1e-6
  no_load_optim: false

rl_config:
  mini_batch_size: 32
  n_samples_per_prompt: 8
  use_remove_padding: false # not yet
  actor_resource:
    num_npus: 16

generate_config:
  infer_tensor_parallel_size: 2
  max_model_len: 4096
"""


def write(folder: Path, run: str = RUN, model: str = MODEL) -> Path:
    (folder / "pyproject.toml").touch()
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "tiny.yaml").write_text(model, encoding="utf-8")
    (folder / "run.yaml").write_text(run, encoding="utf-8")
    return folder / "run.yaml"


def report(folder: Path, run: str = RUN, model: str = MODEL, **asked: object) -> preflight.Report:
    found = preflight.check([str(write(folder, run, model))], **asked)  # type: ignore[arg-type]
    assert not found.crashes, found.crashes[0].trace
    return found


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def test_the_actor_is_read_over_its_model_on_its_devices(tmp_path: Path) -> None:
    found = report(tmp_path)
    plan, arguments = found.jobs[0].plan, found.jobs[0].arguments
    assert str(found.jobs[0].target) == "mindspeed-rl@2.3.0"
    assert (plan.layout.world.raw, plan.layout.data.raw, plan.model.layers.raw) == (16, 4, 8)
    assert (plan.batch.total.raw, arguments.get("lr").raw) == (256, 1e-6)
    assert arguments.get("context_parallel_algo").raw == "ulysses_cp_algo"
    assert said(found) == {}


def test_a_check_of_megatron_is_told_at_the_key_in_the_model(tmp_path: Path) -> None:
    found = report(tmp_path, model=MODEL.replace("num_layers: 8", "num_layers: 7"))
    (finding,) = [f for f in found.findings if f.severity is Severity.ERROR]
    assert (Path(finding.span.path).name, finding.span.line) == ("tiny.yaml", 3)


def test_the_actor_wins_over_the_shared_section(tmp_path: Path) -> None:
    shared = RUN.replace("  stage:", "  tensor_model_parallel_size: 8\n  stage:")
    assert report(tmp_path, shared).jobs[0].plan.layout.tensor.raw == 2


def test_dapo_is_handed_on_as_grpo(tmp_path: Path) -> None:
    assert said(report(tmp_path, RUN.replace("ray_grpo", "ray_dapo"))) == {}
    assert "bad-choice" in said(report(tmp_path, RUN.replace("ray_grpo", "ray_nothing")))


def test_a_key_that_no_class_has_is_refused(tmp_path: Path) -> None:
    found = said(report(tmp_path, RUN.replace("mini_batch_size: 32\n  n_s", "mini_batchsize: 32\n  n_s")))
    assert found == {
        "unread-key": "mindspeed-rl 2.3.0 has no key rl_config.mini_batchsize and rejects the run; "
        "did you mean rl_config.mini_batch_size?"
    }


def test_a_key_of_another_role_is_refused_too(tmp_path: Path) -> None:
    apart = RUN.replace("  mini_batch_size", "  use_integrated_worker: false\n  mini_batch_size")
    found = said(report(tmp_path, apart + "ref_config:\n  model: tiny\n  micro_batchs: 1\n"))
    assert found["unread-key"].startswith("mindspeed-rl 2.3.0 has no key ref_config.micro_batchs and rejects the run")


@pytest.mark.parametrize(
    ("file", "told"),
    [("megatron_config.py", False), ("generate_config.py", True), ("", True)],
)
def test_a_key_that_the_checkouts_class_has_is_known(tmp_path: Path, file: str, told: bool) -> None:
    if file:
        folder = tmp_path / "mindspeed_rl/config_cls"
        folder.mkdir(parents=True)
        (folder / file).write_text("self.own_log_prob_size = None\n", encoding="utf-8")
    (tmp_path / "setup.py").touch()
    own = RUN.replace("  stage:", "  own_log_prob_size: 32\n  stage:")
    assert ("unread-key" in said(report(tmp_path, own))) is told


def test_keys_of_older_releases_are_read_as_those(tmp_path: Path) -> None:
    older = RUN.replace("  stage:", "  cp_attention_mask_type: causal\n  stage:")
    found = report(tmp_path, older)
    assert str(found.jobs[0].target) == "mindspeed-rl@2.2.0"
    assert found.jobs[0].arguments.versions["megatron"] == "0.8.0"
    assert [f for f in found.findings if f.rule == "unread-key"] == []
    assert said(report(tmp_path, older, target="mindspeed-rl@2.2.0")) == {}
    assert "unread-key" in said(report(tmp_path, older, target="mindspeed-rl@2.3.0"))
    assert str(report(tmp_path, target="mindspeed-rl@2.2").jobs[0].target) == "mindspeed-rl@2.2.0"


def test_sequences_are_as_long_as_prompts_and_responses(tmp_path: Path) -> None:
    limits = RUN.replace("mini_batch_size: 32\n  n_s", "max_prompt_length: 1024\n  n_s")
    plan = report(tmp_path, limits + "  sampling_config: {max_tokens: 3072}\n").jobs[0].plan
    assert (plan.model.sequence.raw, plan.batch.varying.raw) == (4096, True)


def test_no_stages_end_no_check(tmp_path: Path) -> None:
    stages = "pipeline_model_parallel_size: 0\n  num_layer_list: 4,4"
    found = report(tmp_path, RUN.replace("pipeline_model_parallel_size: 2", stages))
    assert any(f.severity is Severity.ERROR for f in found.findings)


def test_without_the_model_nothing_is_known_of_its_sizes(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "model" / "tiny.yaml").unlink()
    found = preflight.check([str(path)])
    assert not found.crashes
    assert said(found) == {}
    assert not found.jobs[0].plan.model.layers.known
    assert found.jobs[0].plan.layout.tensor.raw == 2


def test_isolated_opens_no_model_outside_of_the_folder_of_the_config(tmp_path: Path, real_cli: Cli) -> None:
    path = write(tmp_path, model=MODEL.replace("num_layers: 8", "num_layers: 7"))
    assert real_cli("check", str(path)).code == 1
    assert real_cli("check", "--isolated", str(path)).code == 1
    elsewhere = tmp_path / "elsewhere"
    (path.parent / "model").rename(elsewhere)
    deeper = path.parent / "deeper"
    deeper.mkdir()
    moved = path.rename(deeper / path.name)
    (deeper / "model").symlink_to(elsewhere)
    assert real_cli("check", "--isolated", str(moved)).code == 0


def test_a_config_without_roles_says_no_devices(tmp_path: Path) -> None:
    dpo = (
        RUN.partition("actor_config:")[0].replace("ray_grpo", "dpo")
        + "  lr: 1e-6\n  min-lr: 0\n  micro_batch_size: 1\n"
    )
    dpo = dpo.replace("\n\n  lr", "\n  lr")
    found = report(tmp_path, dpo)
    assert not found.jobs[0].plan.layout.world.known
    assert (found.jobs[0].plan.batch.total.raw, found.jobs[0].arguments.get("min_lr").raw) == (32, 0)
    assert said(found) == {}
    assert report(tmp_path, dpo, world_size=8).jobs[0].plan.layout.data.raw == 8


def test_a_fix_keeps_comments_and_the_section(tmp_path: Path, real_cli: Cli) -> None:
    path = write(tmp_path, RUN.replace("max_model_len: 4096", "max_model_len: 1024 # short"))
    assert real_cli("fix", "--unsafe", str(path)).code == 0
    assert path.read_text(encoding="utf-8") == RUN.replace("max_model_len: 4096", "max_model_len: 2048 # short")


def test_a_key_that_nobody_typed_is_added_to_the_actor(tmp_path: Path, real_cli: Cli) -> None:
    packed = RUN.replace("use_remove_padding: false", "use_remove_padding: true")
    path = write(tmp_path, packed)
    assert real_cli("fix", "--unsafe", str(path)).code == 0
    actor = path.read_text(encoding="utf-8").partition("actor_config:")[2].partition("\n\n")[0]
    assert "no_pad_to_seq_lengths: true" in actor
    assert "reset_attention_mask: true" in actor
    assert (tmp_path / "model" / "tiny.yaml").read_text(encoding="utf-8") == MODEL


LAUNCH = "NAME=${1:-run}\npython cli/train_grpo.py --config-name $NAME "


def launched(folder: Path, more: str) -> preflight.Report:
    for name in ("configs", "examples"):
        (folder / name).mkdir(exist_ok=True)
    write(folder / "configs")
    (folder / "configs" / "pyproject.toml").unlink()
    (folder / "pyproject.toml").touch()
    script = folder / "examples" / "run.sh"
    script.write_text(LAUNCH + more + "\n", encoding="utf-8")
    found = preflight.check([str(script)])
    assert not found.crashes, found.crashes[0].trace
    return found


def test_a_launch_is_read_with_its_config_and_overrides(tmp_path: Path) -> None:
    (job,) = launched(tmp_path, "actor_config.tensor_model_parallel_size=4").jobs
    assert [Path(one.source.name).name for one in job.documents] == ["run.sh", "run.yaml", "tiny.yaml"]
    assert (job.plan.layout.world.raw, job.plan.layout.tensor.raw) == (16, 4)


def test_what_a_launch_overrides_is_told_and_mended_there(tmp_path: Path, real_cli: Cli) -> None:
    found = launched(tmp_path, "generate_config.max_model_len=1024")
    (finding,) = [f for f in found.findings if f.severity is Severity.ERROR]
    assert (finding.rule, Path(finding.span.path).name) == ("mindspeed-rl/length-beyond-generation", "run.sh")
    assert real_cli("fix", "--unsafe", str(tmp_path / "examples" / "run.sh")).code == 0
    text = (tmp_path / "examples" / "run.sh").read_text(encoding="utf-8")
    assert text == LAUNCH + "generate_config.max_model_len=2048\n"
    assert (tmp_path / "configs" / "run.yaml").read_text(encoding="utf-8") == RUN


def test_a_config_in_another_folder_is_not_known(tmp_path: Path) -> None:
    assert not launched(tmp_path, "--config-path /data/mine").jobs[0].plan.layout.tensor.known
    assert launched(tmp_path, "--config-path=$HERE/../configs").jobs[0].plan.layout.tensor.raw == 2


def test_nearly_every_key_that_becomes_an_option_is_one_of_mindspeed_llm() -> None:
    from preflight.dialects.megatron.options import table
    from preflight.frontends.front_end import data

    options = table("mindspeed-llm", "2.3.0").options
    keys = [key for key in data("mindspeed-rl")["keys"] if "." not in key]
    mapped = [key for key in keys if f"--{key.replace('_', '-')}" in options]
    assert len(keys) > 150
    assert len(mapped) / len(keys) > 0.95


def test_a_batch_is_mended_in_prompts(tmp_path: Path) -> None:
    found = report(tmp_path, RUN.replace("global_batch_size: 32", "global_batch_size: 30"))
    assert "30 prompts" in said(found)["mindspeed-rl/prompts-over-ranks"]


def test_a_key_without_effect_is_removed_and_no_null_is_handed_on(tmp_path: Path) -> None:
    coc = "  use_ascend_coc: true\n  coc_fused_kernel: true\n"
    path = tmp_path / "grpo.yaml"
    text = RUN.replace("  bf16: true\n", f"  bf16: true\n{coc}  coc_parallel_num: 2\n")
    path.write_text(text, encoding="utf-8")
    found = preflight.check([str(path)], target="mindspeed-rl")
    fix = next(f.fix for f in found.findings if f.rule == "mindspeed/coc-parallel-num-without-effect")
    assert fix is not None
    assert [edit.action for edit in fix.edits] == ["remove"]
