"""Recompute patterns: the matches, termination, and agreement with the recorded runs of the framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clock import takes_at_most

import preflight
from preflight.dialects.mindformers.layer_operators import _layer as layer
from preflight.dialects.mindformers.recompute_patterns import compiled, match, nearest

DENSE, CONCAT = layer("llama", "plain", "dense"), layer("llama", "concat", "dense-concat")
ORACLE = Path(__file__).parents[3] / "shared" / "data" / "oracle" / "mindformers.jsonl"
GUIDE = r"""
feed_forward\.mul
feed_forward\.w1\.activation
feed_forward\.w1\.matmul
feed_forward\.w1\.reshape
feed_forward\.w3\.matmul
feed_forward\.w3\.reshape
feed_forward\.w2\.matmul
feed_forward\.w2\.reshape
ffn_norm\.norm
ffn_norm\.rcast
attention_norm\.norm
attention_normi.rcast
attention\.wq\.reshape
attention\.wk\.reshape
attention\.w\.reshape
attention\.wol.matmul
attention\.wo\.reshape
attention\.merger head transpose
add
attention\.flash_attention
""".strip().splitlines()
MEANT = {
    r"attention_normi.rcast": r"attention_norm\.rcast",
    r"attention\.w\.reshape": r"attention\.wv\.reshape",
    r"attention\.wol.matmul": r"attention\.wo\.matmul",
    r"attention\.merger head transpose": r"attention\.merger_head_transpose",
}
CONFIG = """run_mode: train
parallel_config: {{data_parallel: 1, model_parallel: 8, pipeline_stage: 2, micro_batch_num: 2}}
model: {{model_config: {{type: LlamaConfig, num_layers: 40, hidden_size: 5120, num_heads: 40, seq_length: 4096,
  vocab_size: 32000}}}}
recompute_config:
  select_recompute:
{patterns}"""


@pytest.mark.parametrize(
    ("pattern", "reached"),
    [
        (r"feed_forward\.mul", [r"feed_forward\.mul"]),
        (r"feed_forward\.w1\.activation", [r"feed_forward\.w1\.activation"]),
        (r".*_norm\.norm", [r"ffn_norm\.norm", r"attention_norm\.norm"]),
        (r"feed_forward\.w[13]\.matmul", [r"feed_forward\.w1\.matmul", r"feed_forward\.w3\.matmul"]),
        (r"feed_forward.mul", []),
        (r"feed_forward\.Mul", []),
        (r"forward\.mul", []),
    ],
)
def test_a_pattern_matches_whole_names_part_by_part(pattern: str, reached: list[str]) -> None:
    assert [hit.path for hit in match(pattern, DENSE).hits] == reached


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        (r"feed_forward\.w1\.activation\.silu", r"feed_forward\.activate\.silu"),
        (r"feed_forward\.w1\.reshape", r"feed_forward\.w_gate_hidden\.reshape"),
        (r"attention\.wq\.reshape", r"attention\.w_qkv\.reshape"),
        (r"mlp\.mul", r"feed_forward\.mul"),
        (r".*\.nrom", r".*\.norm"),
        (r"nothing\.alike", ""),
    ],
)
def test_the_nearest_path_follows_renames(pattern: str, meant: str) -> None:
    assert nearest(pattern, (CONCAT,)) == meant


@pytest.mark.parametrize(
    "pattern",
    ["(a*)*b", "(a|a)*b", "(.*){9}x", ".*.*.*.*.*.*x", ".?" * 40 + "x", "a" * 400, "((((a+)+)+)+)+$", "(x+x+)+y"],
)
def test_an_expression_that_could_run_for_ever_is_refused_at_once(pattern: str) -> None:
    with takes_at_most(2):
        assert isinstance(compiled(pattern), str) and match(pattern, DENSE).unsure


@pytest.mark.parametrize(
    "pattern",
    [
        r".*\.norm",
        r"(attention|ffn)_norm\.(norm|rcast)",
        r"feed_forward\.w\d\.matmul",
        r"[a-z_]+\.w_?[a-z]*\.cast",
        "a{1,3}b?",
    ],
)
def test_expressions_that_people_write_are_tried(pattern: str) -> None:
    assert not match(pattern, DENSE).unsure


def test_the_listing_of_the_tuning_guide_is_caught_in_full() -> None:
    text = CONFIG.format(patterns="".join(f"    '{pattern}': [20, 0]\n" for pattern in GUIDE))
    found = [
        f
        for f in preflight.check_text(text, world_size=16, target="mindformers@1.5.0").findings
        if f.rule == "select-recompute-no-match"
    ]
    assert {str(f.key[-1]): f.fix.edits[0].value for f in found if f.fix} == MEANT
    assert [text.splitlines()[f.line - 1].strip().partition(":")[0].strip("'") for f in found] == list(MEANT)


def test_as_published_the_listing_is_no_yaml() -> None:
    text = CONFIG.format(
        patterns="".join(f"    '{pattern}': [20, 0]{'e' * ('reshape' in pattern)}\n" for pattern in GUIDE)
    )
    (finding,) = preflight.check_text(text, world_size=16).findings
    assert (finding.rule, finding.line) == ("unreadable", text[: text.index("]e")].count("\n") + 1)


def noop(case: dict[str, Any]) -> set[str]:
    """Patterns reported to reach nothing, named as the recorded runs do."""
    report = preflight.check_text(case["yaml"], world_size=case["world_size"], target=f"mindformers@{case['tag'][1:]}")
    found = set()
    for finding in report.findings:
        if finding.rule == "select-recompute-no-match":
            setting = str(finding.key[1])
            kind = ("comm:" if "comm" in setting else "op:") + ("exclude:" if "exclude" in setting else "")
            quoted = finding.message.partition("'")[2].partition("'")[0]
            names = (
                [quoted]
                if quoted
                else finding.message.partition(" stands for ")[2].partition(", and this")[0].split(", ")
            )
            found |= {kind + name for name in names}
    return found


@pytest.mark.slow
@pytest.mark.skipif(not ORACLE.exists(), reason="the recorded runs are not here")
def test_patterns_without_effect_are_those_of_the_recorded_runs() -> None:
    cases = [
        case
        for case in map(json.loads, ORACLE.read_text(encoding="utf-8").splitlines())
        if case["accept"] and case.get("dialect") != "pynative"
    ]
    some = [case for case in cases if case["noop_patterns"]]
    exact = [case for case in some if noop(case) == set(case["noop_patterns"])]
    none = [case["id"] for case in cases if not case["noop_patterns"] and "select" in case["yaml"] and noop(case)]
    assert not none
    assert len(exact) >= 0.95 * len(some), [case["id"] for case in some if case not in exact]
