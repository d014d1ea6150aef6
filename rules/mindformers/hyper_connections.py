"""Requirements of hyper-connections (several residual streams) in graph mode and pynative mode."""

from preflight.dialects.mindformers.graph_value_kinds import ABOVE_0, REAL, WHOLE_FROM_0, WHOLE_FROM_1
from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.rules.mindformers.shared_conditions import a, mcore, training

MINDFORMERS = ConstraintSet("mindformers")
PYNATIVE = ConstraintSet("pynative")
pynative = Handles(names())
WHY = "the network's configuration rejects these settings"

for fields, net, built, added in (
    (a, "mcore", all_of(mcore, training), MINDFORMERS),
    (pynative, "net", pynative["net.num_layers"].is_set, PYNATIVE),
):
    switch, head = fields[f"{net}.enable_hyper_connections"], fields[f"{net}.enable_hc_head"]
    on = all_of(built, switch)
    streams, rounds = fields[f"{net}.num_residual_streams"], fields[f"{net}.mhc_sinkhorn_iterations"]
    gate, epsilon = fields[f"{net}.mhc_init_gating_factor"], fields[f"{net}.mhc_layernorm_epsilon"]
    added.add(
        refuse(
            "hyper-head",
            all_of(built, head, ~switch),
            message="enable_hc_head needs enable_hyper_connections",
            why=WHY,
            at=(head, switch),
            fixes=(put(switch, True),),
        ),
        refuse(
            "hyper-streams",
            all_of(on, ~streams.is_a(WHOLE_FROM_1)),
            message=f"num_residual_streams is {{{net}.num_residual_streams}}; it must be a positive integer",
            why=WHY,
            at=(streams,),
        ),
        refuse(
            "hyper-rounds",
            all_of(on, ~rounds.is_a(WHOLE_FROM_0)),
            message=(
                f"mhc_sinkhorn_iterations is {{{net}.mhc_sinkhorn_iterations}}; it must be a non-negative integer"
            ),
            why=WHY,
            at=(rounds,),
        ),
        refuse(
            "hyper-rounds-none",
            all_of(on, rounds == 0),
            message="mhc_sinkhorn_iterations is 0, but this release needs at least 1",
            why="releases from 2.1 on accept 0",
            at=(rounds,),
        ),
        refuse(
            "hyper-gate",
            all_of(on, ~gate.is_a(REAL)),
            message=f"mhc_init_gating_factor is {{{net}.mhc_init_gating_factor}}; it must be a number",
            why=WHY,
            at=(gate,),
        ),
        refuse(
            "hyper-epsilon",
            all_of(on, ~epsilon.is_a(ABOVE_0)),
            message=f"mhc_layernorm_epsilon is {{{net}.mhc_layernorm_epsilon}}; it must be a number above 0",
            why=WHY,
            at=(epsilon,),
        ),
    )
del added  # no third set
