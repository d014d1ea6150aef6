"""Load balancing of experts that does not fit its coefficients or the expert capacity.

## What it does
Several `--moe-router-load-balancing-type` need as many `--moe-aux-loss-coeff`; a capacity factor works with auxiliary
losses or no balancing, not with sinkhorn or quantile balancing.

## Why is this bad?
The model configuration is refused at start-up.

## Example
    --moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 0.01

Use instead one coefficient each: `--moe-aux-loss-coeff 0.01 0.001`.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import core, place_of, read, typed
from preflight.source.finding import Kind

TYPES, LOSSES, CAPACITY = "moe_router_load_balancing_type", "moe_aux_loss_coeff", "moe_expert_capacity_factor"
DROPPING = {
    "0.20.0": ("aux_loss", "seq_aux_loss", "global_aux_loss", "none"),
    "0.12.1": ("aux_loss", "seq_aux_loss", "none"),
}

OF_ONE, OF_SEVERAL = ("fb8615c8ac", "657757815d", "f3ed62cdd0"), ("f21b65560c", "657757815d")
"""The statements of upstream about a capacity factor, by release, with one kind of balancing and several."""


@rule(
    severity=Severity.ERROR,
    id="megatron/moe-balancing",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(TYPES, LOSSES, CAPACITY),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    if not typed(job, TYPES, LOSSES, CAPACITY):
        return
    if isinstance(values := read(job, TYPES, LOSSES, CAPACITY), Unverified):
        yield values
        return
    kinds, losses, capacity = (value[0] if isinstance(value, list) and len(value) == 1 else value for value in values)
    several = isinstance(kinds, list)
    if several and (not isinstance(losses, list) or len(losses) != len(kinds)):
        given = len(losses) if isinstance(losses, list) else 1
        template = "{kinds} kinds of load balancing need {kinds} coefficients, not {given}"
        yield _finding(job, Message(template, kinds=len(kinds), given=given), "8b446c78b2", LOSSES, TYPES)
        return
    allowed = DROPPING.get(core(job), DROPPING["0.20.0"])
    odd = next((kind for kind in (kinds if several else [kinds]) if kind not in allowed), None)
    if capacity is not None and odd is not None and odd != "":
        site = next((site for site in (OF_SEVERAL if several else OF_ONE) if place_of(job, site)), OF_ONE[0])
        yield _finding(
            job,
            Message(
                "a capacity factor of {capacity} does not work with {odd} load balancing", capacity=capacity, odd=odd
            ),
            site,
            CAPACITY,
            TYPES,
        )


def _finding(job: Job, message: str, site: str, *names: str) -> Finding:
    places = typed(job, *names)
    related = tuple(place for value in places[1:] for place in value.related)
    return Finding(
        message,
        span=job.place(*places),
        related=related,
        key=places[0].key if places else (),
        upstream=place_of(job, site),
    )
