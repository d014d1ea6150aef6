"""A module to recompute, offload or shard that does not exist.

## What it does
Compares the names in `--recompute-modules`, `--offload-modules` and `--gtp-remat-opt-in-modules` with those that this
version of Megatron knows.

## Why is this bad?
The model configuration is refused at start-up.

## Example
    --recompute-granularity selective --recompute-modules attention

Use instead `--recompute-modules core_attn`.

## Fix safety
No fix by itself: a close name is a guess about what was meant.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py:1959, :2144, :2205; core_v0.12.1 :730
"""

from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.rules.megatron.core_names import CONFIG
from preflight.rules.megatron.core_reading import core, read, typed

OLD = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe")
RECOMPUTED = (*OLD, "shared_experts", "gdn_norm_out", "gdp_in_proj", "gdp_qkv", "mhc")
OFFLOADED = ("core_attn", "attn_proj", "expert_fc1", "fused_group_mlp", "moe_act", "attn_norm", "mlp_norm", "qkv_linear", "gdp_qkv")
SHARDED = ("moe_latent_proj",)


@rule(severity=Severity.ERROR, id="megatron/unknown-module", frameworks=("megatron",), upstream=tuple(f"{CONFIG}:{n}" for n in (1959, 2144, 2205)))
def check(job: Job) -> Iterator[Finding | Unverified]:
    old = core(job) == "0.12.1"
    recomputed, line = (OLD, 730) if old else (RECOMPUTED, 1959)
    yield from _module(job, "recompute_modules", recomputed, line, ("recompute_granularity", "selective"))
    if not old:
        yield from _module(job, "offload_modules", OFFLOADED, 2144, ("fine_grained_activation_offloading", True))
        yield from _module(job, "gtp_remat_opt_in_modules", SHARDED, 2205, None)


def _module(job: Job, name: str, allowed: tuple[str, ...], line: int, when: tuple[str, object] | None) -> Iterator[Finding | Unverified]:
    if not (written := typed(job, name)):
        return
    if isinstance(values := read(job, name, when[0] if when else name), Unverified):
        yield values
        return
    modules, state = values
    if when is not None and state != when[1]:
        return
    for module in dict.fromkeys(modules or ()):
        if module not in allowed:
            near = get_close_matches(str(module), allowed, 1, 0.4)
            hint = f"did you mean {near[0]}" if near else f"there is {', '.join(allowed)}"
            flag = job.arguments.spell(name)
            yield Finding(f"{flag} knows no module {module!r}; {hint}", span=job.place(*written), key=written[0].key, upstream=f"{CONFIG}:{line}")
