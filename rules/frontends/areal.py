"""Checks made by AReaL: the actor layout, virtual stages, and adapters."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.areal import BACKEND, DERIVED, MEGATRON
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.source.finding import Safety

DIES = "the run fails when its trainer is created or its workers start"
AREAL = ConstraintSet("areal", why=DIES)
a = Handles(megatron_names() | names("areal") | DERIVED)
ALLOCATION = "areal/api/alloc_mode.py"
TEXT = getattr(a, BACKEND)
VIRTUAL, BRIDGE = getattr(a, f"{MEGATRON}virtual_pipeline_parallel_size"), getattr(a, f"{MEGATRON}bridge_type")

AREAL.add(
    refuse(
        "stages-of-experts",
        a.areal_expert_stages != a.pipeline_model_parallel_size,
        message=(
            "the experts have {areal_expert_stages} pipeline stages and attention has {pipeline_model_parallel_size}, "
            "but the two numbers must be equal"
        ),
        upstream=f"{ALLOCATION}:987",
        at=(TEXT,),
    ),
    refuse(
        "devices-of-experts",
        all_of(a.areal_experts_apart, a.areal_expert_devices != a.areal_devices),
        message=(
            "the experts use {areal_expert_devices} devices and attention uses {areal_devices}, but both must use the "
            "same devices"
        ),
        upstream=f"{ALLOCATION}:1027",
        at=(TEXT,),
        after=("areal/stages-of-experts",),
    ),
    refuse(
        "virtual-stages-without-pipeline",
        all_of(VIRTUAL > 1, a.pipeline_model_parallel_size == 1),
        message=(
            "virtual_pipeline_parallel_size is {areal_actor_megatron_virtual_pipeline_parallel_size}, but the actor "
            "has one pipeline stage"
        ),
        upstream=f"{ALLOCATION}:237",
        at=(VIRTUAL, TEXT),
        fixes=(put(VIRTUAL, 1, safety=Safety.SAFE),),
    ),
    refuse(
        "adapters-of-mbridge",
        all_of(a.areal_actor_use_lora, BRIDGE != "megatron-bridge"),
        message="actor.use_lora needs actor.megatron.bridge_type megatron-bridge, not {areal_actor_megatron_bridge_type}",
        upstream="areal/engine/megatron_engine.py:326",
        at=(a.areal_actor_use_lora, BRIDGE),
        fixes=(put(BRIDGE, "megatron-bridge"),),
    ),
)
