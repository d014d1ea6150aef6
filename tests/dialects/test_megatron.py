"""The Megatron family: what is claimed, which target is meant, what is derived and switched, how edits are spelt."""

from __future__ import annotations

import pytest

from preflight.arguments import REMOVE
from preflight.cluster import Device
from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import MegatronDialect, plan_training
from preflight.document import Document
from preflight.loaders import load
from preflight.loaders.command import load_command
from preflight.request import Request, Target
from preflight.source import Source

SIZES = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 "


def document(text: str, name: str = "run.sh") -> Document:
    return load(Source(text, name))[0]


def read(text: str, devices: int | None = 8, target: str = "megatron@0.20.0", name: str = "", **said: object) -> Reading:
    """Read options after pretrain_gpt.py, or a file when it is named."""
    request = Request(world_size=devices, target=Target.parse(target) if target else None, device="h100", **said)  # type: ignore[arg-type]
    made = document(text, name) if name else load_command(["pretrain_gpt.py", *text.split()])
    return MegatronDialect().read(made, Surroundings(request, lambda d, n: None, lambda n: Device(n, 80e9, architecture=9)))


@pytest.mark.parametrize(
    ("text", "name", "ours"),
    [
        ("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2", "a.sh", True),
        ("torchrun --nproc-per-node 8 my_train.py --num-layers 2 --hidden-size 8 --seq-length 8 --micro-batch-size 1", "a.sh", True),
        ("torchrun --nproc-per-node 8 train.py --lr 1e-4 --batch-size 8", "a.sh", False),
        ("python convert_ckpt.py --num-layers 2 --hidden-size 8 --seq-length 8 --micro-batch-size 1", "a.sh", False),
        ("MODEL_ARGS:\n  --num-layers: 12\n", "a.yaml", True),
        ("MODEL_ARGS:\n  num_layers: 12\n", "a.yaml", False),
        ("language_model: {hidden_size: 8, num_layers: 2}\nmodel_parallel: {tensor_model_parallel_size: 2}\n", "a.yaml", True),
        ("trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 2, hidden_size: 8}\n", "nemo.yaml", False),
        ("actor_rollout_ref: {actor: {megatron: {tensor_model_parallel_size: 2}}}\n", "verl.yaml", False),
        ("megatron: true\ntensor_model_parallel_size: 2\nmodel: Qwen/Qwen3-8B\n", "swift.yaml", False),
    ],
)
def test_claims_by_content(text: str, name: str, ours: bool) -> None:
    assert MegatronDialect().claims(document(text, name), Request()) is ours


@pytest.mark.parametrize(
    ("command", "wanted", "target"),
    [
        ("pretrain_gpt.py --num-layers 2", "", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2", "megatron", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2 --encoder-tensor-model-parallel-size 1", "", "megatron@0.12.1"),
        ("pretrain_gpt.py --num-layers 2 --use-fused-rmsnorm --tokenizer-name-or-path x", "", "mindspeed-llm@26.1.0"),
        ("posttrain_gpt.py --num-layers 2", "", "mindspeed-llm@26.1.0"),
        ("posttrain_gpt.py --num-layers 2", "mindspeed", "mindspeed@26.1.0"),
        ("pretrain_gpt.py --num-layers 2 --use-fused-rmsnorm", "megatron@0.12.1", "megatron@0.12.1"),
        ("pretrain_gpt.py --num-layers 2 --unaligned-linear", "", "mindspeed@26.1.0"),
        ("pretrain_gpt.py --num-layers 2", "megatron@0.12.0", "megatron@0.12.1"),
        ("pretrain_gpt.py --num-layers 2", "megatron@v0.19.0", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2", "mindspeed-llm@2.1.0", "mindspeed-llm@26.1.0"),
    ],
)
def test_target(command: str, wanted: str, target: str) -> None:
    request = Request(target=Target.parse(wanted) if wanted else None)
    reading = MegatronDialect().read(load_command(command.split()), Surroundings(request, lambda d, n: None, lambda n: None))
    assert str(reading.target) == target


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {"data_parallel_size": 8, "ffn_hidden_size": 4096, "kv_channels": 64, "num_query_groups": 16, "params_dtype": "fp32", "global_batch_size": 8}),
        ("--tensor-model-parallel-size 4 --sequence-parallel", {"data_parallel_size": 2, "sequence_parallel": True, "expert_tensor_parallel_size": 4}),
        ("--swiglu", {"ffn_hidden_size": 2688, "gated_linear_unit": True, "activation_func": "silu"}),
        ("--num-query-groups 4", {"num_query_groups": 16}),
        ("--num-query-groups 4 --group-query-attention", {"num_query_groups": 4}),
        ("--bf16", {"params_dtype": "bf16", "accumulate_allreduce_grads_in_fp32": True}),
        ("--bf16 --grad-reduce-in-bf16", {"accumulate_allreduce_grads_in_fp32": False}),
        ("--num-layers 12 --num-layers 16", {"num_layers": 16}),
        ("--global-batch-size 64", {"num_microbatches": 8, "eval_global_batch_size": 64}),
        (
            "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2",
            {"virtual_pipeline_model_parallel_size": 3, "layers_per_chunk": ((2,) * 3,) * 4, "overlap_p2p_comm": True},
        ),
        ("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3", {"layers_per_chunk": ((3,), (7,), (7,), (7,))}),
        (
            "--pipeline-model-parallel-size 2 --num-layers 13 --pipeline-model-parallel-layout Et*3|(tt|)*4ttL --position-embedding-type rope",
            {"virtual_pipeline_model_parallel_size": 3, "layers_per_chunk": ((3, 2, 2), (2, 2, 2)), "layout_num_stages": 6},
        ),
        ("--hybrid-layer-pattern M*M-|M*M-/MM/MM --pipeline-model-parallel-size 2", {"num_layers": 8, "mtp_num_layers": 2, "layers_per_chunk": ((4,), (4,))}),
        ("--num-experts 8 --moe-layer-freq 2 --num-layers 4", {"moe_layer_pattern": (True, False, True, False), "moe_ffn_hidden_size": 4096}),
        ("--num-experts 8 --expert-model-parallel-size 4", {"expert_data_parallel_size": 2, "expert_model_size": 4}),
        ("--vocab-size 50000 --tensor-model-parallel-size 2", {"padded_vocab_size": 50176}),
        ("--recompute-activations --recompute-granularity full", {"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}),
        ("--optimizer muon --use-distributed-optimizer", {"use_distributed_optimizer": False, "use_layer_wise_distributed_optimizer": True}),
        ("--train-samples 1000 --global-batch-size 10 --tensor-model-parallel-size 8", {"train_iters": 100}),
        ("--train-iters 10 --lr-warmup-fraction .5 --global-batch-size 8", {"lr_decay_steps": 80, "lr_warmup_steps": 40.0}),
        ("--step-batch-size-schedule 0:8 --train-samples 20", {"train_iters": 3, "num_microbatches": 1}),
        ("--decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 4", {"layers_per_chunk": ((4,),)}),
        ("--step-batch-size-schedule 0:4 --train-samples 20", {"num_microbatches": 0}),
        ("--step-batch-size-schedule 0:20 --train-samples 20", {"num_microbatches": 2}),
        ("--train-samples 1000 --global-batch-size 8 --skip-train", {"train_iters": None}),
        ("--tokenizer-type TikTokenizer --tokenizer-model v.json", {"padded_vocab_size": 131072}),
        ("--rampup-batch-size [8,8,80] --global-batch-size 16", {"num_microbatches": 2}),
    ],
)
def test_derived_values(options: str, expected: dict[str, object]) -> None:
    arguments = read(SIZES + options).arguments
    assert {name: arguments.get(name).raw for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--tensor-model-parallel-size 3", ["data_parallel_size", "num_microbatches", "global_batch_size"]),
        ("--global-batch-size 9", ["num_microbatches"]),
        ("--pipeline-model-parallel-size 5", ["layers_per_chunk", "data_parallel_size"]),
        ("--num-attention-heads 15", ["kv_channels"]),
        ("--hybrid-layer-pattern MXM", ["num_layers", "layers_per_chunk", "hybrid_num_segments"]),
        ("--use-checkpoint-args --load x", ["num_query_groups", "swiglu", "num_experts"]),
        ("--tokenizer-type HuggingFaceTokenizer", ["padded_vocab_size"]),
        ("--num-layerss 4 --num-layers", ["num_layers"]),
    ],
)
def test_what_cannot_be_derived_is_unknown(options: str, names: list[str]) -> None:
    arguments = read(SIZES + options).arguments
    assert [name for name in names if arguments.get(name).known] == []


def test_without_a_launcher_the_number_of_ranks_is_unknown() -> None:
    reading = read(SIZES, devices=None)
    assert not reading.arguments.get("world_size").known
    assert not reading.plan.layout.data.known
    assert reading.plan.layout.tensor.raw == 1


def test_the_launcher_says_the_number_of_ranks() -> None:
    reading = read("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 4", None, name="run.sh")
    assert reading.plan.layout.world.raw == 16
    assert reading.plan.layout.data.raw == 4


@pytest.mark.parametrize(
    ("options", "switch"),
    [
        ("--sequence-parallel", ("sequence_parallel", True, False)),
        ("--recompute-activations --recompute-granularity full", ("recompute_granularity", "full", "selective")),
        ("--async-save", ("async_save", True, False)),
        ("--hybrid-layer-pattern MM --num-layers 3", ("num_layers", 3, 2)),
    ],
)
def test_silent_switches_are_told(options: str, switch: tuple[str, object, object]) -> None:
    assert switch in [(s.name, s.before, s.after) for s in read(SIZES + options).arguments.switches]


@pytest.mark.parametrize(
    ("options", "name", "value", "edits"),
    [
        ("--num-layers 2", "num_layers", 4, [("set", "--num-layers", 4)]),
        ("", "num_layers", 4, [("set", "--num-layers", 4)]),
        ("--sequence-parallel", "sequence_parallel", False, [("remove", "--sequence-parallel", None)]),
        ("", "sequence_parallel", True, [("set", "--sequence-parallel", None)]),
        ("", "gradient_accumulation_fusion", False, [("set", "--no-gradient-accumulation-fusion", None)]),
        ("--no-gradient-accumulation-fusion", "gradient_accumulation_fusion", True, [("remove", "--no-gradient-accumulation-fusion", None)]),
        ("--rl-partial-rollouts", "rl_partial_rollouts", False, [("remove", "--rl-partial-rollouts", None)]),
        ("--no-rl-partial-rollouts", "rl_partial_rollouts", True, [("remove", "--no-rl-partial-rollouts", None), ("set", "--rl-partial-rollouts", None)]),
        ("--save-interval 5", "save_interval", REMOVE, [("remove", "--save-interval", None)]),
        ("--disable-tp-comm-overlap-ag", "tp_comm_overlap_ag", REMOVE, [("remove", "--disable-tp-comm-overlap-ag", None)]),
        ("", "data_parallel_size", 4, []),
    ],
)
def test_edits_are_spelt_as_the_parser_wants(options: str, name: str, value: object, edits: list[tuple[str, str, object]]) -> None:
    assert [(e.action, e.key[0], e.value) for e in read(options).arguments.put(name, value)] == edits


def test_edits_of_a_functional_test() -> None:
    reading = read("MODEL_ARGS:\n  --num-layers: 12\n", name="model_config.yaml")
    assert [(e.key, e.value) for e in reading.arguments.put("sequence_parallel", True)] == [(("MODEL_ARGS", "--sequence-parallel"), True)]


def test_environment_of_a_command_is_known_and_of_a_script_inherited() -> None:
    command = read(SIZES, environment={"NCCL_ALGO": "Ring"}).arguments.environment
    assert command["NCCL_ALGO"].raw == "Ring"
    assert command.get("CUDA_DEVICE_MAX_CONNECTIONS") is None
    script = read("export NCCL_ALGO=Tree\ntorchrun pretrain_gpt.py --num-layers 2", name="run.sh").arguments.environment
    assert script["NCCL_ALGO"].raw == "Tree"
    assert not script["CUDA_DEVICE_MAX_CONNECTIONS"].known


def test_functional_test_values_are_text() -> None:
    environment = "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n"
    text = environment + "MODEL_ARGS:\n  --lr: 1e-4\n  --split: 99,1,0\n  --spec: '[a b]'\n  --load: ${CKPT}\n  --save: ''\n  --bf16: true\n"
    reading = read(text, name="model_config.yaml")
    given = {name: value.raw for name, value in reading.arguments.written.items() if value.known}
    assert given == {"lr": 1e-4, "split": "99,1,0", "spec": ["a", "b"], "bf16": True}
    assert not reading.arguments.get("load").known
    assert reading.arguments.environment["CUDA_DEVICE_MAX_CONNECTIONS"].raw == "1"


def test_open_words_make_absence_unknown() -> None:
    arguments = read('torchrun pretrain_gpt.py --num-layers 2 "$@"', name="run.sh").arguments
    assert arguments.open
    assert arguments.get("num_layers").raw == 2
    assert not arguments.get("hidden_size").known


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--bf16", {"precision.master": "fp32", "precision.gradients": "fp32", "optimizer.zero": 0, "model.positions": 1024, "model.tied": True}),
        ("--bf16 --use-distributed-optimizer --context-parallel-size 2", {"optimizer.zero": 1, "optimizer.shards": 8}),
        ("--transformer-impl local", {"model.attention": "unfused", "loss.implementation": "local"}),
        ("--attention-backend unfused", {"model.attention": "unfused"}),
        ("--position-embedding-type rope --normalization RMSNorm", {"model.positions": 0, "model.norm": "rms", "model.attention": "flash"}),
        ("--cross-entropy-loss-fusion", {"loss.cross_entropy": "native"}),
        ("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2", {"layout.stages": ((3,) * 4,) * 2, "layout.schedule": "interleaved"}),
        ("--recompute-granularity selective --recompute-modules [moe_act layernorm]", {"recompute.modules": ("moe_act", "layernorm")}),
        ("--num-experts 8 --moe-shared-expert-intermediate-size 512", {"model.shared_ffn": 512, "model.expert_layers": (True,) * 24}),
    ],
)
def test_plan(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options).plan.values()
    assert {name: values[name].raw for name in expected} == expected


GRID = "--tensor-model-parallel-size 4 --tp-2d"
HYBRID = "--context-parallel-size 4 --context-parallel-algo hybrid_cp_algo --use-flash-attn"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (f"{GRID} --tp-x 2 --tp-y 2 --context-parallel-algo ulysses_cp_algo", {"layout.tensor_x": 2, "layout.exchanged": True}),
        (f"{GRID} --tp-x 2 --tp-y 2", {"layout.tensor_x": 2, "layout.exchanged": True}),
        (f"{GRID} --tp-x 2 --tp-y 2 --use-flash-attn", {"layout.tensor_x": 2, "layout.exchanged": False}),
        (f"{GRID} --tp-x 4 --tp-y 1 --context-parallel-algo ulysses_cp_algo", {"layout.tensor_x": 4, "layout.exchanged": False}),
        ("--context-parallel-size 2 --context-parallel-algo ulysses_cp_algo --use-flash-attn", {"layout.tensor_x": None, "layout.exchanged": True}),
        ("--context-parallel-size 2 --context-parallel-algo megatron_cp_algo --use-flash-attn", {"layout.exchanged": False}),
        ("--context-parallel-size 1 --context-parallel-algo ulysses_cp_algo", {"layout.exchanged": False}),
        (f"{HYBRID} --ulysses-degree-in-cp 2", {"layout.exchanged": True}),
        (f"{HYBRID} --ulysses-degree-in-cp 1", {"layout.exchanged": False}),
    ],
)
def test_what_mindspeed_exchanges(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options, target="mindspeed-llm").plan.values()
    assert {name: values[name].raw for name in expected} == expected


CHUNKS = "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3 --recompute-activation-function"
BLOCK = "--recompute-granularity full --recompute-method block --recompute-num-layers"


@pytest.mark.parametrize(
    ("options", "shared", "dealt"),
    [
        (f"{CHUNKS} --recompute-activation-function-num-layers 2", False, (2, 2, 2, 2)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 5", False, (3, 3, 3, 3)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 5 --enable-recompute-layers-per-pp-rank", True, (2, 1, 1, 1)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 1 --enable-recompute-layers-per-pp-rank", True, (1, 0, 0, 0)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 3 --enable-recompute-layers-per-pp-rank {BLOCK} 2", True, (2, 1, 1, 1)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 1 {BLOCK} 1", False, (2, 2, 2, 2)),
        (f"{CHUNKS} --enable-recompute-layers-per-pp-rank {BLOCK} 2", True, (3, 3, 3, 3)),
    ],
)
def test_how_mindspeed_deals_out_what_is_recomputed(options: str, shared: bool, dealt: tuple[int, ...]) -> None:
    recompute = read(SIZES + options, target="mindspeed-llm").plan.recompute
    ((_, counts),) = recompute.operators.raw
    assert recompute.shared.raw is shared
    assert counts == tuple((n, n) for n in dealt)


def test_what_the_memory_formulas_do_not_know_is_named() -> None:
    adapters = "--lora-r 8 --lora-target-modules"
    assert "adapters of this kind" in read(SIZES + f"{adapters} query_key_value", target="mindspeed-llm").plan.unmodelled
    assert read(SIZES + f"{adapters} linear_qkv", target="mindspeed-llm").plan.unmodelled == ()
    assert "hyper-connections" in read(SIZES + "--enable-mhc-connections").plan.unmodelled
    assert "hyper-connections" in read(SIZES + "--enable-mhc", target="mindspeed-llm").plan.unmodelled
    assert "ALiBi" in read(SIZES + "--position-embedding-type alibi", target="mindspeed-llm").plan.unmodelled
    assert "experts that compute nothing" in read(SIZES + "--num-experts 16 --num-zero-experts 8", target="mindspeed-llm").plan.unmodelled


@pytest.mark.parametrize("target", ["megatron", "megatron@0.12.1", "mindspeed", "mindspeed-llm"])
def test_of_a_plain_run_it_is_known_that_nothing_is_beyond_the_formulas(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unasked(Exception):
        pass

    monkeypatch.setattr(plan_training, "NotKnown", Unasked)
    assert read(SIZES, target=target).plan.unmodelled == ()


@pytest.mark.parametrize(
    ("options", "varying"),
    [
        ("--no-pad-to-seq-lengths", True),
        ("--variable-seq-lengths", True),  # releases until 2.2 padded nothing then
        ("", False),
    ],
)
def test_samples_that_may_not_be_padded(options: str, varying: bool) -> None:
    assert read(SIZES + options, target="mindspeed-llm").plan.batch.varying.raw is varying


def test_four_bits_are_no_part_of_the_memory_formulas() -> None:
    assert "FP4" in read(SIZES + "--bf16 --fp4-format e2m1").plan.unmodelled
    assert "FP4" not in read(SIZES + "--bf16 --fp8-format e4m3").plan.unmodelled


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/Qwen3-30B-A3B/ --tensor-model-parallel-size 8", 152576),
        ("--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model /data/nemotron_2_256k.model", 256000),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model tokenizer.model", 32000),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/baichuan2-13B-hf/tokenizer.model", 125696),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/another-13B/tokenizer.model", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model nvidia/Llama-3_3-Nemotron-Super-49B-v1", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model nvidia/Nemotron-4-340B-Base", 256000),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/Qwen3.5-27B", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model my-tokenizer", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/llama-3-8b/mine/tokenizer", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B --use-checkpoint-args --load x", None),
    ],
)
def test_the_vocabulary_of_a_published_tokenizer_is_for_estimates_alone(options: str, rows: int | None) -> None:
    reading = read(SIZES + options)
    value = reading.plan.model.vocab
    assert (value.raw if value.known else None) == rows
    assert not reading.arguments.get("padded_vocab_size").known


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--num-layer-list 5,7,6,6 --pipeline-model-parallel-size 4", {"layout.stages": ((5, 7, 6, 6),)}),
        ("--noop-layers 22,23 --pipeline-model-parallel-size 2", {"layout.stages": ((12, 10),)}),
        ("--n-shared-experts 2 --num-experts 8 --moe-ffn-hidden-size 100", {"model.shared_ffn": 200}),
        ("--first-k-dense-replace 1 --num-experts 8 --num-layers 3", {"model.expert_layers": (False, True, True)}),
        ("--use-flash-attn --transformer-impl local", {"model.attention": "flash"}),
        ("--layerwise-disaggregated-training --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4", {"layout.world": 16, "layout.data": 1}),
        (
            "--qk-rope-head-dim 64 --qk-nope-head-dim 128 --multi-head-latent-attention",
            {"model.latent": True, "model.qk_rope_dim": 64, "model.qk_nope_dim": 128},
        ),
    ],
)
def test_mindspeed_plan(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options, target="mindspeed-llm").plan.values()
    assert {name: values[name].raw for name in expected} == expected


CORE_YAML = """\
language_model: {num_layers: 24, hidden_size: 1024, num_attention_heads: 16, num_query_groups: 4, activation_func: swiglu, num_moe_experts: null}
model_parallel: {tensor_model_parallel_size: 16, pipeline_model_parallel_size: 1, context_parallel_size: 1, bf16: true}
micro_batch_size: 2
global_batch_size: 32
seq_length: 1024
"""


def test_yaml_of_yaml_cfg() -> None:
    reading = read(CORE_YAML, name="gpt_config.yaml")
    values = reading.plan.values()
    expected = {"layout.tensor": 8, "layout.data": 1, "model.query_groups": 4, "model.gated": True, "model.ffn": 2688, "batch.count": 16}
    assert {name: values[name].raw for name in expected} == expected
    assert ("tensor_model_parallel_size", 16, 8) in [(s.name, s.before, s.after) for s in reading.arguments.switches]
    assert "megatron" not in reading.arguments.versions, "its validator makes none of the checks on options"
    assert [(e.key, e.value) for e in reading.arguments.put("tensor_model_parallel_size", 4)] == [(("model_parallel", "tensor_model_parallel_size"), 4)]


def test_a_command_that_names_such_a_file_is_that_file() -> None:
    made = load_command(["pretrain_gpt.py", "--yaml-cfg", "gpt_config.yaml", "--num-layers", "2"])
    surroundings = Surroundings(Request(world_size=8), lambda d, n: document(CORE_YAML, n), lambda n: None)
    reading = MegatronDialect().read(made, surroundings)
    assert [d.source.name for d in reading.documents] == ["command line", "gpt_config.yaml"]
    assert reading.plan.model.layers.raw == 24, "options on the command line are ignored"
    blind = MegatronDialect().read(made, Surroundings(Request(world_size=8), lambda d, n: None, lambda n: None))
    assert not blind.arguments.get("num_layers").known


@pytest.mark.parametrize(
    ("said", "ranks"),
    [({"nodes": 4}, 32), ({"devices_per_node": 4}, 8), ({"nodes": 4, "devices_per_node": 4}, 16), ({"world_size": 64}, 64), ({}, 16)],
)
def test_what_the_caller_says_about_devices_completes_the_launcher(said: dict[str, int], ranks: int) -> None:
    made = document("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 2")
    reading = MegatronDialect().read(made, Surroundings(Request(**said), lambda d, n: None, lambda n: None))
    assert reading.plan.layout.world.raw == ranks
