"""MindSpeed-LLM: quantised gradients."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.shapes import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import LLM, a

LOW_LLM = f"{LLM}low_precision/low_precision_optimizer_feature.py"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "quantised-gradients-fb-overlap",
        a.quant_grads & a.moe_fb_overlap & a.gradient_accumulation_fusion,
        upstream=f"{LOW_LLM}:74",
        at=(a.quant_grads, a.moe_fb_overlap),
        message="--quant-grads with --moe-fb-overlap needs --no-gradient-accumulation-fusion",
        fixes=(put(a.gradient_accumulation_fusion, False, title="set --no-gradient-accumulation-fusion"), drop(a.quant_grads)),
        why="fused products add into full-precision gradients; dies at launch",
        versions=">=26",
    ),
    refuse(
        "quantised-gradients-documented",
        a.quant_grads & ~a.moe_fb_overlap & a.gradient_accumulation_fusion,
        severity=Severity.WARNING,
        at=(a.quant_grads,),
        upstream="docs/zh/pytorch/features/mcore/o2.md:33",
        message="--quant-grads is documented together with --no-gradient-accumulation-fusion",
        why="MindSpeed refuses the pair, MindSpeed-LLM lets it pass",
        fixes=(put(a.gradient_accumulation_fusion, False, title="set --no-gradient-accumulation-fusion"),),
        versions=">=26",
    ),
)
