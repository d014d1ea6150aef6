"""Checks of expert load balancing."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.option_names import core, place_of, read, typed
from preflight.source.finding import Kind

TYPES, CORE_MOE_BALANCING_LOSSES, CAPACITY = (
    "moe_router_load_balancing_type",
    "moe_aux_loss_coeff",
    "moe_expert_capacity_factor",
)
DROPPING = {
    "0.20.0": ("aux_loss", "seq_aux_loss", "global_aux_loss", "none"),
    "0.12.1": ("aux_loss", "seq_aux_loss", "none"),
}

OF_ONE, OF_SEVERAL = ("fb8615c8ac", "657757815d", "f3ed62cdd0"), ("f21b65560c", "657757815d")
"""The upstream statements about a capacity factor, by release: with one type of load balancing, and with several."""


@rule(
    severity=Severity.ERROR,
    id="megatron/moe-balancing",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(TYPES, CORE_MOE_BALANCING_LOSSES, CAPACITY),
)
def core_moe_balancing(job: Job) -> Iterator[Finding | Unverified]:
    """The load-balancing type of the experts does not match its coefficients or the expert capacity.

    ## What it does
    Checks that `--moe-aux-loss-coeff` has as many values as `--moe-router-load-balancing-type` if the type has several
    values. Also checks that a capacity factor is not combined with sinkhorn or quantile balancing. A capacity factor
    works with auxiliary losses or without balancing.

    ## Why is this bad?
    Megatron rejects the model configuration at startup.

    ## Example
        --moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 0.01

    Use instead: one coefficient for each, such as `--moe-aux-loss-coeff 0.01 0.001`.

    ## References
    Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py
    """
    if not typed(job, TYPES, CORE_MOE_BALANCING_LOSSES, CAPACITY):
        return
    if isinstance(values := read(job, TYPES, CORE_MOE_BALANCING_LOSSES, CAPACITY), Unverified):
        yield values
        return
    kinds, losses, capacity = (value[0] if isinstance(value, list) and len(value) == 1 else value for value in values)
    several = isinstance(kinds, list)
    if several and (not isinstance(losses, list) or len(losses) != len(kinds)):
        given = len(losses) if isinstance(losses, list) else 1
        template = "{kinds} kinds of load balancing need {kinds} coefficients, not {given}"
        yield _finding(
            job, Message(template, kinds=len(kinds), given=given), "8b446c78b2", CORE_MOE_BALANCING_LOSSES, TYPES
        )
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


ROUTER = "megatron/core/transformer/moe/router.py"
BALANCE_WITHOUT_COEFFICIENT_LOSSES = ("aux_loss", "seq_aux_loss", "global_aux_loss")


@rule(
    severity=Severity.WARNING,
    id="megatron/balance-without-coefficient",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("moe_router_load_balancing_type",),
)
def balance_without_coefficient(job: Job) -> Iterator[Finding | Unverified]:
    """A load-balancing loss has a coefficient of 0 because none is given.

    ## What it does
    Reports `--moe-router-load-balancing-type` with auxiliary losses but without `--moe-aux-loss-coeff`. The coefficient
    is then 0, and the losses are not computed. An explicit coefficient of 0 and balancing by biases
    (`--moe-router-enable-expert-bias`) are considered intentional and are not reported.

    ## Why is this bad?
    There is no message, and nothing balances the experts. Tokens concentrate on a few experts, which becomes visible,
    if at all, only in the curves of a run that has trained for days.

    ## Example
        --num-experts 64 --moe-router-load-balancing-type aux_loss

    Use instead:

        --num-experts 64 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.01

    ## Fix safety
    Unsafe and only offered, because it changes the training result; 0.01 is the value in the first papers, and newer
    models use less.

    ## References
    Megatron-LM d98e8a6, megatron/core/transformer/moe/router.py, TopKRouter._apply_aux_loss
    """
    kind = job.arguments.given("moe_router_load_balancing_type")
    if kind is None or job.arguments.given("moe_aux_loss_coeff") is not None:
        return
    if isinstance(
        values := read(
            job, "moe_router_load_balancing_type", "moe_aux_loss_coeff", "num_experts", "moe_router_enable_expert_bias"
        ),
        Unverified,
    ):
        yield values
        return
    kinds, coefficient, experts, biased = values
    named = [
        name for name in (kinds if isinstance(kinds, list) else [kinds]) if name in BALANCE_WITHOUT_COEFFICIENT_LOSSES
    ]
    if not named or coefficient != 0 or not isinstance(experts, int) or experts < 2 or biased:
        return
    edits = job.arguments.put("moe_aux_loss_coeff", 0.01)
    yield Finding(
        Message("{kind} balances nothing, because --moe-aux-loss-coeff is not given and defaults to 0", kind=named[0]),
        job.place(kind),
        key=kind.key,
        fix=Fix("set --moe-aux-loss-coeff 0.01", edits, offered=True) if edits else None,
    )
