"""What sort of value a setting must hold, and whether one does."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from preflight.constraints.versions import matches
from preflight.dialects.mindformers.core_sorts import CORE_SORTS
from preflight.dialects.mindformers.glm_sorts import GLM_SORTS
from preflight.dialects.mindformers.sorts import SORTS
from preflight.dialects.mindformers.sorts import Sort as Sort
from preflight.dialects.mindformers.sorts import at as at

WORDS = {
    "type": "float16, float32 or bfloat16",
    "no int8": "float16, float32 or bfloat16",
    "size": "a whole number",
    "real": "a number",
    "size or null": "a whole number",
    "positive or null": "a whole number of at least 1",
    "real or null": "a number",
    "file": "the name of a file",
    "jit": "O0, O1 or O2",
    "mapping": "a mapping for this extend_method",
    "fraction": "a number with a decimal point, at least 0.0 and below 1.0",
    "text": "the name of a type such as bfloat16",
    "positive": "a whole number of at least 1",
    "positive int or bool": "a whole number of at least 1",
    "bool": "True or False",
    "coefficient": "a number above 0",
    "accumulation": "a whole number of at least 1",
    "not null": "a number",
    "number": "a whole number",
    "depth": "a whole number of at least 1",
    "graphs": "True, False or a number up to 3",
    "section": "a mapping",
    "section or null": "a mapping",
    "threads": "a whole number of at least 0",
    "switch": "ON or OFF",
    "optimization": "O0 or O1",
    "sink": "-1 or a whole number of at least 1",
    "bool or null": "True or False",
    "bool, text or null": "True, False or a name",
    "memory": "a size such as 58GB",
    "not negative": "a whole number of at least 0",
    "shard": "-1 or a whole number of at least 1",
    "level": "level1, level2 or level3",
    "search": "recursive_programming, dynamic_programming or sharding_propagation",
    "scheduler": "1f1b, gpipe, seqpipe, seqvpp, seqsmartvpp or zero_bubble_v",
}
WORDS |= {
    "dtype": "the name of a type such as bfloat16",
    "type or null": "float16, float32 or bfloat16",
    "size above 0": "a whole number of at least 1",
    "size from 0": "a whole number of at least 1",
    "size from 0 or null": "a whole number of at least 1",
    "epochs": "a number above 0",
    "batch": "a whole number of at least 1",
    "device": "Ascend, GPU or CPU",
    "device or null": "Ascend, GPU or CPU",
    "precision": "must_keep_origin_dtype or another mode of that list",
    "optimization or null": "O0 or O1",
    "whole from 0": "a whole number of at least 0",
    "seed": "a whole number of at least 0",
    "format or null": "ckpt or safetensors",
    "activation or null": "silu, swiglu, fusedswiglu or gelu",
    "balancing": "sub_seq_aux_loss, seq_aux_loss or gbs_aux_loss",
    "served activation or null": "silu",
    "chance or null": "a number of at least 0 and below 1",
    "float above 0": "a number with a decimal point above 0.0",
    "router type": "float16, float32 or bfloat16",
    "path": "the name of a folder",
    "text or bool": "a name, or True or False",
    "counted with": "a number",
    "no float16": "float32 or bfloat16",
    "base": "a number above 0, and not 1",
    "real above 0": "a number above 0",
    "norm": "LayerNorm or RMSNorm",
    "score": "softmax or sigmoid",
    "score or null": "softmax or sigmoid",
    "whole from 0 or null": "a whole number of at least 0",
    "from -1 or null": "a whole number of at least -1",
    "number or null": "a whole number",
}
SCHEDULERS = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
CHOICES: dict[str, tuple[str, ...]] = {
    "served activation": ("silu",),
    "router type": ("float16", "float32", "bfloat16"),
    "type": ("float16", "float32", "bfloat16"),
    "device": ("Ascend", "GPU", "CPU"),
    "precision": (
        *("force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "must_keep_origin_dtype", "force_fp32", "allow_fp32_to_bf16"),
        *("allow_mix_precision_fp16", "allow_mix_precision_bf16"),
    ),
    "optimization": ("O0", "O1"),
    "format": ("ckpt", "safetensors"),
    "activation": ("silu", "swiglu", "fusedswiglu", "gelu"),
    "norm": ("LayerNorm", "RMSNorm"),
    "score": ("softmax", "sigmoid", "sqrtsoftplus"),
    "balancing": ("sub_seq_aux_loss", "seq_aux_loss", "gbs_aux_loss"),
    "dtype": (
        *("float64", "fp64", "float32", "fp32", "bfloat16", "bf16", "float16", "fp16", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
    ),
}
"""The texts that a sort allows, for those whose misspelt one is put right."""
MEMORY = re.compile(r"[1-9][0-9]*(\.)?[0-9]*GB|0\.[0-9]*GB")


def whole(raw: Any) -> bool:
    """A whole number, True and False left out."""
    return isinstance(raw, int) and not isinstance(raw, bool)


def fits(sort: str, raw: Any, version: str) -> bool:
    """Whether a value is of the sort."""
    if sort.endswith(" or null") and sort not in ("bool or null", "bool, text or null", "section or null"):
        return raw is None or (raw == "" and sort == "optimization or null") or fits(sort.removesuffix(" or null"), raw, version)
    if sort == "seed":
        return not raw or (whole(raw) and raw > 0)
    if sort == "activation":
        return isinstance(raw, str) and raw.lower() in CHOICES[sort]
    if sort in ("device", "precision", "format", "dtype", "balancing", "norm", "score"):
        return isinstance(raw, str) and (raw in CHOICES[sort] or (sort == "device" and raw == "Davinci" and matches(version, "<2")))
    if sort in _OF_CORE:
        return _OF_CORE[sort](raw)
    if sort in _LEAST:
        return isinstance(raw, _LEAST[sort][0]) and raw >= _LEAST[sort][1] and not (sort == "epochs" and raw == 0)
    if sort == "positive":
        return whole(raw) and raw > 0
    if sort == "positive int or bool":
        return isinstance(raw, int) and raw >= 1
    if sort == "bool":
        return isinstance(raw, bool)
    if sort == "coefficient":
        return isinstance(raw, (int, float)) and raw > 0
    if sort == "accumulation":
        return raw is None or (whole(raw) and raw >= 1)
    return _of_model(sort, raw) if sort in _MODEL else _other(sort, raw, version)


def _of_model(sort: str, raw: Any) -> bool:
    if sort == "type":
        return isinstance(raw, str) and raw.lower() in ("float16", "float32", "bfloat16", "int8")
    if sort == "no int8":
        return not (isinstance(raw, str) and raw.lower() == "int8")
    if sort == "size":
        return isinstance(raw, int)
    if sort == "real":
        return isinstance(raw, (int, float))
    if sort == "file":
        return isinstance(raw, str)
    if sort == "jit":
        return raw in ("O0", "O1", "O2")
    if sort == "mapping":
        return isinstance(raw, dict)
    return isinstance(raw, float) and 0 <= raw < 1 if sort == "fraction" else isinstance(raw, str)


_OF_CORE: dict[str, Callable[[Any], bool]] = {
    "float above 0": lambda raw: isinstance(raw, float) and raw > 0,
    "served activation": lambda raw: isinstance(raw, str) and raw.lower() == "silu",
    "chance": lambda raw: isinstance(raw, (int, float)) and 0 <= raw < 1,
    "router type": lambda raw: isinstance(raw, str) and raw in CHOICES["type"],
    "path": lambda raw: isinstance(raw, str) and raw != "",
    "counted with": lambda raw: raw is not None and not isinstance(raw, str),
    "text or bool": lambda raw: isinstance(raw, (str, bool)),
    "no float16": lambda raw: raw not in ("float16", "fp16"),
    "base": lambda raw: not isinstance(raw, (int, float)) or (raw > 0 and raw != 1),
    "real above 0": lambda raw: isinstance(raw, (int, float)) and raw > 0,
}
_LEAST: dict[str, tuple[Any, int]] = {
    "from -1": (int, -1),
    "size above 0": (int, 1),
    "size from 0": (int, 0),
    "batch": (int, 1),
    "whole from 0": (int, 0),
    "epochs": ((int, float), 0),
}
_MODEL = ("type", "no int8", "size", "real", "mapping", "fraction", "text", "file", "jit")


def _other(sort: str, raw: Any, version: str) -> bool:
    if sort == "not null":
        return raw is not None
    if sort == "number":
        return isinstance(raw, int)
    if sort == "bool or null":
        return raw is None or isinstance(raw, bool)
    if sort == "bool, text or null":
        return raw is None or isinstance(raw, (bool, str))
    if sort == "memory":
        return (raw is None and matches(version, ">=2")) or (isinstance(raw, str) and MEMORY.fullmatch(raw) is not None)
    if sort in _OF_CONTEXT:
        return _OF_CONTEXT[sort](raw)
    if sort == "depth":
        return _depth(raw, version)
    if sort == "not negative":
        return whole(raw) and raw >= 0
    if sort == "shard":
        return whole(raw) and (raw > 0 or raw == -1)
    choices = {
        "level": ("level1", "level2", "level3"),
        "search": ("recursive_programming", "dynamic_programming", "sharding_propagation"),
        "scheduler": SCHEDULERS,
    }
    return isinstance(raw, str) and raw in choices[sort]


_OF_CONTEXT: dict[str, Callable[[Any], bool]] = {
    "graphs": lambda raw: isinstance(raw, int) and raw <= 3,
    "section": lambda raw: isinstance(raw, dict),
    "section or null": lambda raw: raw is None or isinstance(raw, dict),
    "threads": lambda raw: isinstance(raw, int) and raw >= 0,
    "switch": lambda raw: raw in ("ON", "OFF"),
    "optimization": lambda raw: raw in ("O0", "O1"),
    "sink": lambda raw: isinstance(raw, (int, float)) and (raw > 0 or raw == -1),
}


def _depth(raw: Any, version: str) -> bool:
    """Since 2.1 null is passed over, and what is given is made a whole number."""
    if not matches(version, ">=2"):
        return isinstance(raw, int) and raw > 0
    try:
        return raw is None or int(raw) > 0
    except (TypeError, ValueError, OverflowError):
        return False


@lru_cache(maxsize=8)
def applying(version: str) -> tuple[Sort, ...]:
    """The sorts that a release checks."""
    return tuple(sort for sort in (*SORTS, *CORE_SORTS, *GLM_SORTS) if matches(version, sort.versions))
