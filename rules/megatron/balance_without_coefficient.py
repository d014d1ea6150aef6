"""A loss that is to balance the experts has no weight.

## What it does
Points at `--moe-router-load-balancing-type` with auxiliary losses but without `--moe-aux-loss-coeff`: it is 0,
and the losses are not computed. An explicit coefficient of 0 is intended, and so is balancing by biases
(`--moe-router-enable-expert-bias`); both are silent.

## Why is this bad?
No message appears and nothing balances: tokens gather on few experts, which is seen, if at all, in the curves of a run
that is days old.

## Example
    --num-experts 64 --moe-router-load-balancing-type aux_loss

Use instead:

    --num-experts 64 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.01

## Fix safety
Unsafe, and only offered: another training result; 0.01 is the value of the first papers, newer models take less.

## References
Megatron-LM d98e8a6, megatron/core/transformer/moe/router.py, TopKRouter._apply_aux_loss
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import read
from preflight.source.finding import Kind

ROUTER = "megatron/core/transformer/moe/router.py"
LOSSES = ("aux_loss", "seq_aux_loss", "global_aux_loss")


@rule(
    severity=Severity.WARNING,
    id="megatron/balance-without-coefficient",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("moe_router_load_balancing_type",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Auxiliary losses whose coefficient is the default of 0."""
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
    named = [name for name in (kinds if isinstance(kinds, list) else [kinds]) if name in LOSSES]
    if not named or coefficient != 0 or not isinstance(experts, int) or experts < 2 or biased:
        return
    edits = job.arguments.put("moe_aux_loss_coeff", 0.01)
    yield Finding(
        Message("{kind} balances nothing: --moe-aux-loss-coeff is not given, and is 0", kind=named[0]),
        job.place(kind),
        key=kind.key,
        fix=Fix("set --moe-aux-loss-coeff 0.01", edits, offered=True) if edits else None,
    )
