"""Files that hold nothing but options of a training, for a script that passes them on."""

from __future__ import annotations

from preflight.dialects.megatron.option_releases import is_a_text_of_options as is_a_text_of_options
