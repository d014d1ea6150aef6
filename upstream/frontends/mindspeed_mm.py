"""The options that MindSpeed-MM adds to those of Megatron-LM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from preflight.dialects.megatron.options import table
from preflight.program.checkout.parser_options import own_options
from upstream.frontends.rows import row

OPTIONS = "mindspeed_mm/arguments.py"
CORE = "0.12.1"


def mindspeed_mm(text: Callable[[str], str]) -> dict[str, Any]:
    """The options of its parser; options that Megatron's parser also has are unchanged."""
    below = table("megatron", CORE).options
    own = {one.option: row(one) for one in own_options(text(OPTIONS)) if one.option not in below}
    return {"takes megatron": True, "keys": own}
