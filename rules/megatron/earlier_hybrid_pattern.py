"""A hybrid layer pattern, or ratios of layers, that these releases cannot allocate.

## What it does
`pretrain_mamba.py` of Megatron core 0.10 to 0.16 allocates the layers of the model by `--hybrid-attention-ratio`,
`--hybrid-mlp-ratio` and `--hybrid-override-pattern`. Checks that both ratios and their sum are between 0 and 1, that
the pattern has `--num-layers` layers and only known symbols, and that with ratios it has as
many layers of each kind as these give.

## Why is this bad?
Every rank stops while the model is built.

## Example
    --num-layers 8 --hybrid-override-pattern "M*M-"

The pattern has 4 layers. Use instead `M*M-M*M-`.

## References
Megatron-LM core_v0.16.0, megatron/core/ssm/mamba_hybrid_layer_allocation.py, allocate_layers
"""

from collections import Counter
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import core, place_of, read, typed
from preflight.run.versions import matches
from preflight.source.finding import Kind

ATTENTION, MLP, PATTERN = "hybrid_attention_ratio", "hybrid_mlp_ratio", "hybrid_override_pattern"
LENGTH, SYMBOL, COUNTS = "bb778e2107", "41a71a71df", "3a027be382"
RATIOS = {ATTENTION: "1cc16d9d4c", MLP: "1eb5315818"}
TOGETHER = "eb789f5b02"
"""The statements of upstream, as the evidence names them."""


@rule(
    severity=Severity.ERROR,
    id="megatron/layer-allocation",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(PATTERN, ATTENTION, MLP),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    written = typed(job, PATTERN, ATTENTION, MLP)
    if not written or "mindspeed" in job.versions or job.arguments.get("entry").raw != "pretrain_mamba.py":
        return
    if isinstance(values := read(job, "num_layers", ATTENTION, MLP, PATTERN), Unverified):
        yield values
        return
    layers, attention, mlp, pattern = values
    said = _ratios(attention, mlp)
    if said is None and pattern is not None and layers is not None:
        known = "M*-E" if matches(core(job), ">=0.16") else "M*-"
        said = _pattern(str(pattern), layers, known) or _counts(str(pattern), layers, attention, mlp)
    if said is not None:
        message, site = said
        value = (typed(job, *(name for name, of in RATIOS.items() if of == site)) or written)[0]
        related = tuple(place for other in written if other is not value for place in other.related)
        yield Finding(message, job.place(value), related=related, key=value.key, upstream=place_of(job, site))


def _ratios(attention: float, mlp: float) -> tuple[str, str] | None:
    for name, ratio in ((ATTENTION, attention), (MLP, mlp)):
        if not 0 <= ratio <= 1:
            option = "--" + name.replace("_", "-")
            return Message("{option} is {ratio}; it must be from 0 to 1", option=option, ratio=ratio), RATIOS[name]
    if attention + mlp > 1:
        return Message(
            "attention {attention} + MLP {mlp} of the layers is more than 1", attention=attention, mlp=mlp
        ), TOGETHER
    return None


def _pattern(pattern: str, layers: int, known: str) -> tuple[str, str] | None:
    if len(pattern) != layers:
        return Message(
            "the hybrid pattern has {held} layers, --num-layers is {layers}", held=len(pattern), layers=layers
        ), LENGTH
    if strange := next((symbol for symbol in pattern if symbol not in known), ""):
        return Message(
            "{strange!r} is not a layer of a hybrid pattern; in this release it must be one of {symbols}",
            strange=strange,
            symbols=tuple(known),
        ), SYMBOL
    return None


def _counts(pattern: str, layers: int, attention: float, mlp: float) -> tuple[str, str] | None:
    """With ratios, a pattern must have the layers that they give."""
    if not attention and not mlp:
        return None
    many = round(layers * attention)
    given = {"*": many, "-": min(round(layers * mlp), layers - many), "E": 0}
    held = Counter(pattern)
    for symbol, name in (("*", "attention"), ("-", "MLP"), ("E", "experts")):
        if held[symbol] != given[symbol]:
            return Message(
                "the hybrid pattern has {held} {name} layers, the ratios give {given}",
                held=held[symbol],
                name=name,
                given=given[symbol],
            ), COUNTS
    return None
