"""Scripts and configs in the style of public repositories: apparent mistakes that are not, and files that are not
runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import launch, severities, write

import preflight
from preflight import Severity

CONTAINER = """_target_: megatron.bridge.training.config.ConfigContainer
model: {tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1, seq_length: 1024}
train: {train_iters: 1, micro_batch_size: 1, global_batch_size: 1}
optimizer: {_target_: megatron.core.optimizer.OptimizerConfig, lr: null}
"""
TEMPLATE = """run_mode: train
use_parallel: False
trainer: {type: general, model_name: general}
runner_config: {epochs: 1, batch_size: 1}
train_dataset:
model:
  model_config: {checkpoint_name_or_path: ""}
  arch:
"""
BOOK = 'TASKS = {"general": os.path.join(PROJECT, "configs/general/run_general_task.yaml")}\n'
RUNNER = """ARGS=(--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --micro-batch-size 1)
CMD=(python3 train.py "${ARGS[@]}" --tensor-model-parallel-size 2)
python3 record.py start --to log.json """


@pytest.mark.parametrize(("data", "runs"), [("dataset: null\n", 0), ("dataset: {seq_length: 1024}\n", 1), ("", 1)])
def test_the_record_of_a_converted_checkpoint_is_no_run(tmp_path: Path, data: str, runs: int) -> None:
    write(tmp_path, {"run_config.yaml": CONTAINER + data})
    assert len(preflight.check(tmp_path / "run_config.yaml").jobs) == runs


@pytest.mark.parametrize(("book", "expected"), [(BOOK, Severity.WARNING), ("", Severity.ERROR)])
def test_an_empty_config_that_the_trainer_fills_is_no_error(tmp_path: Path, book: str, expected: Severity) -> None:
    place = "configs/general/run_general_task.yaml"
    files = {"mindformers/__init__.py": "", "mindformers/mindformer_book.py": book, place: TEMPLATE}
    write(tmp_path, files)
    found = severities(preflight.check(tmp_path / place))
    assert found["template-not-filled"] is expected
    filled = TEMPLATE.replace("train_dataset:\n", "train_dataset: {data_loader: {type: MindDataset}}\n")
    write(tmp_path, files | {place: filled})
    assert severities(preflight.check(tmp_path / place))["class-missing"] is Severity.ERROR


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ('${9:-"none"}', Severity.WARNING),
        ("${9:-none}", Severity.WARNING),
        ("${2-none}", Severity.WARNING),
        ("${12:-'none'}", Severity.WARNING),
        ("${KIND:-none}", Severity.ERROR),
        ("none", Severity.ERROR),
    ],
)
def test_a_default_of_a_parameter_that_no_parser_takes_stands_for_an_argument(kind: str, expected: Severity) -> None:
    script = f"KIND={kind}\n" + launch().replace("NullTokenizer", "$KIND")
    found = {f.rule: f for f in preflight.check_text(script, name="run.sh", target="megatron@0.19.0").findings}
    assert found["bad-choice"].severity is expected
    assert ("this is the default value of $" in found["bad-choice"].message) is (expected is Severity.WARNING)


@pytest.mark.parametrize("value", ['"$V"', "'$V'", '\\"$V\\"'])
def test_a_variable_that_is_emptied_in_one_branch_is_empty(tmp_path: Path, value: str) -> None:
    inner = launch('${1:+--num-layers-per-virtual-pipeline-stage "$1"} --pipeline-model-parallel-size 2')
    outer = f'if [[ -n $V ]]; then V=""; fi\nbash -c "./inner.sh {value} 7"\n'
    write(tmp_path, {"inner.sh": inner, "outer.sh": outer})
    (job,) = preflight.check(tmp_path / "outer.sh").jobs
    texts = [word.text for word in job.arguments.words if not word.maybe]
    assert texts and not any(text is not None and not text.strip() for text in texts)
    assert job.arguments.get("num_layers_per_virtual_pipeline_stage").raw != " "


@pytest.mark.parametrize(("words", "runs"), [('"${CMD[@]}"', 0), ('-- "${CMD[@]}"', 0), ('"${ARGS[@]}" --lr 1', 1)])
def test_a_script_that_is_given_a_command_to_record_is_no_run(tmp_path: Path, words: str, runs: int) -> None:
    write(tmp_path, {"run.sh": RUNNER + words + "\n"})
    assert len(preflight.check(tmp_path / "run.sh").jobs) == runs


@pytest.mark.parametrize(
    ("more", "path", "framework"),
    [
        ("--spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec", "", "mindspeed-llm"),
        ("--norm-topk-prob", "cd /data/third_party/mindspeed-llm-26.0.0\n", "mindspeed-llm"),
        ("", "cd /data/third_party/mindspeed-llm-26.0.0\n", "megatron"),
        ("--scale-emb 12 --loss-type dpo --r1 1", "", "megatron"),
        ("--norm-topk-prob", "# as in https://gitee.com/ascend/MindSpeed-LLM\n", "mindspeed-llm"),
        ("--spec mine.spec layer_spec", "", "megatron"),
    ],
)
def test_a_specification_in_its_package_names_the_framework(more: str, path: str, framework: str) -> None:
    script = path + launch(more)
    assert preflight.check_text(script, name="run.sh").jobs[0].target.framework == framework


def test_a_network_of_experts_is_not_compared_with_the_dense_model_of_its_tokenizer() -> None:
    sizes = "--num-layers 28 --hidden-size 1024 --ffn-hidden-size 1024 --num-attention-heads 16 --kv-channels 128"
    rest = "--group-query-attention --num-query-groups 8 --swiglu --tokenizer-model Qwen/Qwen3-0.6B"
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {sizes} {rest} --tokenizer-type HuggingFaceTokenizer\n"
    rule = "differs-from-published"
    assert rule in severities(preflight.check_text(script, name="run.sh"))
    experts = script.replace("--swiglu", "--swiglu --num-experts 8")
    assert rule not in severities(preflight.check_text(experts, name="run.sh"))


@pytest.mark.parametrize("more", ["--num-layers 64", "--num-layers 28 --multi-latent-attention --kv-lora-rank 128"])
def test_another_network_is_not_compared_with_the_model_of_its_tokenizer(more: str) -> None:
    sizes = "--hidden-size 1024 --ffn-hidden-size 8192 --num-attention-heads 16 --kv-channels 128"
    rest = "--group-query-attention --num-query-groups 8 --swiglu --tokenizer-model Qwen/Qwen3-0.6B"
    script = "torchrun --nproc-per-node 8 pretrain_gpt.py {} --tokenizer-type HuggingFaceTokenizer\n"
    rule = "differs-from-published"
    same = script.format(f"--num-layers 28 {sizes} {rest}")
    assert rule in severities(preflight.check_text(same, name="run.sh"))
    assert rule not in severities(preflight.check_text(script.format(f"{more} {sizes} {rest}"), name="run.sh"))


def test_the_width_of_a_dense_layer_is_not_compared_if_every_layer_has_experts() -> None:
    sizes = "--num-layers 24 --hidden-size 2880 --num-attention-heads 64 --kv-channels 64 --ffn-hidden-size 10944"
    experts = "--num-experts 32 --moe-router-topk 4 --group-query-attention --num-query-groups 8 --swiglu"
    rest = "--tokenizer-type HuggingFaceTokenizer --tokenizer-model openai/gpt-oss-20b"
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {sizes} {experts} {rest}"
    wide = preflight.check_text(script + "\n", name="run.sh")
    assert any("intermediate size" in finding.message for finding in wide.findings)
    known = preflight.check_text(script + " --moe-ffn-hidden-size 2880\n", name="run.sh")
    assert not any("intermediate size" in finding.message for finding in known.findings)


@pytest.mark.parametrize(
    "option", ["--config run.yaml", "--model-config run.yaml", "--args-file run.txt", "--yaml-path x"]
)
def test_an_option_of_a_fork_that_names_a_file_may_bring_what_is_missing(tmp_path: Path, option: str) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {option}\n"
    parser = f"def add(parser):\n    parser.add_argument('{option.split()[0]}', type=str)\n"
    files = {"megatron/core/package_info.py": "MAJOR = 0\nMINOR = 18\nPATCH = 0\n", "run.sh": script}
    write(tmp_path, files | {"megatron/training/arguments.py": parser})
    found = preflight.check(tmp_path / "run.sh")
    assert found.jobs[0].arguments.open
    assert "megatron/required-argument" not in severities(found)
    assert "megatron/required-argument" in severities(preflight.check_text(script.replace(option, ""), name="run.sh"))


@pytest.mark.parametrize(("nodes", "each"), [(2, 3), (2, 1), (3, 2)])
def test_disaggregated_training_counts_the_ranks_of_one_model(nodes: int, each: int) -> None:
    more = "--layerwise-disaggregated-training --pipeline-model-parallel-size 4 --num-layer-list 2,8,8,4,2"
    script = launch(more, entry="posttrain_gpt.py").replace(
        "--nproc-per-node 8", f"--nnodes {nodes} --nproc-per-node {each}"
    )
    report = preflight.check_text(script, name="run.sh", target="mindspeed-llm@26.1.0")
    assert not {"device-count", "expert-grid"} & set(severities(report))


@pytest.mark.parametrize(
    ("folder", "release"),
    [
        ("mindspeed-llm-26.0.0", "26.0.0"),
        ("MindSpeed-LLM_v2.3.0", "2.3.0"),
        ("MindSpeed-LLM", ""),
        ("mindspeed-llm-99.9.9", ""),
    ],
)
def test_the_folder_of_a_copy_names_its_release(folder: str, release: str) -> None:
    more = "--spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec"

    def read_as(path: str) -> str:
        return str(preflight.check_text(f"{path}\n{launch(more)}", name="run.sh").jobs[0].target.version)

    assert read_as(f"cd /data/third_party/{folder}") == (release or read_as("cd /data"))


FLAT = "--min-lr 1e-4 --lr-decay-style cosine"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("tools/generate_samples_gpt.py", False),
        ("tools/run_text_generation_server.py", False),
        ("tools/generate_samples_eval.py", False),
        ("tools/run_inference_performance_test.py", False),
        ("tools/generate_text_gpt.py", False),
        ("evaluate_lm.py", False),
        ("evaluate_gpt.py", False),
        ("/opt/megatron/tools/run_vlm_text_generation.py", False),
        ("pretrain_gpt.py", True),
        ("pretrain_and_evaluate_gpt.py", True),
        ("train_generation_gpt.py", True),
        ("pretrain_generator.py", True),
        ("posttrain_gpt.py", True),
    ],
)
def test_a_script_that_only_generates_is_given_no_advice_on_training(entry: str, told: bool) -> None:
    report = preflight.check_text(launch(FLAT, entry=entry), name="run.sh", target="megatron@0.16.0")
    assert len(report.jobs) == 1
    assert ("megatron/learning-rate-flat" in severities(report)) is told


@pytest.mark.parametrize(
    ("more", "target", "expected"),
    [
        ("--no-query-key-layer-scaling", None, Severity.NOTE),
        ("--data-impl mmap", None, Severity.NOTE),
        ("--no-query-key-layer-scaling --use-flash-attn", None, Severity.NOTE),
        ("--data-impl mmap --swiglu", None, Severity.NOTE),
        ("--no-query-key-layer-scaling --bf16 --sequence-parallel", None, Severity.NOTE),
        ("--no-query-key-layer-scaling", "megatron@0.8.0", Severity.ERROR),
        ("--data-impl mmap", "megatron@0.16.0", Severity.ERROR),
        ("--DDP-impl local", None, Severity.NOTE),
        ("--DDP-impl local --no-query-key-layer-scaling", None, Severity.NOTE),
        ("--DDP-impl local", "megatron@0.16.0", Severity.ERROR),
        ("--own-switch", None, Severity.WARNING),
        ("--sequence-paralel", None, Severity.ERROR),
    ],
)
def test_an_option_that_only_earlier_releases_have_is_evidence_of_one(
    more: str, target: str | None, expected: Severity
) -> None:
    found = severities(preflight.check_text(launch(more), name="run.sh", target=target))
    assert found["unknown-flag"] is expected


SWIFT = "NPROC_PER_NODE=8 megatron sft --micro_batch_size 1 --global_batch_size 16 --tensor_model_parallel_size 2"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--load Qwen3-mcore --max_epochs 1 --save out", None),
        ("--load Qwen3-mcore --train_iters 100 --save out", None),
        ("--load_safetensors true --save_safetensors true --max_epochs 1", None),
        ("--load Qwen3-mcore --save out", None),
        ("--model Qwen3 --train_type lora --max_epochs 1", None),
        ("--model Qwen3 --tuner_type lora --num_train_epochs 1", None),
        ("--model Qwen3 --lr 1e-5", None),
        ("--model Qwen3 --packing_cache x --max_epochs 1", Severity.NOTE),
        ("--model Qwen3 --own_switch 1 --other_switch 2", Severity.WARNING),
    ],
)
def test_options_of_an_earlier_release_of_swift_are_evidence_of_it(more: str, expected: Severity | None) -> None:
    found = severities(preflight.check_text(f"{SWIFT} {more}\n", name="run.sh"))
    assert found.get("unread-key") is expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--use-fused-sdpa --use-torch-compile", Severity.NOTE),
        ("--own-switch", Severity.NOTE),
        ("--own-size 4 --bf16", Severity.NOTE),
        ("--other-of-ours --swiglu", Severity.NOTE),
        ("", Severity.WARNING),
        ("--bf16", Severity.WARNING),
        ("--swiglu --sequence-paralel", Severity.WARNING),
    ],
)
def test_a_choice_of_earlier_releases_beside_an_option_of_a_fork_may_be_kept(more: str, expected: Severity) -> None:
    newer = "--moe-router-score-function sigmoid"  # only releases without the tokenizer have it
    script = launch(f"{newer} {more}").replace("NullTokenizer", "Llama3Tokenizer")
    assert severities(preflight.check_text(script, name="run.sh"))["bad-choice"] is expected


@pytest.mark.parametrize("more", ["--own-switch", "--own-size 4", "--use-fused-sdpa"])
def test_a_choice_that_no_release_accepts_is_told_beside_an_option_of_a_fork(more: str) -> None:
    script = launch(more).replace("NullTokenizer", "HuggingFaceTokeniser")
    found = severities(preflight.check_text(script, name="run.sh"))
    assert found["bad-choice"] in (Severity.WARNING, Severity.ERROR)


def test_a_launch_without_words_is_read(tmp_path: Path) -> None:
    text = (
        "GBS=$(( MBS * 4 ))\n"
        'docker exec box bash -lc "\n" 2>&1 | tee "${RUN}/out.log"\n'
        'docker exec box pkill -9 -f "swift|torch.distributed.run|sft.py" || true\n'
    )
    write(tmp_path, {"sweep.sh": text})
    assert not preflight.check(tmp_path / "sweep.sh").crashes
