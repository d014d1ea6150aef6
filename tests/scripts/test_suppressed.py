"""Suppressions in scripts: above a statement they cover all of it; inside an array, the line below."""

from __future__ import annotations

import preflight

SIZES = (
    "--num-layers 32 --hidden-size 3840 --num-attention-heads 30 --seq-length 4096 --max-position-embeddings 4096 "
    "--micro-batch-size 1"
)


def rules(text: str) -> set[str]:
    report = preflight.check_text(text, name="run.sh", target="megatron@0.20.0")
    return {finding.rule for finding in report.findings}


def test_a_comment_above_a_statement_covers_it() -> None:
    script = (
        '{}ARGS="\n  {} \\\n  --global-batch-size 8\n"\n'
        "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS --tensor-model-parallel-size 4\n"
    )
    found = rules(script.format("", SIZES))
    assert "heads-not-divisible" in found
    covered = "# preflight: ignore[heads-not-divisible] a test of failures\nTP=4\n"
    assert "heads-not-divisible" not in rules(covered + script.format("", SIZES).replace("size 4\n", "size $TP\n"))
    assert "unused-suppression" in rules(
        "# preflight: ignore[heads-not-divisible] why\nX=4\n" + script.format("", SIZES)
    )


def test_a_comment_in_an_array_covers_the_next_line() -> None:
    text = (
        f"ARGS=(\n  {SIZES} --global-batch-size 8\n  # preflight: ignore[heads-not-divisible] known\n"
        "  --tensor-model-parallel-size 4\n)\n"
    )
    found = rules(text + 'torchrun --nproc_per_node 8 pretrain_gpt.py "${ARGS[@]}"\n')
    assert "heads-not-divisible" not in found and "unused-suppression" not in found
