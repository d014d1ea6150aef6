"""Programs that look like a described framework, have options and networks of their own, and are not described: what
starts them is left alone, and called by its name."""

from __future__ import annotations

from preflight.loaders.document import Launch
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple


class Undescribed(NamedTuple):
    """options: what only it has; entry: its entry scripts, as a pattern of the path that is typed; over: the
    frameworks beneath it, whose checks somebody may ask for."""

    name: str
    options: tuple[str, ...]
    entry: str
    over: tuple[str, ...]


MINDSPEED_MM = Undescribed(
    "MindSpeed-MM",
    ("--mm-model", "--mm-data", "--mm-tool"),
    r"(?:^|/)(?:(?:pretrain|inference)_(?:sora|videoalign|lumina|qihoo)|posttrain_(?:sora|qwen2vl|stepvideo)_dpo"
    r"|posttrain_(?:flux_dancegrpo|vlm_grpo|vlm_dapo)|(?:inference|evaluate)_vlm)\.py$|(?:^|/)mindspeed_mm/[\w/]+\.py$",
    ("megatron", "mindspeed"),
)
"""Ascend/MindSpeed-MM, from 1.0.RC3 on."""
_MENTIONED = lazy_pattern(r"(?<![\w-])--mm-(?:model|data|tool)(?![\w-])|\bmindspeed_mm/\w|\bpretrain_sora\.py\b")


def undescribed(launch: Launch) -> Undescribed | None:
    """The program that a launch starts, where it is one of these."""
    return MINDSPEED_MM if _starts(launch, MINDSPEED_MM) else None


def undescribed_in(text: str) -> str:
    """The name of the program that a script starts, "" where it is none of these."""
    return MINDSPEED_MM.name if _MENTIONED.search(text) is not None else ""


def _starts(launch: Launch, program: Undescribed) -> bool:
    typed = {(word.text or "").partition("=")[0] for word in launch.words}
    return not typed.isdisjoint(program.options) or _ENTRY.search(launch.entry.text or "") is not None


_ENTRY = lazy_pattern(MINDSPEED_MM.entry)
