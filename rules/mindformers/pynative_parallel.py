"""Checks that the pynative trainer makes on the parallel layout, mostly for runs with more than one device."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, divides, one_of, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of

a = Handles(names())
PYNATIVE = ConstraintSet("pynative")
DIMS = "mindformers/pynative/distributed/parallel_dims.py"
PIPELINE = "mindformers/pynative/distributed/pipeline_parallel.py"
GPT = "mindformers/pynative/base_models/gpt/parallelize.py"
TRAINER = "mindformers/pynative/trainer/trainer.py"
DEGREES = (
    "tensor_parallel, pipeline_parallel and context_parallel are {parallelism.tensor_parallel}, "
    "{parallelism.pipeline_parallel} and {parallelism.context_parallel}; each must be at least 1"
)
many = a["distributed"]
shard, context, tensor = (
    a["parallelism.data_parallel_shard"],
    a["parallelism.context_parallel"],
    a["parallelism.tensor_parallel"],
)
pipeline, expert = a["parallelism.pipeline_parallel"], a["parallelism.expert_parallel"]
sparse = a["net.experimental_attention_variant"].is_in("dsa", "dsv4_hybrid")

PYNATIVE.add(
    refuse(
        "degree-zero",
        any_of(tensor == 0, pipeline == 0, context == 0),
        message=DEGREES,
        why="the trainer divides the number of devices by the product of these sizes",
    ),
    refuse(
        "degree-negative",
        any_of(tensor < 0, pipeline < 0, context < 0),
        message=DEGREES,
        why="the data-parallel size becomes negative, or the mesh cannot be built",
    ),
    refuse(
        "expert-degree",
        many & (expert < 1),
        message="expert_parallel is {parallelism.expert_parallel}; it must be at least 1",
        why="the mesh cannot be built",
        at=(expert,),
        fixes=(put(expert, 1),),
    ),
    refuse(
        "shard-zero",
        a["parallelism.data_parallel_shard"].written == 0,
        message="data_parallel_shard is 0; it must be at least 1, or -1 for the whole data-parallel size",
        why="the trainer divides by this size",
        fixes=(put(shard, -1),),
    ),
    refuse(
        "dense-shard",
        many
        & a["parallelism.dense_fsdp_shard_size"].is_set
        & any_of(
            a["parallelism.dense_fsdp_shard_size"] < 1, shard * context % a["parallelism.dense_fsdp_shard_size"] != 0
        ),
        message=(
            "dense_fsdp_shard_size {parallelism.dense_fsdp_shard_size} is not a divisor of the {domain} ranks (FSDP "
            "shard × context parallel)"
        ),
        why="the mesh of the dense weights cannot be built",
        at=(a["parallelism.dense_fsdp_shard_size"],),
        shows={"domain": shard * context},
        layout=True,
    ),
    refuse(
        "schedule",
        many & (pipeline > 1) & ~a["schedule"].is_in("1f1b", "interleaved_1f1b", "gpipe"),
        message=(
            "pipeline_parallel_schedule is {parallelism.pipeline_parallel_schedule}; it must be 1f1b, "
            "interleaved_1f1b or gpipe"
        ),
        why="no schedule with this name is registered when the stages are built",
        at=(a["parallelism.pipeline_parallel_schedule"],),
    ),
    refuse(
        "interleaved-without-chunks",
        many
        & (pipeline > 1)
        & (a["schedule"] == "interleaved_1f1b")
        & (a["parallelism.pipeline_parallel_interleave_num"] <= 1),
        message=(
            "interleaved_1f1b needs pipeline_parallel_interleave_num above 1, not "
            "{parallelism.pipeline_parallel_interleave_num}"
        ),
        why="the schedule is rejected when the stages are built",
        at=(
            a["parallelism.pipeline_parallel_schedule"],
            a["parallelism.pipeline_parallel_interleave_num"],
        ),
        fixes=(put(a["parallelism.pipeline_parallel_schedule"], "1f1b"),),
    ),
    refuse(
        "pipeline-model",
        many & (pipeline > 1) & (a["model.model_type"] == "qwen3"),
        message=(
            "pipeline_parallel {parallelism.pipeline_parallel} does not work with qwen3, whose pynative model cannot "
            "be built in parts"
        ),
        why="building the first stage raises a TypeError",
        at=(pipeline, a["model.model_type"]),
        layout=True,
    ),
    one_of(
        "dispatcher",
        a["parallelism.moe_token_dispatcher_type"],
        ("alltoall", "alltoall_deredundancy"),
        when=all_of(many, expert > 1, a["net.num_moe_experts"].is_set),
        message=(
            "moe_token_dispatcher_type is {parallelism.moe_token_dispatcher_type}; it must be alltoall or "
            "alltoall_deredundancy"
        ),
        why=(
            "the run fails when the experts are sharded. Note that graph mode spells the second name "
            "alltoall_deredundency"
        ),
        at=(a["parallelism.moe_token_dispatcher_type"],),
    ),
    refuse(
        "latent-query",
        many & (tensor > 1) & (a["net.multi_latent_attention"] == True) & a["net.q_lora_rank"].is_none & ~sparse,
        message="latent attention with tensor_parallel {parallelism.tensor_parallel} needs q_lora_rank",
        why="without query compression, the full sequence of queries cannot be computed",
        at=(a["net.q_lora_rank"], tensor),
        layout=True,
    ),
    divides(
        "query-groups",
        tensor,
        a["net.num_query_groups"],
        when=all_of(many, tensor > 1, a["net.multi_latent_attention"] == False, ~sparse),
        message=(
            "the number of query groups, {net.num_query_groups}, is not divisible by tensor_parallel "
            "{parallelism.tensor_parallel}"
        ),
        why="every rank must hold whole groups of the fused projection, because groups are not copied",
        at=(tensor, a["net.num_query_groups"]),
        layout=True,
        after=("heads-not-divisible",),
    ),
    divides(
        "query-projection",
        tensor,
        a["net.num_attention_heads"] * a["net.v_head_dim"],
        when=all_of(many, tensor > 1, a["net.experimental_attention_variant"] == "dsv4_hybrid"),
        message=(
            "the query projection ({net.num_attention_heads} heads × {net.v_head_dim}) is not divisible by "
            "{parallelism.tensor_parallel} ranks"
        ),
        why="hybrid attention splits the projection, not its heads, so the run fails when the layers are sharded",
        at=(tensor, a["net.num_attention_heads"]),
        layout=True,
    ),
    refuse(
        "global-aux-loss",
        many
        & (tensor > 1)
        & (a["net.moe_router_load_balancing_type"] == "global_aux_loss")
        & a["net.num_moe_experts"].is_set,
        message="global_aux_loss does not work with tensor_parallel {parallelism.tensor_parallel}",
        why="the router would balance over sequence shards, which is not implemented",
        at=(
            a["net.moe_router_load_balancing_type"],
            tensor,
        ),
    ),
    one_of(
        "reshard-policy",
        a["parallelism.reshard_after_forward_policy"],
        ("always", "never", "default"),
        when=many,
        message=(
            "reshard_after_forward_policy is {parallelism.reshard_after_forward_policy}; it must be always, never "
            "or default"
        ),
        why="the run fails when FSDP is applied",
        at=(a["parallelism.reshard_after_forward_policy"],),
    ),
    refuse(
        "swap-with-pipeline",
        many & (a["swap.enable"] == True) & (pipeline > 1),
        message="swap does not work with pipeline_parallel {parallelism.pipeline_parallel}",
        why="the run fails when recomputation is set up",
        fixes=(put(a["swap.enable"], False),),
    ),
)
