"""A hybrid layer pattern that cannot be read or split.

## What it does
Reads `--hybrid-layer-pattern`: M Mamba, * attention, - MLP, E experts, G gated delta net, D sparse and + latent
attention, `|` between pipeline segments, `/` before each prediction depth. Checks the symbols, that all depths are
alike, that plain attention is not mixed with latent or sparse attention, and that a pattern without `|` divides over
the pipeline stages.

## Why is this bad?
The pattern is refused at start-up, or where only the split is wrong when the model is built.

## Example
    --hybrid-layer-pattern "M*MX"

X is not a layer. Use instead, for an MLP, `M*M-`.

## References
Megatron-LM d98e8a6, megatron/core/models/hybrid/hybrid_layer_allocation.py
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.megatron.pipeline import SYMBOLS, Hybrid, parse_hybrid
from preflight.rules.megatron.core_reading import core, place_of, read, typed
from preflight.run.versions import matches
from preflight.source.finding import Kind

SINCE = {"D": ">=0.18", "+": ">=0.19"}
"""Layers that the first releases with this option do not have."""
NAMES = ("hybrid_layer_pattern", "hybrid_override_pattern")
SPLIT = ("pipeline_model_parallel_size", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")


@rule(
    severity=Severity.ERROR,
    id="megatron/hybrid-pattern",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=NAMES,
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    written = typed(job, *NAMES)
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
    """The pattern with the depths that the older option describes."""
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
                "the {layers} layers of the pattern are not divisible by {pipeline} pipeline stages, and it has "
                "no | that splits them"
            ),
            layers=pattern.layers,
            pipeline=pipeline,
        ), "f83934f0c4"
    return None
