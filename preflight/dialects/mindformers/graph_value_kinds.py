"""The kinds of values that graph-mode MindFormers and its classes take for their settings."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.lint.value_kinds import (
    MAPPING,
    NULL,
    SWITCH,
    TEXT,
    ListOf,
    Number,
    OneOf,
    Text,
    ValueKind,
    one_of,
    whole,
)
from preflight.source.record import dataclass
from preflight.source.typing_without_import import Any


@dataclass(frozen=True, slots=True)
class ReadAsWhole(ValueKind):
    """Values that Python's `int` converts to an integer: "8", 8.5, True. minimum: the smallest allowed result."""

    minimum: int | None = None

    @property
    def words(self) -> str:
        return whole(self.minimum).words

    def takes(self, value: Any) -> bool:
        try:
            return whole(self.minimum).takes(int(value))
        except (TypeError, ValueError, OverflowError):
            return False


@dataclass(frozen=True, slots=True)
class Falsy(ValueKind):
    """Values that Python treats as false: null, 0, False, an empty string, list or mapping."""

    @property
    def words(self) -> str:
        return "nothing"

    def takes(self, value: Any) -> bool:
        return not value


@dataclass(frozen=True, slots=True)
class Leads(ValueKind):
    """A list that begins with a word, in any notation."""

    word: str

    @property
    def words(self) -> str:
        return f"a list that begins with {self.word}"

    def takes(self, value: Any) -> bool:
        return isinstance(value, list) and bool(value) and str(value[0]).strip().lower() == self.word


POSITIVE = whole(1)
COUNT = whole(0)
POSITIVE_OR_ALL = whole(1, also=(-1,))
WHOLE = Number(whole=True, booleans=True)
WHOLE_FROM_MINUS_1 = Number(-1, whole=True, booleans=True)
WHOLE_FROM_0 = Number(0, whole=True, booleans=True)
WHOLE_FROM_1 = Number(1, whole=True, booleans=True)
DIVIDED = WHOLE_FROM_0.worded(POSITIVE.words)
"""0 is accepted here, and refused later by a division."""
SEED = (Falsy() | COUNT).worded(COUNT.words)
DEPTH = ReadAsWhole(1)
REAL = Number(booleans=True)
ABOVE_0 = Number(above=0, booleans=True)
POINTED_ABOVE_0 = Number(above=0.0, pointed=True)
BELOW_1 = Number(0, below=1, booleans=True)
POINTED_BELOW_1 = Number(0.0, below=1.0, pointed=True).worded("a float that is at least 0.0 and below 1.0")
SINK = Number(above=0, booleans=True, also=(-1,)).worded(POSITIVE_OR_ALL.words)
YARN_BASE = (~REAL | Number(above=0, below=1) | Number(above=1)).worded("a number above 0, and not 1")
GIVEN = (~NULL).worded(REAL.words)
COUNTED_WITH = (~(NULL | TEXT)).worded(REAL.words)

SWITCH_OR_NAME = (SWITCH | TEXT).or_null().worded("True, False or a name")
NAME_OR_SWITCH = (TEXT | SWITCH).worded("a name, or True or False")
GRAPHS = (SWITCH | whole(maximum=3)).worded("True, False or a number up to 3")
FILE = TEXT.worded("the name of a file")
FOLDER = Text(r"[\s\S]+").worded("the name of a folder")
TYPE_NAME = TEXT.worded("the name of a type such as bfloat16")
SECTION = MAPPING
SCALING = MAPPING.worded("a mapping for this extend_method")
MEMORY = Text(r"[1-9][0-9]*(\.[0-9]*)?GB|0\.[0-9]*GB").worded("a size such as 58GB")

FLOAT_TYPE = one_of("float16", "float32", "bfloat16")
FLOAT_TYPE_OR_INT8 = one_of("float16", "float32", "bfloat16", any_case=True, also=("int8",))
NORM_TYPE = one_of("float16", "fp16", "float32", "fp32", "bfloat16", "bf16").worded(FLOAT_TYPE.words)
NO_INT8 = (~one_of("int8", any_case=True)).worded(FLOAT_TYPE.words)
NO_FLOAT16 = (~one_of("float16", "fp16")).worded("float32 or bfloat16")
DTYPE = OneOf(
    (
        *(
            "float64",
            "fp64",
            "float32",
            "fp32",
            "bfloat16",
            "bf16",
            "float16",
            "fp16",
            "int8",
            "int16",
            "int32",
            "int64",
        ),
        *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
    )
).worded(TYPE_NAME.words)
ON_OFF = one_of("ON", "OFF")
DEVICE = one_of("Ascend", "GPU", "CPU")
OLD_DEVICE = one_of("Ascend", "GPU", "CPU", also=("Davinci",))
JIT_LEVEL = one_of("O0", "O1", "O2")
BOOST = one_of("on", "off")
MEMORY_LEVEL = one_of("O0", "O1")
MEMORY_LEVEL_OR_EMPTY = one_of("O0", "O1", also=("",)).or_null()
OPTIMIZER_LEVEL = one_of("level1", "level2", "level3")
SEARCH_MODE = one_of("recursive_programming", "dynamic_programming", "sharding_propagation")
SCHEDULER = one_of("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
FORMAT = one_of("ckpt", "safetensors")
ACTIVATION = one_of("silu", "swiglu", "fusedswiglu", "gelu", any_case=True)
SERVED_ACTIVATION = one_of("silu", any_case=True)
NORM = one_of("LayerNorm", "RMSNorm")
SCORE = one_of("softmax", "sigmoid", "sqrtsoftplus").worded("softmax or sigmoid")
BALANCING = one_of("sub_seq_aux_loss", "seq_aux_loss", "gbs_aux_loss")
PRECISION_MODE = OneOf(
    (
        *("force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "must_keep_origin_dtype", "force_fp32"),
        *("allow_fp32_to_bf16", "allow_mix_precision_fp16", "allow_mix_precision_bf16"),
    )
).worded("must_keep_origin_dtype or another mode of that list")

_FROM_0 = Number(0, booleans=True)
_WITHIN = Number(above=0.0, below=1.0, pointed=True)
_MULTIPLE = NULL | Text(r"\s*\d+\s*") | Number(above=-1, booleans=True)
"""Values that steps can be multiplied by and that can be read as a count: a string of digits is repeated, then read."""

ARGUMENT_KINDS: Mapping[str, ValueKind] = {
    "float above 0": POINTED_ABOVE_0,
    "float from 0": Number(0.0, pointed=True),
    "float within 0 and 1": _WITHIN,
    "two floats within 0 and 1": ListOf(_WITHIN, 2).worded("two floats between 0.0 and 1.0"),
    "three floats from 0": ListOf(Number(0.0, pointed=True), 3).worded("three floats from 0.0"),
    "float of the steps": Number(0.0, maximum=1.0, pointed=True).or_null(),
    "number": REAL.or_null(),
    "number from 0": _FROM_0,
    "number above its end": _FROM_0.or_null().worded("a number above lr_end"),
    "number or scaler": (~(NULL | TEXT)).worded("a number, or the type of a loss scaler"),
    "no text": (~TEXT).worded(REAL.words),
    "part of the steps": Number(0, maximum=1, booleans=True).or_null(),
    "multiple of the steps": _MULTIPLE.worded(_FROM_0.words),
    "count as int reads it": ReadAsWhole().or_null(),
    "whole from 0": COUNT,
    "whole from 0 or null": COUNT.or_null(),
    "whole or null": WHOLE.or_null(),
    "whole above 0": POSITIVE,
    "whole from 1": WHOLE_FROM_1,
    "two numbers from 0 below 1": ListOf(BELOW_1, 2).worded("two numbers that are at least 0 and below 1"),
    "whole above 0 if whole": (~whole(maximum=0)).worded(POSITIVE.words),
    "text": TEXT,
    "switch": SWITCH,
    "switch that stays off": Falsy().worded("False"),
    "switch or null": SWITCH.or_null(),
    "ckpt or safetensors": FORMAT,
    "pack or truncate": one_of("pack", "truncate"),
    "load_dataset or load_from_disk": one_of("load_dataset", "load_from_disk"),
    "ema or sma": one_of("ema", "sma"),
    "thread, process or a switch": (one_of("thread", "process") | SWITCH).worded("True, False, thread or process"),
}
