"""Of two conflicting values the unusual one is changed; if both are plausible, both fixes are offered and none is
written."""

import pytest

from preflight.api import check_text
from preflight.dialects.megatron.effects_on_training import keeps
from preflight.dialects.mindformers.known_keys import nearest
from preflight.source.spelling import is_other_phrase, slips

SCRIPT = """torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 \\
  --hidden-size {hidden} --num-attention-heads {heads} \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size {micro} --global-batch-size {total} \\
  --train-iters 100 --lr 1e-4 --bf16 --tensor-model-parallel-size 2 {more}
"""
SOUND = {"hidden": "2048", "heads": "16", "micro": "1", "total": "256", "more": ""}
SLIPS: dict[str, tuple[dict[str, str], list[str], bool]] = {
    "between two divisors": (
        {"hidden": "1024", "heads": "12"},
        ["set --num-attention-heads 8", "set --num-attention-heads 16"],
        False,
    ),
    "beside one divisor": ({"heads": "15"}, ["set --num-attention-heads 16"], True),
    "a digit too many in the heads": ({"heads": "160"}, ["set --num-attention-heads 128"], False),
    "two digits of the hidden size swapped": ({"hidden": "4069", "heads": "32"}, ["set --hidden-size 4096"], False),
    "thousands for a power of 2": ({"hidden": "1000"}, ["set --hidden-size 1024"], False),
    "heads of their own width": (
        {"hidden": "5120", "heads": "24"},
        ["set --kv-channels 256"],
        False,
    ),
    "a micro-batch beside a round global batch": (
        {"micro": "16", "total": "480"},
        ["set the micro-batch size to 15", "set the micro-batch size to 20"],
        False,
    ),
    "one more than the hidden size": ({"hidden": "5121", "heads": "40"}, ["set --hidden-size 5120"], False),
    "an odd micro-batch beside a round global batch": (
        {"micro": "3"},
        ["set the micro-batch size to 2", "set the micro-batch size to 4"],
        False,
    ),
    "a global batch near a power of 2": (
        {"total": "250"},
        ["set the global batch size to 256", "set the global batch size to 248"],
        False,
    ),
    "a global batch beside a power of 2": ({"total": "254"}, ["set the global batch size to 256"], True),
    "an odd number of experts": (
        {"more": "--num-experts 63 --expert-model-parallel-size 4 --sequence-parallel --disable-bias-linear"},
        ["set the number of experts to 64", "set the expert-parallel size to 1"],
        False,
    ),
    "fewer experts than a round number of ranks": (
        {"more": "--num-experts 6 --expert-model-parallel-size 8 --sequence-parallel --disable-bias-linear"},
        ["set the expert-parallel size to 2"],
        False,
    ),
    "odd ranks for a round number of experts": (
        {"more": "--num-experts 64 --expert-model-parallel-size 6 --sequence-parallel --disable-bias-linear"},
        ["set the expert-parallel size to 4"],
        False,
    ),
}


@pytest.mark.parametrize(("slip", "titles", "written"), SLIPS.values(), ids=SLIPS)
def test_the_odd_value_is_changed(slip: dict[str, str], titles: list[str], written: bool) -> None:
    report = check_text(SCRIPT.format(**{**SOUND, **slip}), name="run.sh", target="megatron@0.17.0")
    error = next(
        finding for finding in report.findings if finding.fix is not None and finding.severity.value == "error"
    )
    assert error.fix is not None
    fixes = (error.fix, *error.alternatives)
    assert [str(fix.title).partition(",")[0] for fix in fixes][: len(titles)] == titles
    assert error.fix.offered is not written


@pytest.mark.parametrize(("length", "written"), [(8192, True), (16384, True), (40960, False)])
def test_positions_follow_a_sequence_that_is_not_a_digit_longer(length: int, written: bool) -> None:
    text = SCRIPT.format(**SOUND).replace("--seq-length 4096", f"--seq-length {length}")
    report = check_text(text, name="run.sh", target="megatron@0.17.0")
    finding = next(one for one in report.findings if one.rule == "megatron/positions-below-sequence")
    assert finding.fix is not None
    assert finding.fix.offered is not written


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("eod_token_id", ""),
        ("ebs_token_id", "eos_token_id"),
        ("boss_token_id", "bos_token_id"),
        ("pda_token_id", "pad_token_id"),
        ("num_layrs", "num_layers"),
    ],
)
def test_a_short_part_of_a_key_is_not_taken_for_another(key: str, meant: str) -> None:
    known = ("bos_token_id", "pad_token_id", "num_layers") + (("eos_token_id",) if meant == "eos_token_id" else ())
    assert nearest(key, known, 0.7) == meant


@pytest.mark.parametrize(
    ("name", "known", "other"),
    [
        ("update_micro_batch_size", "update_dynamic_max_batch_size", True),
        ("actor_micro_batch_size", "ref_forward_micro_batch_size", True),
        ("gpu-layers", "num-layers", True),
        ("use_dynamic_bsz", "use_remove_padding", True),
        ("max_prompt_length", "max_new_tokens", True),
        ("shuffle_minibatch", "shuffle_mini_batch", False),
        ("micro_batch_size", "actor_micro_batch_size", False),
        ("max_token_per_gpu", "max_tokens_per_gpu", False),
        ("tensor-paralel-size", "tensor-parallel-size", False),
        ("tensormodel_parallel_size", "tensor_model_parallel_size", False),
    ],
)
def test_a_key_of_other_words_is_no_slip(name: str, known: str, other: bool) -> None:
    assert is_other_phrase(name, known) is other


def test_a_layout_gets_its_prediction_layer_and_keeps_the_rest() -> None:
    stages = "--mtp-num-layers 1 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*12|t*12L'"
    text = SCRIPT.format(**{**SOUND, "more": stages})
    report = check_text(text, name="run.sh", target="megatron@0.17.0")
    finding = next(one for one in report.findings if one.rule == "megatron/pipeline-layout")
    assert finding.fix is not None
    assert str(finding.fix.title) == "add the prediction layers to it: Et*12|t*12mL"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("AquilaTokenizer", ()),  # a fork's own
        ("BloomTokenizer", ()),
        ("NulTokenizer", ("NullTokenizer",)),
        ("HugingFaceTokenizr", ("HuggingFaceTokenizer",)),
        ("GPTSentencePeiceTokenizer", ("GPTSentencePieceTokenizer",)),
    ],
)
def test_a_shared_ending_does_not_make_two_names_alike(word: str, meant: tuple[str, ...]) -> None:
    known = ("GPT2BPETokenizer", "NullTokenizer", "HuggingFaceTokenizer", "GPTSentencePieceTokenizer", "TikTokenizer")
    assert slips(word, known) == meant


def test_a_whole_number_is_not_quoted_in_yaml() -> None:
    text = "MODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512\n  --global-batch-size: 32.0\n"
    found = check_text(text, name="model_config.yaml").findings
    fixes = [finding.fix for finding in found if finding.rule == "bad-value"]
    assert [edit.value for fix in fixes if fix is not None for edit in fix.edits] == [32]


RAMP = SCRIPT.format(**SOUND | {"more": "--rampup-batch-size 16 16 5000"})


@pytest.mark.parametrize(("target", "kept"), [(None, False), ("megatron@0.20.0", True)])
def test_what_another_release_heeds_is_not_removed_on_a_guess(target: str | None, kept: bool) -> None:
    found = check_text(RAMP, name="run.sh", target=target).findings
    (fix,) = (finding.fix for finding in found if finding.rule == "megatron/ramp-ignored")
    assert (fix is not None) is kept


def test_expert_parallel_is_not_taken_to_a_fraction_where_the_devices_are_unknown() -> None:
    more = "--num-experts 8 --expert-model-parallel-size 7 --sequence-parallel --disable-bias-linear"
    text = SCRIPT.format(**SOUND | {"more": more}).replace("torchrun --nproc_per_node 8", "python")
    found = check_text(text, name="run.sh", target="megatron@0.20.0").findings
    fixes = [finding.fix for finding in found if finding.rule == "experts-not-divisible"]
    assert [(fix.title, fix.offered) for fix in fixes if fix is not None] == [
        ("set the expert-parallel size to 1", True)
    ]


@pytest.mark.parametrize("more", ["--use-dist-ckpt", "--ckpt-fully-parallel-save"])
@pytest.mark.parametrize("target", [None, "megatron@0.20.0"])
def test_a_switch_that_an_older_release_heeds_is_removed_where_the_release_is_stated(
    more: str, target: str | None
) -> None:
    found = check_text(SCRIPT.format(**{**SOUND, "more": more}), name="run.sh", target=target).findings
    fix = next(finding.fix for finding in found if finding.rule.startswith("megatron/old-"))
    assert (fix is None) is (target is None)
    assert fix is None or not fix.offered


@pytest.mark.parametrize(
    "more",
    ["--optimizer signmuon --my-own-switch", "--tokenizer-type OwnTokenizer --my-own-switch", "--my-own-switch"],
)
def test_what_a_fork_may_have_added_is_left(more: str) -> None:
    found = check_text(SCRIPT.format(**{**SOUND, "more": more}), name="run.sh").findings
    own = [f for f in found if f.rule in ("bad-choice", "unknown-flag") and f.severity.value != "error"]
    assert own
    assert not [f for f in own if f.severity.value == "note" and f.fix is not None]


@pytest.mark.parametrize("option", ["--dataset x", "--num_layers 4", "--layernorm-epsilon 1e-5"])
def test_an_option_that_the_entry_script_may_define_is_not_renamed(option: str) -> None:
    text = SCRIPT.format(**{**SOUND, "more": option}).replace("pretrain_gpt.py", "evaluate_own_model.py")
    found = check_text(text, name="run.sh").findings
    assert not [f for f in found if f.rule == "unknown-flag" and f.fix is not None]


@pytest.mark.parametrize("release", ["0.12.1", "0.18.0", "0.20.0"])
def test_the_epsilon_of_the_norms_is_named_in_every_release(release: str) -> None:
    text = SCRIPT.format(**{**SOUND, "more": "--norm-epsilon 0.5"})
    found = check_text(text, name="run.sh", target=f"megatron@{release}").findings
    message = next(str(f.message) for f in found if f.rule == "megatron/norm-epsilon-too-large")
    assert message.startswith("the epsilon of the norms is 0.5, ")


@pytest.mark.parametrize(
    "script",
    [
        "split_mp_partitions.py",
        "split_mp_partitions_single_hf.py",
        "tools/split_checkpoint.py",
        "merge_mp_partitions.py",
    ],
)
def test_one_process_that_splits_a_checkpoint_is_no_run(script: str) -> None:
    text = SCRIPT.format(**{**SOUND, "more": "--target-tensor-model-parallel-size 2"}).replace(
        "pretrain_gpt.py", script
    )
    assert not check_text(text.replace("per_node 8", "per_node 1"), name="run.sh").findings


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("softmax_type", True),
        ("window_size", True),
        ("window_attn_skip_freq", True),
        ("add_qkv_bias", True),
        ("moe_router_score_function", True),
        ("qk_layernorm", True),
        ("save_interval", False),
        ("log_interval", False),
        ("recompute_num_layers", False),
        ("use_dist_ckpt_deprecated", False),
    ],
)
def test_what_the_network_is_made_of_is_not_removed(name: str, kept: bool) -> None:
    assert keeps(name) is kept


@pytest.mark.parametrize(("per_node", "pipeline", "nodes"), [(8, 2, 2), (8, 16, 0), (8, 64, 0), (1, 2, 0)])
def test_no_more_nodes_are_offered_than_a_small_model_needs(per_node: int, pipeline: int, nodes: int) -> None:
    text = SCRIPT.format(**{**SOUND, "more": f"--pipeline-model-parallel-size {pipeline}"})
    text = text.replace("--nproc_per_node 8", f"--nnodes 1 --nproc_per_node {per_node}")
    text = text.replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 8")
    found = check_text(text, name="run.sh", target="megatron@0.17.0").findings
    fix = next(finding.fix for finding in found if finding.rule == "device-count")
    assert [str(fix.title)] == [f"run on {nodes} nodes"] if nodes else fix is None or "nodes" not in str(fix.title)


MOE = "--num-experts 8 --expert-model-parallel-size 2 --sequence-parallel --disable-bias-linear --moe-grouped-gemm"


@pytest.mark.parametrize("more", ["", " --expert-tensor-parallel-size 2"])
def test_a_degree_of_a_run_that_is_not_refused_is_only_offered(more: str) -> None:
    found = check_text(SCRIPT.format(**{**SOUND, "more": MOE + more}), name="run.sh", target="megatron@0.16.0").findings
    fixes = [f.fix for f in found if f.rule == "megatron/known-defect-expert-norm-undercounted"]
    assert [fix.offered for fix in fixes if fix is not None] == [True]
