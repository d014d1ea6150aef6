"""Checks of quantized gradients in MindSpeed-LLM."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "quantised-gradients-fb-overlap",
        a.quant_grads & a.moe_fb_overlap & a.gradient_accumulation_fusion,
        at=(a.quant_grads, a.moe_fb_overlap),
        message="--quant-grads with --moe-fb-overlap needs --no-gradient-accumulation-fusion",
        fixes=(
            put(a.gradient_accumulation_fusion, False, title="set --no-gradient-accumulation-fusion"),
            drop(a.quant_grads),
        ),
        why="fused matrix products can only accumulate into full-precision gradients, so the run fails at launch",
    ),
    refuse(
        "quantised-gradients-documented",
        a.quant_grads & ~a.moe_fb_overlap & a.gradient_accumulation_fusion,
        severity=Severity.WARNING,
        at=(a.quant_grads,),
        message="--quant-grads is documented only together with --no-gradient-accumulation-fusion",
        why="MindSpeed rejects the combination, but MindSpeed-LLM accepts it",
        fixes=(put(a.gradient_accumulation_fusion, False, title="set --no-gradient-accumulation-fusion"),),
        versions=">=26",
    ),
)
