"""Checks that the configuration of an mcore network makes on layer counts and limits, in graph and pynative mode."""

from preflight.dialects.mindformers.graph_value_kinds import WHOLE_FROM_1
from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.lint.value_kinds import SWITCH
from preflight.rules.mindformers.shared_conditions import a, context, mcore, pipeline, tensor, training

MINDFORMERS = ConstraintSet("mindformers")
PYNATIVE = ConstraintSet("pynative")
pynative = Handles(names())
WHY = "the network's configuration rejects these settings"

for fields, net, built, added in (
    (a, "mcore", all_of(mcore, training), MINDFORMERS),
    (pynative, "net", pynative["net.num_layers"].is_set, PYNATIVE),
):
    layers, interval = fields[f"{net}.num_layers"], fields[f"{net}.nope_layer_interval"]
    first, second = fields[f"{net}.num_encoder_layers"], fields[f"{net}.num_decoder_layers"]
    clamp, activation = fields[f"{net}.activation_func_clamp_value"], fields[f"{net}.hidden_act"]
    added.add(
        refuse(
            "plain-layer-interval",
            all_of(
                built,
                fields[f"{net}.position_embedding_type"] != "none",
                interval.is_set,
                ~interval.is_a(WHOLE_FROM_1),
            ),
            message=f"nope_layer_interval is {{{net}.nope_layer_interval}}; it must be a positive integer",
            why=WHY,
            at=(interval,),
        ),
        refuse(
            "clamp-without-experts",
            all_of(
                *(built, clamp.is_set, activation.is_in("swiglu", "fusedswiglu"), fields[f"{net}.gated_linear_unit"]),
                fields[f"{net}.num_moe_experts"].is_none,
            ),
            message=f"activation_func_clamp_value is given for {{{net}.hidden_act}}, but the model has no experts",
            why="only expert layers clamp their activations",
            at=(clamp,),
        ),
        refuse(
            "encoder-decoder-sum",
            all_of(built, first > 0, second > 0, first + second != layers),
            message=(
                f"{{{net}.num_encoder_layers}} encoder + {{{net}.num_decoder_layers}} decoder layers must equal the "
                f"{{{net}.num_layers}} layers of the model"
            ),
            why=WHY,
            at=(first, second, layers),
        ),
    )
del added  # no third set

_alone = all_of(a["use_parallel"].is_a(SWITCH), ~a["use_parallel"])
_experts, _heads = a["mcore.num_moe_experts"], a["mcore.num_attention_heads"]
_hashed = all_of(mcore, training, a["mcore.moe_n_hash_layers"] > 0)
MINDFORMERS.add(
    refuse(
        "hash-layers",
        all_of(_hashed, a["mcore.moe_n_hash_layers"] > a["mcore.num_layers"]),
        message="{mcore.moe_n_hash_layers} hash layers exceed the model's {mcore.num_layers} layers",
        why=WHY,
        at=(a["mcore.moe_n_hash_layers"], a["mcore.num_layers"]),
    ),
    refuse(
        "hash-without-experts",
        all_of(_hashed, a["mcore.num_moe_experts"].is_none),
        message="moe_n_hash_layers is {mcore.moe_n_hash_layers}, but hash layers need experts, and the model has none",
        why="hash routing needs experts to send tokens to",
        at=(a["mcore.moe_n_hash_layers"],),
    ),
    refuse(
        "dispatcher-alone",
        all_of(mcore, training, _alone, _experts.is_set, a["mcore.moe_token_dispatcher_type"] != "alltoall"),
        message=(
            "without use_parallel, experts need moe_token_dispatcher_type alltoall, not "
            "{mcore.moe_token_dispatcher_type}"
        ),
        why="the expert layer cannot be built",
        at=(a["mcore.moe_token_dispatcher_type"],),
        fixes=(put(a["mcore.moe_token_dispatcher_type"], "alltoall"),),
    ),
    refuse(
        "sequence-split-balancing",
        all_of(
            *(mcore, training, _experts.is_set, a["parallel_config.seq_split_num"] > 1, pipeline == 1),
            a["mcore.moe_router_load_balancing_type"] == "seq_aux_loss",
        ),
        message="seq_split_num {parallel_config.seq_split_num} does not work with load balancing seq_aux_loss",
        why="the router cannot be built",
        at=(a["parallel_config.seq_split_num"], a["mcore.moe_router_load_balancing_type"]),
        fixes=(put(a["parallel_config.seq_split_num"], 1),),
    ),
    divides(
        "ulysses-heads-network",
        context * tensor,
        _heads,
        when=all_of(mcore, training, context > 1, a["parallel_config.context_parallel_algo"] == "ulysses_cp"),
        message="{mcore.num_attention_heads} attention heads are not divisible by {ranks} ranks (tensor × Ulysses)",
        why="every rank must hold whole heads, so the attention cannot be built",
        after=("mindformers/ulysses-heads",),
        at=(context, tensor, _heads),
        shows={"ranks": context * tensor},
        layout=True,
    ),
    refuse(
        "hash-pipeline",
        all_of(_hashed, pipeline > 1),
        message=(
            "{mcore.moe_n_hash_layers} hash layers do not work with pipeline_stage {parallel_config.pipeline_stage}"
        ),
        why="release 2.0 supports hash routing only without a pipeline",
        at=(a["mcore.moe_n_hash_layers"], pipeline),
    ),
)
