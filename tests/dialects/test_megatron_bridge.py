"""Megatron-Bridge: override files and launches of an unread recipe, and literal values in recipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity

FILE = """\
model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  context_parallel_size: 1
  seq_length: 4096
dataset:
  seq_length: 4096
train:
  train_iters: 100
  global_batch_size: 64
  micro_batch_size: 2 # each
optimizer:
  lr: 1e-4
"""
HEAD = """\
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer, DistributedDataParallelConfig

"""
RUN = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config"


def report(folder: Path, text: str, name: str = "run.yaml", world_size: int | None = None) -> preflight.Report:
    (folder / name).write_text(text, encoding="utf-8")
    found = preflight.check([str(folder / name)], world_size=world_size)
    assert not found.crashes, found.crashes[0].trace
    return found


def recipe(body: str, name: str = "my_config") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"def {name}() -> ConfigContainer:\n{lines}"


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def typed(found: preflight.Report, run: int = 0) -> dict[str, object]:
    return {name: value.raw for name, value in found.jobs[run].arguments.written.items()}


def test_a_file_of_overrides_is_read_and_the_recipe_beneath_is_not_known(tmp_path: Path) -> None:
    found = report(tmp_path, FILE, world_size=8)
    plan, arguments = found.jobs[0].plan, found.jobs[0].arguments
    assert str(found.jobs[0].target) == "megatron-bridge@0.6.0"
    assert (plan.layout.tensor.raw, plan.layout.data.raw, plan.batch.total.raw) == (2, 4, 64)
    assert arguments.get("lr").raw == 1e-4
    assert not arguments.get("num_layers").known
    assert not arguments.get("expert_model_parallel_size").known
    assert said(found) == {}


def test_a_batch_that_does_not_divide_is_told_where_it_stands(tmp_path: Path) -> None:
    (finding,) = report(tmp_path, FILE.replace("64", "62"), world_size=8).findings
    assert (finding.rule, finding.span.line, finding.span.text) == ("batch-not-divisible", 10, "62")


def test_an_unknown_key_is_skipped_in_a_file_and_refused_on_the_command_line(tmp_path: Path) -> None:
    found = report(tmp_path, FILE + "  finetune_lr: 2\nscheduler: {max_lr: 1}\n")
    assert [(f.severity, f.message) for f in found.findings] == [
        (Severity.WARNING, "megatron-bridge 0.6.0 has no key optimizer.finetune_lr and skips it with a warning"),
        (Severity.WARNING, "megatron-bridge 0.6.0 has no key scheduler.max_lr and skips it with a warning"),
    ]
    found = report(tmp_path, f"{RUN} train.micro_batch_sise=2 model.my_own=1 +train.new=1\n", "run.sh")
    assert [(f.severity, f.message) for f in found.findings] == [
        (
            Severity.ERROR,
            "megatron-bridge 0.6.0 has no key train.micro_batch_sise and rejects the run; "
            "did you mean train.micro_batch_size?",
        )
    ]


def test_a_section_of_a_class_of_its_own_may_have_any_key(tmp_path: Path) -> None:
    assert said(report(tmp_path, FILE + "  _target_: my.Optimizer\n  max_lr: 1\n")) == {}


def test_a_slip_is_mended(tmp_path: Path, real_cli: Cli) -> None:
    text = FILE.replace("micro_batch_size: 2", "micro_batch_sise: 2")
    report(tmp_path, text)
    assert real_cli("fix", "--unsafe", str(tmp_path / "run.yaml")).code == 0
    assert (tmp_path / "run.yaml").read_text(encoding="utf-8") == FILE


def test_options_of_the_runner_are_keys_and_overrides_win_over_them(tmp_path: Path) -> None:
    found = report(tmp_path, f"{RUN} -tp 2 -pp 2 -cp 1 -gb 30 -mb 4 --lr 1e-5 train.micro_batch_size=2\n", "run.sh")
    assert typed(found) == {
        **{"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "context_parallel_size": 1},
        **{"global_batch_size": 30, "micro_batch_size": 2, "lr": 1e-5},
    }
    (finding,) = found.findings
    assert (finding.rule, finding.span.text) == ("batch-not-divisible", "30")


def test_a_runner_of_its_own_with_a_file_and_overrides(tmp_path: Path) -> None:
    (tmp_path / "conf.yaml").write_text(FILE, encoding="utf-8")
    launch = "torchrun --nproc_per_node=8 my.py --config-file conf.yaml train.global_batch_size=62 model.x=1\n"
    found = report(tmp_path, launch, "run.sh")
    assert len(found.jobs[0].documents) == 2
    (finding,) = found.findings
    assert (finding.rule, Path(finding.span.path).name, finding.span.text) == ("batch-not-divisible", "run.sh", "62")


def test_the_runner_takes_the_length_of_the_dataset(tmp_path: Path) -> None:
    found = report(tmp_path, f"{RUN} model.seq_length=8192 dataset.seq_length=4096\n", "run.sh")
    assert [(f.rule, f.severity) for f in found.findings] == [("changed-silently", Severity.NOTE)]
    assert found.jobs[0].arguments.get("seq_length").raw == 4096


def test_precision_of_a_section_wins(tmp_path: Path) -> None:
    wide = FILE + "ddp: {grad_reduce_in_fp32: true}\n"
    arguments = report(tmp_path, wide).jobs[0].arguments
    assert not arguments.get("accumulate_allreduce_grads_in_fp32").known
    arguments = report(tmp_path, wide + "mixed_precision: bf16_mixed\n").jobs[0].arguments
    assert arguments.get("bf16").raw is True
    arguments = report(tmp_path, wide + "mixed_precision: null\n").jobs[0].arguments
    assert arguments.get("accumulate_allreduce_grads_in_fp32").raw is True


EXPERTS = "  expert_model_parallel_size: {}\n  expert_tensor_parallel_size: {}\n  num_moe_experts: 8\ndataset:"


def test_experts_that_are_spread_have_tensor_size_one(tmp_path: Path) -> None:
    spread = FILE.replace("dataset:", EXPERTS.format(4, "null"))
    found = report(tmp_path, spread, world_size=8)
    assert (found.jobs[0].arguments.get("expert_tensor_parallel_size").raw, said(found)) == (1, {})
    found = report(tmp_path, spread.replace("parallel_size: 4", "parallel_size: 1"), world_size=8)
    assert found.jobs[0].arguments.get("expert_tensor_parallel_size").raw == 2


REPORTED = {
    "768": ("model: {seq_length: 131072, context_parallel_size: 1}\ndataset: {seq_length: 8192}\n", "lengths-differ"),
    "717": ("dataset: {seq_length: 4096, sequence_length: 8192}\nmodel: {seq_length: 4096}\n", "length-replaced"),
    "1502": (
        "model:\n  pipeline_model_parallel_size: 4\n  virtual_pipeline_model_parallel_size: 1\n"
        "  pipeline_model_parallel_layout: Et*4|(t*4|)*14L\n",
        "layout-over-virtual-stages",
    ),
    "2684": (
        "model: {seq_length: 8, cpu_offloading: true, cpu_offloading_activations: false,\n"
        "        cpu_offloading_weights: false}\n",
        "nothing-offloaded",
    ),
    "5386": ("dataset: {micro_batch_size: 1}\nmodel: {seq_length: 4096}\n", "micro-batches-differ"),
}


@pytest.mark.parametrize("issue", REPORTED)
def test_what_users_reported_is_told(tmp_path: Path, issue: str) -> None:
    text, rule = REPORTED[issue]
    found = report(tmp_path, f"{text}train: {{train_iters: 10, micro_batch_size: 2, global_batch_size: 64}}\n")
    assert f"megatron-bridge/{rule}" in said(found)


def test_experts_on_too_few_devices(tmp_path: Path) -> None:
    four = "model.tensor_model_parallel_size=4 model.expert_model_parallel_size={} model.expert_tensor_parallel_size={}"
    launch = f"{RUN.replace('=8', '=4')} {four} model.pipeline_model_parallel_size=1 model.context_parallel_size=1 "
    assert said(report(tmp_path, launch.format(4, 1) + "model.num_moe_experts=8\n", "run.sh")) == {}
    assert list(said(report(tmp_path, launch.format(4, 4) + "model.num_moe_experts=8\n", "run.sh"))) == ["expert-grid"]


def test_a_recipe_is_read_as_far_as_it_is_literal(tmp_path: Path) -> None:
    body = """\
cfg = _pretrain_common()
cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Llama-3.1-8B").to_megatron_provider(load_weights=False)
cfg.model.tensor_model_parallel_size = 4
cfg.model.pipeline_model_parallel_size = size()
cfg.train.global_batch_size = SIZE
cfg.train.micro_batch_size = 1
cfg.train.micro_batch_size *= 2
model = cfg.model
model.context_parallel_size = 2
cfg.ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=True, overlap_grad_reduce=False)
if cfg.model.context_parallel_size > 1:
    cfg.model.seq_length = 8192
return cfg"""
    found = report(tmp_path, f"{HEAD}SIZE = 32\n{recipe(body)}", "recipe.py")
    assert str(found.jobs[0].target) == "megatron-bridge@0.6.0"
    assert typed(found) == {
        **{"tensor_model_parallel_size": 4, "global_batch_size": 32, "context_parallel_size": 2},
        **{"accumulate_allreduce_grads_in_fp32": True, "overlap_grad_reduce": False},
        "hf_model_id": "meta-llama/Llama-3.1-8B",
    }


LOST = {
    "handed to a function of others": "change(cfg)",
    "handed on in a list": "change([cfg])",
    "a method of its own": "cfg.change()",
    "set by name": 'setattr(cfg.model, "tensor_model_parallel_size", 8)',
    "set on a branch": "if flag:\n    cfg.model.tensor_model_parallel_size = 8",
    "set in a loop": "for size in (8, 16):\n    cfg.model.tensor_model_parallel_size = size",
    "set with others": "cfg.model.tensor_model_parallel_size, x = 8, 9",
    "another section": "cfg.model = other()",
    "the same name for another": "cfg = other()",
    "the section of another": "cfg.model = provider\nprovider.tensor_model_parallel_size = 8 * 2",
    "deleted": "del cfg.model.tensor_model_parallel_size",
}


@pytest.mark.parametrize("how", LOST)
def test_what_may_have_changed_is_not_known(tmp_path: Path, how: str) -> None:
    body = f"cfg = base()\ncfg.model.tensor_model_parallel_size = 4\n{LOST[how]}\ncfg.train.train_iters = 5\nreturn cfg"
    found = report(tmp_path, HEAD + recipe(body), "recipe.py")
    assert "tensor_model_parallel_size" not in typed(found)
    assert typed(found)["train_iters"] == 5


def test_a_function_of_the_same_file_changes_what_it_sets(tmp_path: Path) -> None:
    helper = "def longer(cfg):\n    cfg.model.seq_length = 8192\n\n\n"
    body = """\
cfg = base()
cfg.model.seq_length = 4096
cfg.model.tensor_model_parallel_size = 4
longer(cfg)
return cfg"""
    assert typed(report(tmp_path, HEAD + helper + recipe(body), "recipe.py")) == {"tensor_model_parallel_size": 4}


TWO = HEAD + recipe("cfg = base()\ncfg.model.seq_length = 4096\ncfg.dataset.seq_length = 4096\nreturn cfg", "one")
TWO += recipe("cfg = one()\ncfg.dataset.seq_length = 8192\nreturn cfg", "two")


def test_a_recipe_over_another_of_its_file(tmp_path: Path) -> None:
    found = report(tmp_path, TWO, "recipe.py")
    assert [typed(found, run)["dataset_seq_length"] for run in (0, 1)] == [4096, 8192]
    assert typed(found, 1)["seq_length"] == 4096
    (finding,) = found.findings
    assert (finding.span.line, finding.span.text) == (12, "8192")


OFFLOADED = """\
cfg = base()
cfg.model.cpu_offloading = True  # é: what is behind it stays
cfg.model.cpu_offloading_activations, text = False, "é"
cfg.model.cpu_offloading_activations = False; cfg.model.cpu_offloading_weights = False
return cfg"""


def test_a_fix_of_a_recipe_changes_one_literal(tmp_path: Path, real_cli: Cli) -> None:
    text = HEAD + recipe(OFFLOADED)
    report(tmp_path, text, "recipe.py")
    assert real_cli("fix", str(tmp_path / "recipe.py")).code == 0
    fixed = (tmp_path / "recipe.py").read_text(encoding="utf-8")
    assert fixed == text.replace("cpu_offloading = True", "cpu_offloading = False")


def test_a_value_that_others_start_from_is_not_changed(tmp_path: Path, real_cli: Cli) -> None:
    text = HEAD + recipe(OFFLOADED, "one") + recipe("cfg = one()\ncfg.train.train_iters = 5\nreturn cfg", "two")
    report(tmp_path, text, "recipe.py")
    real_cli("fix", "--unsafe", str(tmp_path / "recipe.py"))
    assert (tmp_path / "recipe.py").read_text(encoding="utf-8") == text


def test_a_name_that_stands_for_a_value_is_not_changed(tmp_path: Path, real_cli: Cli) -> None:
    text = f"{HEAD}ON = True\n{recipe(OFFLOADED.replace('= True', '= ON').replace('= False;', '= ON is None;'))}"
    report(tmp_path, text, "recipe.py")
    real_cli("fix", "--unsafe", str(tmp_path / "recipe.py"))
    assert (tmp_path / "recipe.py").read_text(encoding="utf-8") == text


def test_the_proof_of_an_edit_looks_at_the_whole_program() -> None:
    from preflight.fix.edit_integrity import prove_python
    from preflight.source.finding import Edit, NotProven
    from preflight.source.source_file import Source, Span

    old = Source("a = -1  # é\nb = 'é', 2\n", "x.py")
    at = old.text.index("2")
    edit = Edit("set", ("b",), 3, Span(old, at, at + 1))
    prove_python(old, [edit], Source("a = -1  # é\nb = 'é', 3\n", "x.py"))
    prove_python(old, [Edit("set", ("a",), 5, Span(old, 4, 6))], Source("a = 5  # é\nb = 'é', 2\n", "x.py"))
    for text in ("a = -2  # é\nb = 'é', 3\n", "a = -1  # e\nb = 'é', 3\n", "a = -1  # é\nb = 'é', 3.0\n", "a = ("):
        with pytest.raises(NotProven):
            prove_python(old, [edit], Source(text, "x.py"))
    for wrong in (edit._replace(span=Span(old, 0, 1)), edit._replace(action="remove"), edit._replace(span=None)):
        with pytest.raises(NotProven):
            prove_python(old, [wrong], Source("a = -1  # é\nb = 'é', 3\n", "x.py"))


def test_a_program_is_read_and_never_run(tmp_path: Path) -> None:
    touch = f"open({str(tmp_path / 'made')!r}, 'w').close()\n"
    report(tmp_path, HEAD + touch + recipe(f"{touch}cfg = base()\ncfg.train.train_iters = 5\nreturn cfg"), "recipe.py")
    assert not (tmp_path / "made").exists()


def test_a_program_without_a_recipe_loads_no_reader_of_recipes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import subprocess\nsubprocess.run(['torchrun', 'a.py'])\n", encoding="utf-8")
    code = "import sys, preflight; preflight.check(sys.argv[1:]); print([m for m in sys.modules if 'recipes' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.py")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


HOSTILE = {
    "functions that call each other": "".join(
        f"def f{at}(cfg):\n" + "".join(f"    f{other}(cfg)\n" for other in range(40)) for at in range(40)
    )
    + recipe("cfg = base()\ncfg.train.train_iters = 5\nf0(cfg)\nreturn cfg"),
    "names of names": "a0 = [1]\n"
    + "".join(f"a{at + 1} = [{', '.join([f'a{at}'] * 30)}]\n" for at in range(8))
    + recipe("cfg = base()\ncfg.model.x = a8\ncfg.train.train_iters = 5\nreturn cfg"),
    "a recipe over itself": recipe("cfg = me()\ncfg.train.train_iters = 5\nreturn cfg", "me"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_recipes_end(tmp_path: Path, how: str) -> None:
    found = report(tmp_path, HEAD + HOSTILE[how], "recipe.py")
    assert said(found) == {}


@pytest.mark.parametrize(
    "text",
    [
        "model: {name: x}\ntrain: {train_iters: 5}\n",
        "model: {tensor_model_parallel_size: 2}\ntrain: {train_iters: 5}\nother: 1\n",
        "trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 2}\n",
        "train: [1]\nmodel: 3\n",
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, text: str) -> None:
    assert not report(tmp_path, text).jobs


def test_launches_of_others_are_left_alone(tmp_path: Path) -> None:
    nemo = "torchrun a.py model.tensor_model_parallel_size=2 trainer.devices=8 train.micro_batch_size=2\n"
    for text in (nemo, "python run_recipe.py\n", "python a.py train.micro_batch_size=2\n"):
        assert not [job for job in report(tmp_path, text, "a.sh").jobs if job.target.framework == "megatron-bridge"]


def test_nearly_every_key_that_megatron_knows_is_mapped() -> None:
    """Fields of the sections that always have the same class, by Megatron's name if it has an option for them."""
    from preflight.dialects.megatron.options import table
    from preflight.frontends.front_end import data

    found, core = data("megatron-bridge"), {flag.dest for flag in table("megatron", "0.19.0").options.values()}
    mapped = {row[0] for row in found["keys"].values()}
    alike = {name for names in found["sections"].values() for name in names if name in core}
    assert alike - mapped == set()
    assert len({"tensor_model_parallel_size", "num_experts", "seq_length", "lr", "save", "train_iters"} - mapped) == 0


@pytest.mark.parametrize("value", ["3", "core_attn", "[[1]]", "[3]", "{a: 1}"])
def test_what_is_no_list_of_names_is_not_known(tmp_path: Path, value: str) -> None:
    text = FILE.replace("  seq_length: 4096\ndataset", f"  recompute_modules: {value}\n  seq_length: 4096\ndataset")
    found = report(tmp_path, text)
    assert (found.jobs[0].arguments.get("recompute_modules").known, said(found)) == (False, {})


@pytest.mark.parametrize(("module", "told"), [("core_attn", False), ("mhc", False), ("core_atn", True)])
def test_a_module_of_a_later_megatron_may_be_in_the_one_below(tmp_path: Path, module: str, told: bool) -> None:
    """Megatron-Bridge 0.6.0 builds on a commit between releases; its recipes of DeepSeek V4 recompute mhc."""
    model = f"{{tensor_model_parallel_size: 1, recompute_granularity: selective, recompute_modules: [{module}]}}"
    train = (
        "train: {train_iters: 9, micro_batch_size: 1, global_batch_size: 8}\nddp: {use_distributed_optimizer: true}\n"
    )
    assert ("megatron/unknown-module" in said(report(tmp_path, f"{train}model: {model}\n"))) is told


@pytest.mark.parametrize(("code", "told"), [("conf.pop('save_at_end')\n", False), ("conf.pop('save_at')\n", True)])
def test_a_key_that_the_started_script_reads_itself_is_known(tmp_path: Path, code: str, told: bool) -> None:
    launch = (
        "torchrun --nproc_per_node=8 my.py --config-file conf.yaml checkpoint.save_at_end=true train.train_iters=9\n"
    )
    files = {
        "my.py": f"import megatron.bridge\n{code}",
        "conf.yaml": "train: {micro_batch_size: 1}\n",
        "run.sh": launch,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = preflight.check(tmp_path / "run.sh").findings
    assert ("unread-key" in {one.rule for one in found}) is told
