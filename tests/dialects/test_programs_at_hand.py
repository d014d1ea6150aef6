"""Facts about a run from the code of a checkout: classes, keys, arguments that it sets, release."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import launch, write

import preflight
from preflight import Severity
from preflight.program.checkout.class_arguments import arguments_of
from preflight.program.checkout.framework_discovery import Files
from preflight.program.checkout.parser_options import set_always

CONFIG = """run_mode: train
use_parallel: False
runner_config: {{epochs: 1, batch_size: 1}}
model:
  model_config: {{type: {kind}, num_layers: 2, num_heads: 4, {keys}}}
  arch: {{type: LlamaForCausalLM}}
trainer: {{type: CausalLanguageModelingTrainer}}
"""
BASE = "class BaseConfig:\n    def __init__(self, **kwargs):\n        self.kind = kwargs.pop('own_kind', '')\n"
OWN = f"""{BASE}
class LlamaConfig(BaseConfig):
    def __init__(self, hidden_sise=64, vocab_sise=2, *, own_rate: float = 0.1, **kwargs):
        super().__init__(**kwargs)
        self.scale = kwargs.get("seq_lenght", 1)
"""


def found(folder: Path, name: str, **files: str) -> dict[str, Severity | None]:
    write(folder, files)
    return {f.rule: f.severity for f in preflight.check(folder / name).findings if f.severity is not Severity.NOTE}


@pytest.mark.parametrize("key", ["hidden_sise: 64", "vocab_sise: 2", "seq_lenght: 2"])
def test_a_key_that_the_class_of_the_checkout_takes_is_known(tmp_path: Path, key: str) -> None:
    name, text = "configs/run.yaml", CONFIG.format(kind="LlamaConfig", keys=key)
    assert "unknown-key" in found(tmp_path / "alone", name, **{name: text})
    files = {"mindformers/__init__.py": "", "mindformers/models/llama/config.py": OWN, name: text}
    assert "unknown-key" not in found(tmp_path / "own", name, **files)


@pytest.mark.parametrize("key", ["hidden_sizee: 64", "seq_lengthh: 2"])
def test_a_slip_of_a_key_is_told_where_the_class_does_not_take_it(tmp_path: Path, key: str) -> None:
    name, text = "configs/run.yaml", CONFIG.format(kind="LlamaConfig", keys=key)
    files = {"mindformers/__init__.py": "", "mindformers/models/llama/config.py": OWN, name: text}
    assert "unknown-key" in found(tmp_path, name, **files)


@pytest.mark.parametrize("place", ["tests/st/models.py", "mindformers/models/own.py", "research/own/own.py"])
def test_a_class_of_the_checkout_is_not_misspelt(tmp_path: Path, place: str) -> None:
    name, text = "tests/st/build.yaml", CONFIG.format(kind="NoReleaseConfig", keys="hidden_size: 64")
    files = {"mindformers/__init__.py": "", name: text}
    assert "class-misspelt" in found(tmp_path, name, **files)
    files[place] = "class NoReleaseConfig:\n    pass\n"
    assert "class-misspelt" not in found(tmp_path, name, **files)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("LlamaConfig", {"self", "hidden_sise", "vocab_sise", "own_rate", "seq_lenght", "own_kind"}),
        ("BaseConfig", {"self", "own_kind"}),
        ("Fields", {"size"}),
        ("Missing", None),
        ("not a name", None),
    ],
)
def test_the_arguments_of_a_class_are_read_without_running_it(
    tmp_path: Path, name: str, taken: set[str] | None
) -> None:
    more = "class Fields:\n    size: int = 2\n\nraise SystemExit\n"
    write(tmp_path, {"a.py": OWN, "b.py": more, "broken.py": "class LlamaConfig(:\n"})
    known = arguments_of(Files(str(tmp_path)))(name)
    assert (known and set(known)) == taken


def test_classes_that_are_their_own_bases_end(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "class A(B):\n    x: int\n\nclass B(A):\n    y: int\n"})
    assert arguments_of(Files(str(tmp_path)))("A") == frozenset({"x", "y"})


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("args.a = 1", {"a"}),
        ("args.a = args.b = None", {"a", "b"}),
        ("if args.c:\n        args.a = 1", set()),
        ("for _ in (1,):\n        args.a = 1", set()),
        ("other.a = 1", set()),
        ("args.a += 1", set()),
        ("args.a.b = 1", set()),
        ("setattr(args, 'a', 1)", set()),
        ("x = args.a", set()),
        ("return args", set()),
    ],
)
def test_what_a_function_sets_whatever_is_typed(body: str, names: set[str]) -> None:
    assert set_always(f"def validate(args):\n    {body}\n") == names
    assert set_always("def broken(:\n") == frozenset()


PATCH = "from megatron.training import arguments\n\ndef add(parser):\n    parser.add_argument('--own')\n\n"


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ('args.cross_entropy_fusion_impl = "native"', False),
        ("if args.own:\n        args.cross_entropy_fusion_impl = None", True),
        ("args.other = None", True),
    ],
)
def test_a_patch_that_sets_an_argument_itself_is_not_refused_for_it(tmp_path: Path, sets: str, told: bool) -> None:
    patch = f"{PATCH}def wrapper(args):\n    {sets}\n    return args\n"
    script = launch("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te")
    files = {
        ".git/HEAD": "",
        "own_megatron/training/arguments.py": patch,
        "examples/run.sh": script,
        "pretrain_gpt.py": "",
    }
    assert ("megatron/te-loss-fusion" in found(tmp_path, "examples/run.sh", **files)) is told


SWIFT = "NPROC_PER_NODE=8 megatron sft --model m --dataset d --tensor_model_parallel_size 2 {more}\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--packing_cache x --tuner_type lora --max_epochs 2", "which other releases of ms-swift have"),
        ("--packing_cache x --max_epochs 2 --no_log_throughput true", "which other releases of ms-swift have"),
        ("--of_no_release 1 --of_none_either 2", "no release of ms-swift has the options"),
    ],
)
def test_options_of_other_releases_of_a_front_end_are_no_fork(more: str, says: str) -> None:
    told = [f for f in preflight.check_text(SWIFT.format(more=more), name="run.sh").findings if f.rule == "unread-key"]
    assert [says in f.message for f in told] == [True]
    assert told[0].severity is (Severity.NOTE if "other releases" in says else Severity.WARNING)


def test_options_of_other_releases_and_of_none_are_told_apart() -> None:
    more = "--num_workers 8 --output_dir out --of_no_release 1 --of_none_either 2"
    found = preflight.check_text(SWIFT.format(more=more), name="run.sh").findings
    assert len([f for f in found if f.rule == "unread-key"]) == 2


OLD = "--model-parallel-size 2 --batch-size 4"


@pytest.mark.parametrize(
    ("entry", "more", "severity"),
    [
        ("pretrain_gpt.py", OLD, Severity.WARNING),
        ("pretrain_gpt.py", f"{OLD} --warmup .01", Severity.WARNING),
        ("pretrain_gpt.py", "--batch-size 4 --warmup .01 --checkpoint-activations", Severity.WARNING),
        ("pretrain_gpt.py", "--batch-size 4", Severity.ERROR),
        ("pretrain_gpt.py", f"{OLD} --tensor-model-parallel-size 2", Severity.ERROR),
        ("pretrain_gpt.py", f"{OLD} --micro-batch-size 2", Severity.ERROR),
        ("pretrain_gpt.py", f"{OLD} --recompute-activations", Severity.ERROR),
        ("pretrain_gpt.py", f"{OLD} --lr-warmup-fraction .01", Severity.ERROR),
        ("pretrain_gpt2.py", f"{OLD} --warmup .01", Severity.NOTE),
        ("/opt/megatron/pretrain_gpt2.py", OLD, Severity.NOTE),
    ],
)
def test_options_that_went_together_show_an_older_release(entry: str, more: str, severity: Severity) -> None:
    sizes = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --max-position-embeddings 8"
    script = f"torchrun --nproc-per-node 8 {entry} {sizes} --train-iters 9 --lr 1e-4 {more}\n"
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/old-batch-size"] is severity


@pytest.mark.parametrize(
    ("more", "severity"),
    [
        ("--fp16 --lr-warmup-fraction .01 --micro-batch-size 4", Severity.WARNING),
        ("--bf16 --sequence-parallel --micro-batch-size 4", Severity.ERROR),
        ("--use-distributed-optimizer --micro-batch-size 4", Severity.ERROR),
        ("--use-own-option --micro-batch-size 4", Severity.WARNING),
    ],
)
def test_an_option_that_v2_5_has_with_all_others_shows_an_older_release(more: str, severity: Severity) -> None:
    script = launch("--checkpoint-activations").replace(
        "--tokenizer-type NullTokenizer --vocab-size 100 --mock-data", ""
    )
    script = script.replace("--micro-batch-size 1", more)
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/old-checkpoint-activations"] is severity
    stated = preflight.check_text(script, name="run.sh", target="megatron@0.14.0").findings
    assert {f.rule: f.severity for f in stated}["megatron/old-checkpoint-activations"] is Severity.ERROR


def test_a_stated_release_refuses_options_that_went() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt2.py {OLD} --num-layers 4\n"
    found = preflight.check_text(script, name="run.sh", target="megatron@0.20.0").findings
    assert {f.rule: f.severity for f in found}["megatron/old-batch-size"] is Severity.ERROR


@pytest.mark.parametrize(("own", "severity"), [("--use-own", Severity.NOTE), ("--bf16", Severity.ERROR)])
def test_a_fork_may_have_a_default_where_an_option_is_missing(own: str, severity: Severity) -> None:
    script = launch(f"--save out {own}")
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/save-interval-missing"] is severity


@pytest.mark.parametrize(("reads", "severity"), [("build.yaml", Severity.NOTE), ("other.yaml", Severity.ERROR)])
def test_a_mode_that_another_program_may_set_is_only_noted(tmp_path: Path, reads: str, severity: Severity) -> None:
    text = CONFIG.format(kind="LlamaConfig", keys="hidden_size: 64").replace("run_mode: train\n", "")
    program = f"config = MindFormerConfig('{reads}')\nconfig.run_mode = 'train'\n"
    write(tmp_path, {"st/build.yaml": text, "st/test_build.py": program})
    found = {f.rule: f.severity for f in preflight.check(tmp_path / "st/build.yaml").findings}
    assert found["mindformers/run-mode-missing"] is severity
