"""Checks of rotary scaling in MindSpeed-LLM."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.rules.mindspeed.shorthand import a
from preflight.source.finding import Severity

LONG = a.rope_scaling_type == "longrope"
LONG_WHY = "the scaling is computed from the missing option, so the run fails at launch"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why=LONG_WHY)
MINDSPEED_LLM.add(
    refuse(
        "frequency-factors-swapped",
        (a.rope_scaling_type == "llama3") & a.low_freq_factor.is_set & (a.low_freq_factor >= a.high_freq_factor),
        at=(a.low_freq_factor, a.high_freq_factor),
        message="--low-freq-factor {low_freq_factor} must be below --high-freq-factor {high_freq_factor}",
        why=(
            "no check catches this, so the frequencies between the two are scaled in the wrong direction, and the "
            "run trains with positions that differ from those of the weights"
        ),
        severity=Severity.WARNING,
        upstream="mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py:32",
    ),
    refuse(
        "llama3-scaling-incomplete",
        (a.rope_scaling_type == "llama3")
        & (a.position_embedding_type == "rope")
        & (a.original_max_position_embeddings.is_none | a.low_freq_factor.is_none | a.high_freq_factor.is_none),
        at=(a.rope_scaling_type,),
        message=(
            "--rope-scaling-type llama3 needs --original-max-position-embeddings, --low-freq-factor and "
            "--high-freq-factor"
        ),
        upstream="mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py:22",
    ),
    refuse(
        "rope-factor-without-type",
        a.rope_scaling_type.is_none & a.rope_scaling_factor.given & (a.rope_scaling_factor > 1) & ~a.use_rope_scaling,
        at=(a.rope_scaling_factor,),
        message="--rope-scaling-factor {rope_scaling_factor} has no effect without --rope-scaling-type",
        why="the rotary frequencies are not scaled, so weights that were trained with scaling see different positions",
        severity=Severity.WARNING,
        upstream="mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py",
    ),
    refuse(
        "yarn-covers-too-little",
        (a.rope_scaling_type == "yarn")
        & a.rope_scaling_factor.given
        & (a.rope_scaling_factor * a.rope_scaling_original_max_position_embeddings * 2 <= a.max_position_embeddings),
        at=(a.rope_scaling_factor, a.rope_scaling_original_max_position_embeddings, a.max_position_embeddings),
        message=(
            "a YaRN factor of {rope_scaling_factor} extends {rope_scaling_original_max_position_embeddings} positions to "
            "half of --max-position-embeddings {max_position_embeddings} or less"
        ),
        why="published models state a factor that reaches all positions; with another one, weights see other frequencies",
        severity=Severity.WARNING,
        upstream="mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py",
    ),
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
