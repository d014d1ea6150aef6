"""MindSpeed-LLM: scaled rotary positions."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.rules.mindspeed.shorthand import a

LONG = a.rope_scaling_type == "longrope"
LONG_WHY = "the scaling is computed from it; dies at launch"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why=LONG_WHY)
MINDSPEED_LLM.add(
    refuse(
        "longrope-positions",
        LONG & a.rope_scaling_original_max_position_embeddings.is_none,
        at=(a.rope_scaling_type,),
        message="longrope needs --rope-scaling-original-max-position-embeddings",
    ),
    refuse(
        "longrope-long",
        LONG & a.long_factor.is_none,
        at=(a.rope_scaling_type,),
        message="longrope needs --long-factor",
    ),
    refuse(
        "longrope-short",
        LONG & a.short_factor.is_none,
        at=(a.rope_scaling_type,),
        message="longrope needs --short-factor",
    ),
    refuse(
        "longrope-mscale",
        LONG
        & (
            (a.short_mscale.is_set & (a.short_mscale != 0) & (a.long_mscale.is_none | (a.long_mscale == 0)))
            | (a.long_mscale.is_set & (a.long_mscale != 0) & (a.short_mscale.is_none | (a.short_mscale == 0)))
        ),
        at=(a.short_mscale, a.long_mscale),
        message="--short-mscale and --long-mscale must be given together",
    ),
)
