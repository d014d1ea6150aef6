"""Checks of patterns that give the type of every layer."""

from collections import Counter
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.megatron.pipeline import SYMBOLS, Hybrid, parse_hybrid
from preflight.rules.megatron.option_names import core, place_of, read, typed
from preflight.run.version_ranges import matches
from preflight.source.finding import Kind

SINCE = {"D": ">=0.18", "+": ">=0.19"}
"""Layer types that the first releases with this option do not support."""
CORE_HYBRID_PATTERN_NAMES = ("hybrid_layer_pattern", "hybrid_override_pattern")
SPLIT = ("pipeline_model_parallel_size", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")


@rule(
    severity=Severity.ERROR,
    id="megatron/hybrid-pattern",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=CORE_HYBRID_PATTERN_NAMES,
)
def core_hybrid_pattern(job: Job) -> Iterator[Finding | Unverified]:
    """The hybrid layer pattern cannot be parsed, or cannot be split across the pipeline stages.

    ## What it does
    Reads `--hybrid-layer-pattern`, in which M stands for a Mamba layer, * for attention, - for an MLP, E for experts, G
    for a gated delta net, D for sparse attention and + for latent attention. `|` separates pipeline segments, and `/`
    precedes each prediction depth. Checks that the symbols are known, that all depths are identical, that plain
    attention is not mixed with latent or sparse attention, and that the number of layers in a pattern without `|` is
    divisible by the number of pipeline stages.

    ## Why is this bad?
    Megatron rejects the pattern at startup or, if only the split is wrong, when it builds the model.

    ## Example
        --hybrid-layer-pattern "M*MX"

    X is not a layer. Use instead: `M*M-`, in which the last layer is an MLP.

    ## References
    Megatron-LM d98e8a6, megatron/core/models/hybrid/hybrid_layer_allocation.py
    """
    written = typed(job, *CORE_HYBRID_PATTERN_NAMES)
    if not written:
        return
    if not written[0].known:
        yield Unverified(written[0].because)
        return
    depths = typed(job, "mtp_hybrid_override_pattern", "mtp_num_layers")
    pattern = parse_hybrid(_whole(str(written[0].raw), [value.raw for value in depths]))
    symbols = tuple(one for one in SYMBOLS if one not in SINCE or matches(core(job), SINCE[one]))
    if (said := _fault(pattern, symbols)) is None:
        if isinstance(values := read(job, *SPLIT), Unverified):
            yield values
            return
        said = _split(pattern, *values)
    if said is not None:
        related = tuple(place for value in depths for place in value.related)
        yield Finding(
            said[0],
            span=job.place(written[0]),
            related=related,
            key=written[0].key,
            upstream=place_of(job, said[1]),
            layout=said[1] == "f83934f0c4",
        )


def _whole(main: str, depths: list[object]) -> str:
    """The pattern, including the depths that the older option describes."""
    if len(depths) == 2 and isinstance(depths[0], str) and isinstance(depths[1], int) and "/" not in main:
        return "/".join([main, *[depths[0]] * depths[1]])
    return main


def _fault(pattern: Hybrid, symbols: tuple[str, ...]) -> tuple[str, str] | None:
    if pattern.uneven is not None:
        return Message(
            "the prediction depths of the pattern differ: {one!r} and {other!r}",
            one=pattern.uneven[0],
            other=pattern.uneven[1],
        ), "f96b6265ab"
    layers = "".join((*pattern.segments, pattern.depth or ""))
    if strange := next((one for one in layers if one not in symbols), ""):
        return Message(
            "{strange!r} is not a layer of a hybrid pattern; it must be one of {symbols}",
            strange=strange,
            symbols=symbols,
        ), "faa2089cf8"
    if pattern.mixed:
        return "the pattern mixes plain attention, *, with latent or sparse attention, + or D", "562bd4267f"
    return None


def _split(pattern: Hybrid, pipeline: int, first: int | None, last: int | None) -> tuple[str, str] | None:
    if len(pattern.segments) == 1 and first is None and last is None and pipeline > 1 and pattern.layers % pipeline:
        return Message(
            (
                "the {layers} layers of the pattern are not divisible by {pipeline} pipeline stages, and the pattern "
                "has no | that splits the layers"
            ),
            layers=pattern.layers,
            pipeline=pipeline,
        ), "f83934f0c4"
    return None


FILE = "megatron/core/models/gpt/gpt_layer_specs.py"
VARIANTS = "megatron/core/models/gpt/experimental_attention_variant_module_specs.py"
CORE_MOE_LAYER_PATTERN_NAMES = (
    "moe_layer_freq",
    "num_layers",
    "num_experts",
    "hybrid_layer_pattern",
    "spec",
    "experimental_attention_variant",
)
OF_VARIANTS = {648: 441, 653: 446}
"""The lines of the same two checks where attention variants are built, keyed by their lines for plain layers."""
LINES = {"0.20.0": (648, 653, 671), "0.12.1": (390, 394, 412)}


@rule(
    severity=Severity.ERROR,
    id="megatron/moe-layer-pattern",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    upstream=tuple(f"{FILE}:{n}" for n in (648, 653, 671)),
    reads=("moe_layer_freq",),
)
def core_moe_layer_pattern(job: Job) -> Iterator[Finding | Unverified]:
    """The pattern of expert and dense layers does not match the model.

    ## What it does
    Checks `--moe-layer-freq`. A list must have one entry, 0 or 1, for every layer, and a number must be at least 1.

    ## Why is this bad?
    Nothing checks the pattern before the model is built. Every rank stops at that point.

    ## Example
        --num-layers 4 --num-experts 8 --moe-layer-freq "[0,1,1]"

    Use instead: `[0,1,1,1]`, or `([0]*1+[1]*3)`.

    ## References
    Megatron-LM d98e8a6, megatron/core/models/gpt/gpt_layer_specs.py:648, :653, :671; core_v0.12.1 :390, :394, :412
    """
    if not typed(job, "moe_layer_freq"):
        return
    if isinstance(values := read(job, *CORE_MOE_LAYER_PATTERN_NAMES), Unverified):
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
                    "--moe-layer-freq has the entry {odd}, but each entry must be 1 (an expert layer) or 0 (a dense "
                    "layer)",
                    odd=odd,
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


ATTENTION, MLP, PATTERN = "hybrid_attention_ratio", "hybrid_mlp_ratio", "hybrid_override_pattern"
LENGTH, SYMBOL, COUNTS = "bb778e2107", "41a71a71df", "3a027be382"
RATIOS = {ATTENTION: "1cc16d9d4c", MLP: "1eb5315818"}
TOGETHER = "eb789f5b02"
"""The upstream statements, under the names used in the evidence."""


@rule(
    severity=Severity.ERROR,
    id="megatron/layer-allocation",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(PATTERN, ATTENTION, MLP),
)
def earlier_hybrid_pattern(job: Job) -> Iterator[Finding | Unverified]:
    """Megatron core 0.10 to 0.16 cannot allocate layers from the hybrid layer pattern or ratios.

    ## What it does
    `pretrain_mamba.py` in Megatron core 0.10 to 0.16 allocates the layers of the model with `--hybrid-attention-ratio`,
    `--hybrid-mlp-ratio` and `--hybrid-override-pattern`. Checks that both ratios and their sum are between 0 and 1,
    that the pattern has `--num-layers` layers and only known symbols, and, if ratios are given, that the pattern has
    the number of layers of each type that they produce.

    ## Why is this bad?
    Every rank stops while the model is built.

    ## Example
        --num-layers 8 --hybrid-override-pattern "M*M-"

    The pattern has 4 layers. Use instead: `M*M-M*M-`.

    ## References
    Megatron-LM core_v0.16.0, megatron/core/ssm/mamba_hybrid_layer_allocation.py, allocate_layers
    """
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
            (
                "the layers have an attention share of {attention} and an MLP share of {mlp}, which add up to more "
                "than 1"
            ),
            attention=attention,
            mlp=mlp,
        ), TOGETHER
    return None


def _pattern(pattern: str, layers: int, known: str) -> tuple[str, str] | None:
    if len(pattern) != layers:
        return Message(
            "the hybrid pattern has {held} layers, but --num-layers is {layers}", held=len(pattern), layers=layers
        ), LENGTH
    if strange := next((symbol for symbol in pattern if symbol not in known), ""):
        return Message(
            "{strange!r} is not a layer of a hybrid pattern; in this release it must be one of {symbols}",
            strange=strange,
            symbols=tuple(known),
        ), SYMBOL
    return None


def _counts(pattern: str, layers: int, attention: float, mlp: float) -> tuple[str, str] | None:
    """If ratios are given, a pattern must have the layers that they produce."""
    if not attention and not mlp:
        return None
    many = round(layers * attention)
    given = {"*": many, "-": min(round(layers * mlp), layers - many), "E": 0}
    held = Counter(pattern)
    for symbol, name in (("*", "attention"), ("-", "MLP"), ("E", "experts")):
        if held[symbol] != given[symbol]:
            return Message(
                "the hybrid pattern has {held} {name} layers, but the ratios give {given}",
                held=held[symbol],
                name=name,
                given=given[symbol],
            ), COUNTS
    return None
