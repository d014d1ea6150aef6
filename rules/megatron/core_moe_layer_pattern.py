"""A pattern of expert and dense layers that does not fit the model.

## What it does
Checks `--moe-layer-freq`: a list has one entry, 0 or 1, for every layer; a number is at least 1.

## Why is this bad?
Nothing looks at it before the model is built; then every rank stops.

## Example
    --num-layers 4 --num-experts 8 --moe-layer-freq "[0,1,1]"

Use instead `[0,1,1,1]`, or `([0]*1+[1]*3)`.

## References
Megatron-LM d98e8a6, megatron/core/models/gpt/gpt_layer_specs.py:648, :653, :671; core_v0.12.1 :390, :394, :412
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import core, read, typed
from preflight.source.finding import Kind

FILE = "megatron/core/models/gpt/gpt_layer_specs.py"
VARIANTS = "megatron/core/models/gpt/experimental_attention_variant_module_specs.py"
NAMES = (
    "moe_layer_freq",
    "num_layers",
    "num_experts",
    "hybrid_layer_pattern",
    "spec",
    "experimental_attention_variant",
)
OF_VARIANTS = {648: 441, 653: 446}
"""The same two checks where attention variants are built, by their line for plain layers."""
LINES = {"0.20.0": (648, 653, 671), "0.12.1": (390, 394, 412)}


@rule(
    severity=Severity.ERROR,
    id="megatron/moe-layer-pattern",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    upstream=tuple(f"{FILE}:{n}" for n in (648, 653, 671)),
    reads=("moe_layer_freq",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    if not typed(job, "moe_layer_freq"):
        return
    if isinstance(values := read(job, *NAMES), Unverified):
        yield values
        return
    frequency, layers, experts, pattern, spec, variant = values
    if experts is None or layers is None or pattern is not None or spec is not None:
        return
    zero, length, entry = LINES.get(core(job), LINES["0.20.0"])
    said = None
    if frequency == 0:
        said = "--moe-layer-freq is 0; it must be at least 1", zero
    elif isinstance(frequency, (list, tuple)):
        odd = next((item for item in frequency if item not in (0, 1)), None)
        if len(frequency) != layers:
            said = (
                Message(
                    "--moe-layer-freq has {count} entries for {layers} layers", count=len(frequency), layers=layers
                ),
                length,
            )
        elif odd is not None:
            said = (
                Message(
                    ("--moe-layer-freq has an entry {odd}; it must be 1, an expert layer, or 0, a dense one"), odd=odd
                ),
                entry,
            )
    if said is not None:
        value = typed(job, "moe_layer_freq")[0]
        place = (
            f"{VARIANTS}:{OF_VARIANTS[said[1]]}"
            if variant is not None and said[1] in OF_VARIANTS
            else f"{FILE}:{said[1]}"
        )
        yield Finding(said[0], span=job.place(value), key=value.key, upstream=place)
