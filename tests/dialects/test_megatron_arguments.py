"""The Megatron family: derived and switched values, unknown values, the spelling of edits."""

from __future__ import annotations

import pytest
from megatron_reading import SIZES, document, read

import preflight
from preflight.dialects import Surroundings
from preflight.dialects.megatron import MegatronDialect
from preflight.run.arguments import REMOVE
from preflight.run.request import Request


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "",
            {
                "data_parallel_size": 8,
                "ffn_hidden_size": 4096,
                "kv_channels": 64,
                "num_query_groups": 16,
                "params_dtype": "fp32",
                "global_batch_size": 8,
            },
        ),
        (
            "--tensor-model-parallel-size 4 --sequence-parallel",
            {"data_parallel_size": 2, "sequence_parallel": True, "expert_tensor_parallel_size": 4},
        ),
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
        (
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3",
            {"layers_per_chunk": ((3,), (7,), (7,), (7,))},
        ),
        (
            (
                "--pipeline-model-parallel-size 2 --num-layers 13 --pipeline-model-parallel-layout Et*3|(tt|)*4ttL "
                "--position-embedding-type rope"
            ),
            {
                "virtual_pipeline_model_parallel_size": 3,
                "layers_per_chunk": ((3, 2, 2), (2, 2, 2)),
                "layout_num_stages": 6,
            },
        ),
        (
            "--hybrid-layer-pattern M*M-|M*M-/MM/MM --pipeline-model-parallel-size 2",
            {"num_layers": 8, "mtp_num_layers": 2, "layers_per_chunk": ((4,), (4,))},
        ),
        (
            "--num-experts 8 --moe-layer-freq 2 --num-layers 4",
            {"moe_layer_pattern": (True, False, True, False), "moe_ffn_hidden_size": 4096},
        ),
        ("--num-experts 8 --expert-model-parallel-size 4", {"expert_data_parallel_size": 2, "expert_model_size": 4}),
        ("--vocab-size 50000 --tensor-model-parallel-size 2", {"padded_vocab_size": 50176}),
        (
            "--recompute-activations --recompute-granularity full",
            {"recompute_granularity": "selective", "recompute_modules": ["core_attn"]},
        ),
        (
            "--optimizer muon --use-distributed-optimizer",
            {"use_distributed_optimizer": False, "use_layer_wise_distributed_optimizer": True},
        ),
        ("--train-samples 1000 --global-batch-size 10 --tensor-model-parallel-size 8", {"train_iters": 100}),
        (
            "--train-iters 10 --lr-warmup-fraction .5 --global-batch-size 8",
            {"lr_decay_steps": 80, "lr_warmup_steps": 40.0},
        ),
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


@pytest.mark.parametrize(("release", "known"), [("0.6.0", False), ("0.9.0", False), ("0.10.0", True), ("0.20.0", True)])
def test_before_0_10_a_checkpoint_determines_the_layout_too(release: str, known: bool) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --use-checkpoint-args --load x"
    text = f"{script} --tensor-model-parallel-size 4 --pipeline-model-parallel-size 5 --mock-data\n"
    found = preflight.check_text(text, name="run.sh", target=f"megatron@{release}")
    assert ("device-count" in {one.rule for one in found.findings}) is known
    assert found.jobs[0].arguments.get("tensor_model_parallel_size").known is known


def test_without_a_launcher_the_number_of_ranks_is_unknown() -> None:
    reading = read(SIZES, devices=None)
    assert not reading.arguments.get("world_size").known
    assert not reading.plan.layout.data.known
    assert reading.plan.layout.tensor.raw == 1


def test_the_launcher_says_the_number_of_ranks() -> None:
    reading = read(
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 4", None, name="run.sh"
    )
    assert reading.plan.layout.world.raw == 16
    assert reading.plan.layout.data.raw == 4


@pytest.mark.parametrize(
    ("said", "ranks"),
    [
        ({"nodes": 4}, 32),
        ({"devices_per_node": 4}, 8),
        ({"nodes": 4, "devices_per_node": 4}, 16),
        ({"world_size": 64}, 64),
        ({}, 16),
    ],
)
def test_what_the_caller_says_about_devices_completes_the_launcher(said: dict[str, int], ranks: int) -> None:
    made = document("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 2")
    reading = MegatronDialect().read(made, Surroundings(Request(**said), lambda d, n: None, lambda n: None))
    assert reading.plan.layout.world.raw == ranks


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
        (
            "--no-gradient-accumulation-fusion",
            "gradient_accumulation_fusion",
            True,
            [("remove", "--no-gradient-accumulation-fusion", None)],
        ),
        ("--rl-partial-rollouts", "rl_partial_rollouts", False, [("remove", "--rl-partial-rollouts", None)]),
        (
            "--no-rl-partial-rollouts",
            "rl_partial_rollouts",
            True,
            [("remove", "--no-rl-partial-rollouts", None), ("set", "--rl-partial-rollouts", None)],
        ),
        ("--save-interval 5", "save_interval", REMOVE, [("remove", "--save-interval", None)]),
        (
            "--disable-tp-comm-overlap-ag",
            "tp_comm_overlap_ag",
            REMOVE,
            [("remove", "--disable-tp-comm-overlap-ag", None)],
        ),
        ("", "data_parallel_size", 4, []),
    ],
)
def test_edits_are_spelt_as_the_parser_wants(
    options: str, name: str, value: object, edits: list[tuple[str, str, object]]
) -> None:
    assert [(e.action, e.key[0], e.value) for e in read(options).arguments.put(name, value)] == edits


def test_environment_of_a_command_is_known_and_of_a_script_inherited() -> None:
    command = read(SIZES, environment={"NCCL_ALGO": "Ring"}).arguments.environment
    assert command["NCCL_ALGO"].raw == "Ring"
    assert command.get("CUDA_DEVICE_MAX_CONNECTIONS") is None
    script = read("export NCCL_ALGO=Tree\ntorchrun pretrain_gpt.py --num-layers 2", name="run.sh").arguments.environment
    assert script["NCCL_ALGO"].raw == "Tree"
    assert not script["CUDA_DEVICE_MAX_CONNECTIONS"].known


def test_open_words_make_absence_unknown() -> None:
    arguments = read('torchrun pretrain_gpt.py --num-layers 2 "$@"', name="run.sh").arguments
    assert arguments.open
    assert arguments.get("num_layers").raw == 2
    assert not arguments.get("hidden_size").known


SOURCED = "source /nowhere/model.sh\nexport N\ntorchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 {}\n"


@pytest.mark.parametrize(
    ("words", "open_"),
    [
        ("--of-my-own ${MODEL_ARGS[@]}", True),
        ('--of-my-own "${MODEL_ARGS[@]}"', True),
        ("--of-my-own ${MODEL_ARGS[*]}", True),
        ("--of-my-own $SIZE ${MODEL_ARGS[@]}", True),
        ("--of-my-own 3 ${MODEL_ARGS[@]}", True),
        ("--of-my-own $@", True),
        ("--of-my-own $SIZE $MODEL_ARGS", True),
        ("${MODEL_ARGS[@]} --of-my-own 3", True),
        ("--of-my-own 3", False),
        ('--of-my-own "$SIZE"', False),
    ],
)
def test_an_unknown_array_behind_an_unknown_option_may_be_options(words: str, open_: bool) -> None:
    report = preflight.check_text(SOURCED.format(words), name="run.sh")
    told = {f.rule for f in report.findings}
    assert ("megatron/required-argument" in told) != open_
