"""A module to recompute, offload or shard does not exist.

## What it does
Compares the names in `--recompute-modules`, `--offload-modules` and `--gtp-remat-opt-in-modules` with the modules that
this version of Megatron supports.

## Why is this bad?
Megatron rejects the model configuration at startup.

## Example
    --recompute-granularity selective --recompute-modules attention

Use instead: `--recompute-modules core_attn`.

## Fix safety
The fix is only offered, because the similar name is a guess at the intended one.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py
"""

from collections.abc import Iterator, Mapping

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.option_names import core, place_of, read, typed
from preflight.run.version_ranges import matches
from preflight.source.finding import Kind
from preflight.source.spelling import nearest

RECOMPUTED = {
    "": ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe"),
    ">=0.14": ("shared_experts",),
    ">=0.19": ("gdn_norm_out",),
    ">=0.20": ("gdp_in_proj", "gdp_qkv", "mhc"),
}
"""Modules, with the releases that support them."""
OFFLOADED = {
    "": ("core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "mlp_norm", "qkv_linear"),
    ">=0.19": ("fused_group_mlp",),
    ">=0.20": ("gdp_qkv",),
}
SHARDED = {"": ("moe_latent_proj",)}
ON_RELEASES = ("megatron", "mindspeed", "mindspeed-llm")
"""Programs on a release of Megatron; others build on a commit between two releases, which may have what the next has."""


@rule(
    severity=Severity.ERROR,
    id="megatron/unknown-module",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("recompute_modules", "offload_modules", "gtp_remat_opt_in_modules"),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    yield from _module(job, "recompute_modules", RECOMPUTED, "d448041de4", ("recompute_granularity", "selective"))
    if not matches(core(job), "<0.13"):
        yield from _module(
            job, "offload_modules", OFFLOADED, "5b6dfe2be9", ("fine_grained_activation_offloading", True)
        )
        yield from _module(job, "gtp_remat_opt_in_modules", SHARDED, "534938afa2", None)


def _module(
    job: Job, name: str, known: Mapping[str, tuple[str, ...]], site: str, when: tuple[str, object] | None
) -> Iterator[Finding | Unverified]:
    allowed = tuple(
        module for since, some in known.items() if not since or matches(core(job), since) for module in some
    )
    if not (written := typed(job, name)):
        return
    if isinstance(values := read(job, name, when[0] if when else name), Unverified):
        yield values
        return
    modules, state = values
    if when is not None and state != when[1]:
        return
    newer = () if job.target.framework in ON_RELEASES else tuple(one for some in known.values() for one in some)
    for module in dict.fromkeys(modules or ()):
        if module not in allowed and module not in newer:
            near = nearest(str(module), allowed, 0.4)
            hint = (
                Message("did you mean {near}?", near=near)
                if near
                else Message("it must be one of {allowed}", allowed=tuple(allowed))
            )
            flag = job.arguments.spell(name)
            yield Finding(
                Message("{flag} has no module {module!r}; {hint}", flag=flag, module=module, hint=hint),
                span=job.place(*written),
                key=written[0].key,
                upstream=place_of(job, site),
            )
