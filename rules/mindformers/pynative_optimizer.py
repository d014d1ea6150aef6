"""Checks that pynative optimizers make when they are built."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, in_range, one_of, put, refuse
from preflight.lint.expressions import Handles

a = Handles(names())
WHY = "the run fails when the optimizer is built"
PYNATIVE = ConstraintSet("pynative", why=WHY)
YES = True
ADAMW, MUON = "mindformers/pynative/optimizer/adamw.py", "mindformers/pynative/optimizer/muon.py"
BUILD = "mindformers/pynative/trainer/utils.py"
kind = a["optimizer.type"]
training = a["run_mode"] != "predict"
adam, muon = training & (kind == "AdamW"), training & (kind == "Muon")

PYNATIVE.add(
    one_of(
        "optimizer-type",
        kind,
        ("AdamW", "Muon"),
        when=training,
        message="optimizer.type is {optimizer.type}; it must be AdamW or Muon (with this exact spelling)",
        at=(kind,),
    ),
    in_range(
        "adam-eps",
        a["optimizer.eps"],
        low=0,
        when=adam,
        message="eps is {optimizer.eps}; it must not be negative",
        at=(a["optimizer.eps"],),
    ),
    refuse(
        "adam-decay",
        adam & (a["optimizer.weight_decay"] < 0),
        message="weight_decay is {optimizer.weight_decay}; it must not be negative",
        at=(a["optimizer.weight_decay"],),
    ),
    refuse(
        "adam-offload",
        adam & (a["optimizer.enable_cpu_offload"] == True),
        message="enable_cpu_offload is not supported by AdamW in pynative mode",
        at=(a["optimizer.enable_cpu_offload"],),
        fixes=(put(a["optimizer.enable_cpu_offload"], False),),
    ),
    refuse(
        "muon-model",
        muon & (a["net.multi_latent_attention"] == False),
        message="Muon works only with multi_latent_attention",
    ),
    refuse(
        "muon-swap",
        muon & (a["optimizer.swap"] == YES),
        message="Muon does not support swap",
        at=(a["optimizer.swap"],),
    ),
    refuse(
        "muon-communication",
        muon
        & ~a["optimizer.comm_strategy"].is_none
        & ~a["optimizer.comm_strategy"].is_in("allgather", "allgather_deredundency"),
        message=(
            "comm_strategy is {optimizer.comm_strategy}; it must be allgather or allgather_deredundency (with "
            "this exact spelling)"
        ),
        at=(a["optimizer.comm_strategy"],),
        fixes=(put(a["optimizer.comm_strategy"], "allgather_deredundency"),),
    ),
    refuse(
        "muon-steps",
        muon & (a["optimizer.ns_steps"] <= 0),
        message="ns_steps is {optimizer.ns_steps}; it must be positive",
        at=(a["optimizer.ns_steps"],),
    ),
    refuse(
        "muon-clip",
        muon & (a["optimizer.qk_clip_enabled"] != False) & (a["optimizer.qk_clip_threshold"] <= 0),
        message="qk_clip_threshold is {optimizer.qk_clip_threshold}; it must be positive",
        at=(a["optimizer.qk_clip_threshold"],),
    ),
)
