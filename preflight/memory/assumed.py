"""Sizes that a run leaves open, of the published model that its paths name."""

from __future__ import annotations

from preflight.memory.ranges import with_values
from preflight.run.plan import Plan
from preflight.run.value import Value, assumed

LATENT = {"q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora"}
LATENT |= {"qk_nope_dim": "nope", "qk_rope_dim": "rope", "v_dim": "v"}
FILLED = ("layers", "hidden", "heads", "query_groups", "head_dim", "ffn", "vocab", "experts", "top_k", "expert_ffn")


def with_published(plan: Plan) -> Plan:
    """The plan with the sizes of the model that is named, where it has none of its own."""
    open_ = [name for name in FILLED if not getattr(plan.model, name).known]
    names = plan.model.names.raw
    if not open_ or not isinstance(names, tuple) or not names:
        return plan
    from preflight.run.models import published

    model = published(names)
    if model is None:
        return plan
    note = f"{model.name} is the model that a path names"
    found: dict[str, Value] = {f"model.{n}": assumed(model.sizes[n], note) for n in open_ if n in model.sizes}
    # what every published model of the table is, or has
    plain: dict[str, int | None] = {"experts": None, "latent": "kv_lora" in model.traits, "gated": True}
    if plain["latent"]:
        plain |= {name: model.traits.get(trait) for name, trait in LATENT.items()}
    missing = [n for n in plain if n not in model.sizes and getattr(plan.model, n).because.removeprefix("not given")]
    found |= {f"model.{name}": assumed(plain[name], note) for name in missing}
    layers, stages = model.sizes["layers"], plan.layout.pipeline.raw
    if "layers" in open_ and isinstance(stages, int) and stages > 0 and not layers % stages:
        found["layout.stages"] = assumed(((layers // stages,) * stages,), note)
    return with_values(plan, found)
