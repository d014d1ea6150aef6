"""Model configurations that only earlier releases reject."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, gated
from preflight.source.finding import Safety

REFUSED = "Megatron rejects the model configuration at startup"
MEGATRON = ConstraintSet("megatron", why=REFUSED)
CAPACITY = a.moe_expert_capacity_factor
BALANCING = a.moe_router_load_balancing_type
DISPATCHER = a.moe_token_dispatcher_type
RANK_CAPACITY = a.moe_expert_rank_capacity_factor
NET = a.experimental_attention_variant == "gated_delta_net"
INFERENCE_EXPERTS = all_of(a.transformer_impl == "inference_optimized", a.num_experts.is_set)
SPARSE = a.experimental_attention_variant == "dsa"

MEGATRON.add(
    refuse(
        "capacity-without-alltoall",
        all_of(CAPACITY.is_set, ~DISPATCHER.is_in("alltoall", "alltoall_seq")),
        message=(
            "--moe-expert-capacity-factor {moe_expert_capacity_factor} needs the alltoall dispatcher, not "
            "{moe_token_dispatcher_type}"
        ),
        why="in these releases, only alltoall can drop tokens, so " + REFUSED,
        fixes=(put(DISPATCHER, "alltoall"), drop(CAPACITY)),
    ),
    requires(
        "router-padding-without-fp8",
        a.moe_router_padding_for_fp8,
        a.fp8.is_set,
        message="--moe-router-padding-for-fp8 needs --fp8-format",
        at=(a.moe_router_padding_for_fp8,),
        fixes=(drop(a.moe_router_padding_for_fp8, safety=Safety.SAFE),),
    ),
    refuse(
        "router-padding-with-dispatcher",
        all_of(a.moe_router_padding_for_fp8, DISPATCHER.is_in("allgather", "alltoall_seq")),
        message="--moe-router-padding-for-fp8 does not work with the dispatcher {moe_token_dispatcher_type}",
        at=(DISPATCHER, a.moe_router_padding_for_fp8),
        fixes=(put(DISPATCHER, "alltoall"),),
    ),
    refuse(
        "rank-capacity-without-fused-hybridep",
        all_of(
            RANK_CAPACITY.is_set,
            any_of(~a.use_transformer_engine_op_fuser, a.moe_flex_dispatcher_backend != "hybridep"),
        ),
        message=(
            "--moe-expert-rank-capacity-factor {moe_expert_rank_capacity_factor} needs "
            "--use-transformer-engine-op-fuser and --moe-flex-dispatcher-backend hybridep"
        ),
        at=(RANK_CAPACITY,),
        fixes=(drop(RANK_CAPACITY),),
    ),
    refuse(
        "grouped-weight-without-mxfp8",
        all_of(a.moe_single_grouped_weight, any_of(a.fp8.is_none, a.fp4.is_set, a.fp8_recipe != "mxfp8")),
        message="--moe-single-grouped-weight needs fp8 with the mxfp8 recipe",
        at=(a.moe_single_grouped_weight, a.fp8_recipe),
    ),
    requires(
        "grouped-weight-without-fuser",
        a.moe_single_grouped_weight,
        a.use_transformer_engine_op_fuser,
        message="--moe-single-grouped-weight needs --use-transformer-engine-op-fuser",
        at=(a.moe_single_grouped_weight,),
    ),
    refuse(
        "expert-overlap-with-predictions",
        all_of(a.overlap_moe_expert_parallel_comm, a.mtp_num_layers.is_set, a.mtp_num_layers != 1),
        message="--overlap-moe-expert-parallel-comm works only with 1 prediction layer, not {mtp_num_layers}",
        at=(a.mtp_num_layers, a.overlap_moe_expert_parallel_comm),
        fixes=(put(a.mtp_num_layers, 1), drop(a.overlap_moe_expert_parallel_comm)),
    ),
    refuse(
        "expert-overlap-with-prediction-on-one-stage",
        all_of(a.overlap_moe_expert_parallel_comm, a.mtp_num_layers == 1, a.pipeline_model_parallel_size <= 1),
        message="--overlap-moe-expert-parallel-comm with a prediction layer needs a pipeline of more than 1 stage",
        at=(a.overlap_moe_expert_parallel_comm, a.mtp_num_layers),
        layout=True,
    ),
    refuse(
        "stage-accounting-with-router-loss",
        all_of(
            any_of(a.account_for_embedding_in_pipeline_split, a.account_for_loss_in_pipeline_split),
            a.num_experts.is_set,
            any_of(BALANCING != "none", a.moe_z_loss_coeff.is_set),
        ),
        message="embedding and loss cannot be counted as pipeline layers while the router has a loss",
        why="this release can only average the losses over equal stages, so the run fails at startup",
        at=(a.account_for_embedding_in_pipeline_split, a.account_for_loss_in_pipeline_split),
    ),
    refuse(
        "delta-net-with-context-parallel",
        all_of(NET, a.context_parallel_size != 1),
        message=(
            "the gated delta net does not work with a context-parallel size of {context_parallel_size} in this release"
        ),
        at=(a.context_parallel_size, a.experimental_attention_variant),
        layout=True,
    ),
    refuse(
        "sparse-attention-with-context-parallel",
        all_of(SPARSE, a.context_parallel_size != 1),
        message=(
            "sparse attention (dsa) does not work with a context-parallel size of {context_parallel_size} in this "
            "release"
        ),
        at=(a.context_parallel_size, a.experimental_attention_variant),
        layout=True,
    ),
    refuse(
        "gated-experts-for-inference",
        all_of(INFERENCE_EXPERTS, gated),
        message=(
            "--transformer-impl inference_optimized does not support gated experts (--swiglu, --quick-geglu) in this "
            "release"
        ),
        at=(a.transformer_impl, a.swiglu, a.quick_geglu),
        fixes=(put(a.transformer_impl, "transformer_engine"),),
    ),
    refuse(
        "uneven-stages-with-virtual-stages",
        all_of(
            a.num_layers_per_virtual_pipeline_stage.is_set,
            any_of(a.decoder_first_pipeline_num_layers.is_set, a.decoder_last_pipeline_num_layers.is_set),
        ),
        message="stages of different sizes cannot be split into virtual stages in this release",
        why="no earlier check catches this, so every rank fails when the model is built",
        fixes=(drop(a.num_layers_per_virtual_pipeline_stage),),
        unless_framework="mindspeed",
    ),
    refuse(
        "gated-experts-with-local-graphs",
        all_of(INFERENCE_EXPERTS, gated, a.cuda_graph_impl == "local"),
        message=(
            "--transformer-impl inference_optimized does not support local CUDA graphs of gated experts in this release"
        ),
        at=(a.cuda_graph_impl, a.transformer_impl),
        fixes=(drop(a.cuda_graph_impl), put(a.transformer_impl, "transformer_engine")),
    ),
    refuse(
        "grouped-back-end-with-local-graphs",
        all_of(INFERENCE_EXPERTS, a.inference_grouped_gemm_backend == "te", a.cuda_graph_impl == "local"),
        message="--inference-grouped-gemm-backend te does not work with local CUDA graphs",
        at=(a.inference_grouped_gemm_backend, a.cuda_graph_impl),
        fixes=(put(a.inference_grouped_gemm_backend, "torch"), drop(a.cuda_graph_impl)),
    ),
)
