"""NeMo RL: a config with its parents, the training devices, and fixes in the file that contains a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity

BASE = """\
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  logprob_batch_size: ${policy.train_micro_batch_size}
  max_total_sequence_length: 512
  precision: bfloat16
  dtensor_cfg: {enabled: false}
  dynamic_batching: {enabled: false}
  sequence_packing:
    enabled: true
    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}
  megatron_cfg:
    enabled: true
    activation_checkpointing: false
    tensor_model_parallel_size: 1
    expert_tensor_parallel_size: 1
    expert_model_parallel_size: 1
    pipeline_model_parallel_size: 1
    context_parallel_size: 1
    sequence_parallel: false
    optimizer: {optimizer: adam, lr: 5e-6, clip_grad: 1.0}
  generation:
    backend: vllm
    colocated: {enabled: true, resources: {gpus_per_node: null, num_nodes: null}}
cluster:
  gpus_per_node: 8
  num_nodes: 1
"""
CHILD = "defaults: ../base_megatron.yaml\n"


def report(folder: Path, child: str, base: str = BASE, top: bool = True) -> preflight.Report:
    (folder / "recipes").mkdir(exist_ok=True)
    if top:
        (folder / "pyproject.toml").touch()
    (folder / "base_megatron.yaml").write_text(base, encoding="utf-8")
    (folder / "recipes" / "run.yaml").write_text(CHILD + child, encoding="utf-8")
    found = preflight.check([str(folder / "recipes" / "run.yaml")])
    assert not found.crashes, found.crashes[0].trace
    return found


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def test_a_config_is_read_over_its_parent(tmp_path: Path) -> None:
    found = report(tmp_path, "policy: {megatron_cfg: {tensor_model_parallel_size: 4}}\ncluster: {num_nodes: 2}\n")
    plan, arguments = found.jobs[0].plan, found.jobs[0].arguments
    assert str(found.jobs[0].target) == "nemo-rl@0.7.0"
    assert (plan.layout.world.raw, plan.layout.tensor.raw, plan.layout.data.raw) == (16, 4, 4)
    assert (plan.batch.total.raw, arguments.get("lr").raw) == (512, 5e-6)
    assert arguments.get("logprob_batch_size").raw == 4
    assert len(found.jobs[0].documents) == 2
    assert said(found) == {}


def test_devices_that_generate_do_not_train(tmp_path: Path) -> None:
    apart = "policy: {generation: {colocated: {enabled: false, resources: {gpus_per_node: 8, num_nodes: 1}}}}\n"
    assert report(tmp_path, apart + "cluster: {num_nodes: 4}\n").jobs[0].plan.layout.world.raw == 24
    apart = "policy: {generation: {colocated: {enabled: false, resources: {gpus_per_node: 2}}}}\n"
    assert report(tmp_path, apart).jobs[0].plan.layout.world.raw == 6
    reward = "env: {reward_model: {enabled: true}}\n"
    assert not report(tmp_path, reward).jobs[0].plan.layout.world.known


def test_packed_batches_have_no_micro_batch_and_recomputation_is_one_switch(tmp_path: Path) -> None:
    job = report(tmp_path, "policy: {megatron_cfg: {activation_checkpointing: true}}\n").jobs[0]
    assert not job.plan.batch.micro.known
    assert job.arguments.get("recompute_granularity").raw == "full"
    assert job.arguments.get("recompute_method").raw == "uniform"
    assert not job.arguments.get("num_layers").known


def test_fp8_is_in_effect_where_its_section_is_enabled(tmp_path: Path) -> None:
    section = (
        "policy: {{megatron_cfg: {{fp8_cfg: {{enabled: {on}, fp8: e4m3, fp8_recipe: blockwise, fp8_param: true}}}}}}\n"
    )
    arguments = report(tmp_path, section.format(on="true")).jobs[0].arguments
    assert [arguments.get(n).raw for n in ("fp8", "fp8_recipe", "fp8_param_gather")] == ["e4m3", "blockwise", True]
    assert report(tmp_path, section.format(on="false")).jobs[0].arguments.get("fp8").raw is None


def test_an_expert_grid_that_the_devices_do_not_have_is_told(tmp_path: Path) -> None:
    found = report(tmp_path, "policy: {megatron_cfg: {expert_model_parallel_size: 16}}\n")
    assert list(said(found)) == ["expert-grid"]


def test_a_value_of_the_parent_is_told_in_the_parent(tmp_path: Path) -> None:
    found = report(tmp_path, "cluster: {num_nodes: 3}\n")
    (finding,) = [f for f in found.findings if f.rule == "nemo-rl/batch-over-ranks"]
    assert (Path(finding.span.path).name, finding.span.line, finding.span.text) == ("base_megatron.yaml", 3, "512")


def test_a_fix_is_written_where_the_value_stands(tmp_path: Path, real_cli: Cli) -> None:
    child = (
        "policy:\n  megatron_cfg:\n    context_parallel_size: 2 # long\n  sequence_packing:\n    enabled: false # why\n"
    )
    report(tmp_path, child)
    assert real_cli("fix", "--unsafe", str(tmp_path / "recipes" / "run.yaml")).code == 0
    text = (tmp_path / "recipes" / "run.yaml").read_text(encoding="utf-8")
    assert text == CHILD + child.replace("enabled: false", "enabled: true")
    assert (tmp_path / "base_megatron.yaml").read_text(encoding="utf-8") == BASE


def test_where_megatron_is_off_nothing_is_said(tmp_path: Path) -> None:
    found = report(tmp_path, "policy: {megatron_cfg: {enabled: false}}\ncluster: {num_nodes: 3}\n")
    assert not found.jobs
    found = report(
        tmp_path, "cluster: {num_nodes: 3}\n", BASE.replace("enabled: true\n    act", "enabled: false\n    act")
    )
    assert said(found) == {}
    assert not found.jobs[0].plan.layout.world.known


def test_without_the_parent_nothing_is_known_of_what_is_not_said(tmp_path: Path) -> None:
    report(
        tmp_path, "policy: {megatron_cfg: {tensor_model_parallel_size: 3}}\ncluster: {num_nodes: 1, gpus_per_node: 8}\n"
    )
    (tmp_path / "base_megatron.yaml").unlink()
    found = preflight.check([str(tmp_path / "recipes" / "run.yaml")])
    assert said(found) == {}
    assert not found.jobs[0].plan.layout.pipeline.known


def test_a_parent_outside_of_the_checkout_stays_closed(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").touch()
    (tmp_path / "base_megatron.yaml").write_text(BASE, encoding="utf-8")
    (inner / "run.yaml").write_text(CHILD, encoding="utf-8")
    assert len(preflight.check([str(inner / "run.yaml")]).jobs[0].documents) == 1
    (inner / "base_megatron.yaml").symlink_to(tmp_path / "base_megatron.yaml")
    (inner / "run.yaml").write_text("defaults: base_megatron.yaml\n", encoding="utf-8")
    assert len(preflight.check([str(inner / "run.yaml")]).jobs[0].documents) == 1
    (inner / "run.yaml").write_text(f"defaults: {tmp_path / 'base_megatron.yaml'}\n", encoding="utf-8")
    assert len(preflight.check([str(inner / "run.yaml")]).jobs[0].documents) == 1


def test_isolated_opens_no_parent_outside_of_the_folder_of_the_config(tmp_path: Path, real_cli: Cli) -> None:
    report(tmp_path, "cluster: {num_nodes: 3}\n")
    run = tmp_path / "recipes" / "run.yaml"
    words = ("check", str(run), "--target", "nemo-rl")
    assert "is not divisible by" in real_cli(*words).out
    assert "is not divisible by" not in real_cli(*words, "--isolated").out
    beside = run.with_name("parent_megatron.yaml")
    beside.write_text((tmp_path / "base_megatron.yaml").read_text())
    run.write_text(run.read_text().replace("../base_megatron.yaml", "parent_megatron.yaml"))
    assert "is not divisible by" in real_cli(*words, "--isolated").out
    beside.unlink()
    beside.symlink_to(tmp_path / "base_megatron.yaml")
    assert "is not divisible by" not in real_cli(*words, "--isolated").out


MEGATRONS = {
    "policy": """
        precision
    """,
    "policy.megatron_cfg": """
        empty_unused_memory_level activation_checkpointing recompute_granularity recompute_modules
        tensor_model_parallel_size expert_tensor_parallel_size expert_model_parallel_size
        pipeline_model_parallel_size num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage
        context_parallel_size pipeline_dtype sequence_parallel moe_router_dtype moe_router_load_balancing_type
        moe_router_bias_update_rate moe_permute_fusion apply_rope_fusion bias_activation_fusion
        moe_per_layer_logging moe_enable_deepep moe_token_dispatcher_type moe_shared_expert_overlap
        mtp_num_layers mtp_loss_scaling_factor mtp_use_repeated_layer mtp_detach_heads
        gradient_accumulation_fusion use_fused_weighted_squared_relu attention_backend
        inference_moe_token_dispatcher_type inference_grouped_gemm_backend moe_router_num_groups
        moe_router_group_topk transformer_impl cuda_graph_impl moe_pad_experts_for_cuda_graph_inference
        moe_grouped_gemm moe_flex_dispatcher_backend moe_hybridep_num_sms
    """,
    "policy.megatron_cfg.optimizer": """
        optimizer lr min_lr weight_decay bf16 fp16 params_dtype adam_beta1 adam_beta2 adam_eps sgd_momentum
        use_distributed_optimizer use_precision_aware_optimizer clip_grad optimizer_cpu_offload
        optimizer_offload_fraction
    """,
    "policy.megatron_cfg.scheduler": """
        start_weight_decay end_weight_decay weight_decay_incr_style lr_decay_style lr_decay_iters lr_warmup_iters
        lr_warmup_init
    """,
    "policy.megatron_cfg.distributed_data_parallel_config": """
        grad_reduce_in_fp32 overlap_grad_reduce overlap_param_gather use_custom_fsdp
        data_parallel_sharding_strategy
    """,
    "policy.megatron_cfg.fp8_cfg": """
        fp8 fp8_recipe fp8_param
    """,
}
"""The keys of the release that Megatron knows, by their section."""


def test_every_key_that_megatron_knows_is_mapped() -> None:
    """Each is in the front end's table, or a field of Megatron's by the same name.

    policy.optimizer and policy.scheduler are read by the other engine alone (nemo_rl/models/automodel/setup.py:806)."""
    from preflight.dialects.megatron.options import table
    from preflight.frontends.front_end import data

    found = data("nemo-rl")
    core = {f.dest for f in table("megatron", "0.18.0").options.values() if not f.option.startswith("--no-")}
    every = [(section, name) for section, names in MEGATRONS.items() for name in names.split()]
    left = {
        f"{section}.{name}"
        for section, name in every
        if f"{section}.{name}" not in found["keys"]
        and (found["inside"].get(section, {}).get(name, name) or "") not in core
    }
    assert (len(every), left) == (72, set())


@pytest.mark.parametrize(
    "text", ["policy: {name: x}\n", "defaults: base.yaml\n", "policy: [1]\ndefaults: [1]\n", "- 1\n"]
)
def test_other_files_are_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert not preflight.check([str(tmp_path / "a.yaml")]).jobs


LAUNCH = """#!/bin/bash
TOP=$(realpath $(dirname $0)/..)
uv run {entry} {config} policy.megatron_cfg.tensor_model_parallel_size={tensor} cluster.num_nodes=2 $@ 2>&1 | tee log
"""


def launch(folder: Path, config: str, tensor: int = 4, entry: str = "examples/run_grpo.py") -> preflight.Report:
    (folder / "pyproject.toml").touch()
    for name in ("tests", "examples/configs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("grpo_math_1B.yaml", "other.yaml"):
        (folder / "examples" / "configs" / name).write_text(BASE, encoding="utf-8")
    script = folder / "tests" / "run.sh"
    script.write_text(LAUNCH.format(config=config, tensor=tensor, entry=entry), encoding="utf-8")
    found = preflight.check([str(script)])
    assert not found.crashes, found.crashes[0].trace
    return found


@pytest.mark.parametrize(
    "config",
    [
        "",
        "--config examples/configs/other.yaml",
        "--config=examples/configs/other.yaml",
        "--config $TOP/examples/configs/other.yaml",
    ],
)
def test_a_command_is_read_over_its_config(tmp_path: Path, config: str) -> None:
    found = launch(tmp_path, config)
    layout = found.jobs[0].plan.layout
    assert str(found.jobs[0].target) == "nemo-rl@0.7.0"
    assert (layout.tensor.raw, layout.world.raw, layout.data.raw) == (4, 16, 4)
    assert said(found) == {}
    assert list(said(launch(tmp_path, config, tensor=5))) == ["device-count"]


def test_a_fix_of_a_command_is_an_override(tmp_path: Path, real_cli: Cli) -> None:
    launch(tmp_path, "policy.megatron_cfg.transformer_impl=inference_optimized")
    assert real_cli("fix", "--unsafe", str(tmp_path / "tests" / "run.sh")).code == 0
    text = (tmp_path / "tests" / "run.sh").read_text(encoding="utf-8")
    assert "policy.megatron_cfg.transformer_impl=transformer_engine" in text


def test_a_key_that_the_config_does_not_have_is_refused_in_a_command(tmp_path: Path) -> None:
    found = launch(tmp_path, "policy.train_micro_batchsize=2")
    assert [(f.rule, str(f.severity)) for f in found.findings] == [("unread-key", "error")]
    assert said(launch(tmp_path, "++policy.train_micro_batchsize=2")) == {}


@pytest.mark.parametrize("config", ["--config $1", "--config examples/configs/none.yaml"])
def test_a_config_that_is_not_read_leaves_all_unknown(tmp_path: Path, config: str) -> None:
    found = launch(tmp_path, config, tensor=5)
    assert said(found) == {}
    assert not found.jobs[0].plan.layout.world.known


def test_a_check_that_the_environment_turns_off_is_not_made(tmp_path: Path) -> None:
    unequal = "policy.logprob_batch_size=1"
    assert list(said(launch(tmp_path, unequal))) == ["nemo-rl/unequal-micro-batches"]
    script = tmp_path / "tests" / "run.sh"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("TOP=", "export NRL_IGNORE_TP_ACCURACY_CHECK=1\nTOP="), encoding="utf-8")
    assert said(preflight.check([str(script)])) == {}


@pytest.mark.parametrize(
    ("named", "told"),
    [("base-megatron.yml", True), ("Base_megatron.yaml", True), ("case_megatron.yaml", False)],
)
def test_a_parent_by_another_ending_is_told(named: str, told: bool, tmp_path: Path) -> None:
    (tmp_path / "base_megatron.yaml").write_text("policy: {megatron_cfg: {enabled: true}}\n", encoding="utf-8")
    config = tmp_path / "run.yaml"
    config.write_text(f"defaults: {named}\npolicy: {{megatron_cfg: {{enabled: true}}}}\n", encoding="utf-8")
    rules = {f.rule for f in preflight.check([str(config)], target="nemo-rl@0.7.0").findings}
    assert ("composition-refused" in rules) is told


@pytest.mark.parametrize(
    ("lies", "severity"), [("0.7.0", Severity.ERROR), ("0.4.0", None), ("", Severity.WARNING)], ids=["0.7", "0.4", "-"]
)
def test_types_are_checked_where_the_release_checks_them(tmp_path: Path, lies: str, severity: Severity | None) -> None:
    if lies:
        (tmp_path / "nemo_rl").mkdir()
        parts = zip(("MAJOR", "MINOR", "PATCH"), lies.split("."), strict=True)
        text = "".join(f"{name} = {number}\n" for name, number in parts)
        (tmp_path / "nemo_rl" / "package_info.py").write_text(text, encoding="utf-8")
    found = report(tmp_path, "grpo: {num_prompts_per_step: 2.5}\n").findings
    refused = [one for one in found if one.rule == "composition-refused"]
    assert [one.severity for one in refused] == ([] if severity is None else [severity])
    assert lies or refused[0].message.endswith("; earlier releases do not check this")


NAMED = "grpo: {adv_estimator: {name: maxrl}}\n"
CLASS = 'def install():\n    if name == "maxrl":\n        return Own()\n'


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"recipes/run.py": CLASS}, False),
        ({"recipes/run.py": CLASS.replace('"', "'")}, False),
        ({"recipes/run.py": "from own.maxrl import install\n", "own/maxrl.py": CLASS}, False),
        (
            {"recipes/run.py": "import os\nfrom common.algorithms.own import one\n", "common/algorithms/own.py": CLASS},
            False,
        ),
        ({"recipes/estimators.py": CLASS, "recipes/run.py": "import estimators\n"}, False),
        ({}, True),
        ({"recipes/run.py": "from nemo_rl.algorithms.grpo import grpo_train\n"}, True),
        ({"recipes/run.py": "maxrl = 1  # a name without quotes\n"}, True),
        ({"recipes/README.md": CLASS}, True),
        ({"own/maxrl.py": CLASS}, True),
        ({"recipes/run.py": "from own.maxrl import install\n"}, True),
    ],
)
def test_an_estimator_that_a_script_beside_the_config_installs_is_a_choice(
    tmp_path: Path, files: dict[str, str], told: bool
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert ("composition-refused" in said(report(tmp_path, NAMED))) is told


OWN_KEY = (
    "grpo: {num_prompts_per_step: 32, max_rollout_turn: 3}\ndata: {train: {dataset_name: nvidia/OpenMathInstruct-2}}\n"
)
LOADS = "from nemo_rl.data.utils import setup_response_data\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, {"unread-key", "composition-refused"}),
        ({"recipes/run.py": LOADS}, {"unread-key", "composition-refused"}),
        ({"recipes/run.py": "import runpy\n"}, {"unread-key"}),
        ({"recipes/run.py": LOADS, "common/agent.py": 'turns = cfg["max_rollout_turn"]\n'}, {"composition-refused"}),
    ],
)
def test_keys_and_data_of_a_repositorys_own_runner_are_its_own(
    tmp_path: Path, files: dict[str, str], told: set[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert said(report(tmp_path, OWN_KEY)).keys() & {"unread-key", "composition-refused"} == told


@pytest.mark.parametrize(("algorithm", "told"), [("", False), ("sft: {max_num_steps: 9}\n", True)])
def test_a_part_that_configs_share_may_refer_to_what_they_have(tmp_path: Path, algorithm: str, told: bool) -> None:
    part = tmp_path / "part.yaml"
    policy = "policy: {model_name: a, megatron_cfg: {enabled: true}, train_micro_batch_size: '${policy.lost}'}\n"
    part.write_text(policy + algorithm, encoding="utf-8")
    assert ("composition-refused" in said(preflight.check([str(part)]))) is told


TAKEN = "policy: {generation: {colocated: {enabled: false, resources: {gpus_per_node: 1, num_nodes: 1}}}}\n"
ONE = BASE.replace("gpus_per_node: 8\n  num_nodes", "gpus_per_node: 1\n  num_nodes")


@pytest.mark.parametrize(
    ("child", "base", "told"),
    [
        (TAKEN, ONE, False),
        (f"{TAKEN}cluster: {{num_nodes: 2}}\n", ONE, False),
        (f"{TAKEN}cluster: {{gpus_per_node: 2}}\n", ONE, False),
        (f"{TAKEN}cluster: {{num_nodes: 1, gpus_per_node: 1}}\n", ONE, True),
        (f"{TAKEN}cluster: {{num_nodes: 1}}\n", ONE, True),
        (TAKEN.replace("gpus_per_node: 1", "gpus_per_node: 8"), BASE, True),
        (TAKEN, BASE, False),
    ],
)
def test_one_device_that_a_config_inherits_is_a_placeholder(tmp_path: Path, child: str, base: str, told: bool) -> None:
    assert ("nemo-rl/generation-takes-all" in said(report(tmp_path, child, base))) is told


@pytest.mark.parametrize(
    ("child", "near"),
    [
        ("cluster: {gpu_per_node: 4}\n", "gpus_per_node"),  # the parent gives gpus_per_node
        ("policy: {train_global_batchsize: 4}\n", "train_global_batch_size"),
        ("policy: {note_of_mine: 4}\n", ""),
    ],
)
def test_a_key_that_misspells_one_of_the_parent_is_never_read(tmp_path: Path, child: str, near: str) -> None:
    found = said(report(tmp_path, f"grpo: {{num_prompts_per_step: 32}}\n{child}")).get("unread-key", "")
    assert found.endswith(f"did you mean {near}?") if near else not found


def test_a_metric_without_prefix_is_accepted_by_older_releases(tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(BASE + "checkpointing: {enabled: true, metric_name: val_reward}\n", encoding="utf-8")
    rule = "nemo-rl/checkpoint-metric"
    (found,) = [one for one in preflight.check([str(path)]).findings if one.rule == rule]
    assert (found.severity, "before 0.4.0" in found.message) == (Severity.WARNING, True)
    (stated,) = [one for one in preflight.check([str(path)], target="nemo-rl@0.7.0").findings if one.rule == rule]
    assert stated.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (1, "policy.k0 refers to policy.lost, which the config does not have"),
        (2, "policy.k0 and policy.k1 refer to policy.lost, which the config does not have"),
        (5, "policy.k0 and 4 other keys refer to policy.lost, which the config does not have"),
    ],
)
def test_a_missing_key_is_told_once(tmp_path: Path, keys: int, message: str) -> None:
    lines = "".join(f"  k{number}: ${{policy.lost}}\n" for number in range(keys))
    found = report(tmp_path, f"{CHILD}sft: {{max_num_steps: 9}}\npolicy:\n{lines}").findings
    assert [f.message for f in found if f.rule == "composition-refused"] == [message]


@pytest.mark.parametrize("padded", ["4", "${policy.megatron_cfg.tensor_model_parallel_size}"])
def test_a_value_of_a_key_with_another_meaning_is_not_changed(tmp_path: Path, padded: str) -> None:
    sizes = "tensor_model_parallel_size: 4, context_parallel_size: 2, sequence_parallel: true"
    parallel = f"megatron_cfg: {{enabled: true, {sizes}}}"
    base = BASE.replace("  megatron_cfg:\n", f"  make_sequence_length_divisible_by: {padded}\n  {parallel}\n  other:\n")
    found = preflight.check_text(base, name="run.yaml", target="nemo-rl@0.7.0").findings
    fix = next(one.fix for one in found if one.rule == "nemo-rl/padding-of-packed-samples")
    assert fix is None or fix.title == "set make_sequence_length_divisible_by 16"
    assert fix is None or [edit.key[-1] for edit in fix.edits] == ["make_sequence_length_divisible_by"]


ART = "data: {train: {data_path: '${art:data,train}'}, validation: {data_path: '${run.data}'}}\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, True),
        ({"src/run/resolvers.py": "import omegaconf\nOmegaConf.register_new_resolver(\n    'art', find)\n"}, False),
        ({"src/run/resolvers.py": "OmegaConf.register_new_resolver('other', find)\n"}, True),
    ],
)
def test_a_config_that_another_program_resolves_before_is_complete(
    tmp_path: Path, files: dict[str, str], told: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = report(tmp_path, f"{CHILD}sft: {{max_num_steps: 9}}\n{ART}").findings
    assert ("composition-refused" in {one.rule for one in found}) is told


@pytest.mark.parametrize(
    ("image", "severity"),
    [
        ("nvcr.io/nvidia/nemo-rl:v0.5.0", Severity.ERROR),
        ("nvcr.io/nvidia/nemo-rl:v0.5.0.nemotron_3_super", Severity.WARNING),
    ],
)
def test_a_variant_of_a_release_is_not_that_release(tmp_path: Path, image: str, severity: Severity) -> None:
    child = f"{CHILD}sft: {{max_num_steps: 9}}\nrun: {{container: '{image}', path: '${{odd:1}}'}}\n"
    found = report(tmp_path, child).findings
    assert {one.severity for one in found if one.rule == "composition-refused"} == {severity}


@pytest.mark.parametrize(("nodes", "told"), [(0, True), (1, False)])
def test_servers_of_the_gym_take_nodes(tmp_path: Path, nodes: int, told: bool) -> None:
    child = f"{CHILD}cluster: {{num_nodes: 3}}\nenv: {{nemo_gym: {{num_gpu_nodes: {nodes}}}}}\n"
    found = report(tmp_path, child).findings
    assert bool({"batch-not-divisible", "nemo-rl/batch-over-ranks"} & {one.rule for one in found}) is told
