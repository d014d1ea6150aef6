"""Programs that are not described: how a script or a config shows them."""

from __future__ import annotations

import re

from preflight.loaders.document import Launch
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple


class Undescribed(NamedTuple):
    """options: options that no other program has; entry: a pattern for the paths of its entry scripts; mentioned: text
    that only its scripts or configs contain; over: the frameworks below it, whose checks a user may request."""

    name: str
    options: tuple[str, ...]
    entry: re.Pattern[str]
    mentioned: re.Pattern[str]
    over: tuple[str, ...] = ()


MINDSPEED_MM = Undescribed(
    "MindSpeed-MM",
    ("--mm-model", "--mm-data", "--mm-tool"),
    lazy_pattern(
        r"(?:^|/)(?:(?:pretrain|inference)_(?:sora|videoalign|lumina|qihoo)|posttrain_(?:sora|qwen2vl|stepvideo)_dpo"
        r"|posttrain_(?:flux_dancegrpo|vlm_grpo|vlm_dapo)|(?:inference|evaluate)_vlm)\.py$"
        r"|(?:^|/)finetune_ocr2?\.py$|(?:^|/)mindspeed_mm/[\w/]+\.py$"
    ),
    lazy_pattern(
        r"(?<![\w-])--mm-(?:model|data|tool)(?![\w-])|\bmindspeed_mm/\w|\bpretrain_sora\.py\b|\bfinetune_ocr2?\.py\b"
    ),
    ("megatron", "mindspeed"),
)
"""Ascend/MindSpeed-MM, from 1.0.RC3 on."""
PROGRAMS = (MINDSPEED_MM,)


def undescribed(launch: Launch) -> Undescribed | None:
    """The program that a launch starts, if it is one of these."""
    return next((program for program in PROGRAMS if _starts(launch, program)), None)


def undescribed_in(text: str) -> str:
    """The name of the program of a script or config, "" if it is none of these; DeepSpeed's launcher starts a fork of
    Megatron whose options have the same names as Megatron's and different meanings."""
    found = next((one.name for one in PROGRAMS if one.mentioned.search(text) is not None), "")
    return found or (DEEPSPEED if _BY_DEEPSPEED.search(text) is not None else "")


def _starts(launch: Launch, program: Undescribed) -> bool:
    typed = {(word.text or "").partition("=")[0] for word in launch.words}
    return not typed.isdisjoint(program.options) or program.entry.search(launch.entry.text or "") is not None


DEEPSPEED = "Megatron-DeepSpeed"
_BY_DEEPSPEED = lazy_pattern(r"(?m)^[ \t]*(?:\w+=[\"'])?deepspeed[ \t](?:[^\n\\]|\\\n|\\.){0,2000}?\bpretrain_\w+\.py")
"""A line that starts one of its scripts."""
