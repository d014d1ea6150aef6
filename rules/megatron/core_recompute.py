"""Checks of activation recomputation: required and incompatible options."""

from preflight.lint.constraint import Change, ConstraintSet, Repair, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, delta_net, selective, selective_at_last
from preflight.source.finding import Safety, Severity

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
FULL = a.recompute_granularity == "full"
MHC = all_of(selective_at_last, a.recompute_modules.has("mhc"))

MEGATRON.add(
    refuse(
        "recompute-full-without-method",
        all_of(FULL, a.recompute_method.is_none),
        message="--recompute-granularity full needs --recompute-method, which is not set",
        why="the modules to recompute must be explicit, so Megatron rejects the model configuration at startup",
        fixes=(
            Repair(
                (Change(a.recompute_method, "uniform"), Change(a.recompute_num_layers, 1, optional=True)), Safety.SAFE
            ),
        ),
    ),
    refuse(
        "recompute-full-without-layers",
        all_of(FULL, a.recompute_num_layers.is_none),
        message="--recompute-granularity full needs --recompute-num-layers, which is not set",
        fixes=(put(a.recompute_num_layers, 1, safety=Safety.SAFE, when=a.recompute_method != "block"),),
        after=("megatron/recompute-full-without-method",),
    ),
    refuse(
        "recompute-selective-with-layers",
        all_of(selective, a.recompute_num_layers.is_set),
        message=(
            "selective recomputation selects modules, not layers, but --recompute-num-layers is {recompute_num_layers}"
        ),
        at=(a.recompute_num_layers, a.recompute_granularity),
        fixes=(drop(a.recompute_num_layers, safety=Safety.SAFE),),
        after=("megatron/recompute-selective-with-method",),
    ),
    conflicts(
        "distributed-activations-with-sequence-parallel",
        all_of(a.distribute_saved_activations, a.recompute_granularity.is_set),
        a.sequence_parallel,
        message=(
            "--distribute-saved-activations does not work with --sequence-parallel, which distributes them already"
        ),
        at=(a.distribute_saved_activations,),
        fixes=(drop(a.distribute_saved_activations, safety=Safety.SAFE),),
    ),
    requires(
        "recompute-moe-act-without-grouped-gemm",
        all_of(selective, a.recompute_modules.has("moe_act")),
        a.moe_grouped_gemm,
        message="recomputing moe_act needs grouped expert matmuls, but --moe-grouped-gemm is not set",
        why="only the grouped expert layer can drop its activation, so Megatron rejects the model configuration",
        at=(a.recompute_modules,),
    ),
    requires(
        "recompute-mla-without-mla",
        all_of(selective, a.recompute_modules.has("mla_up_proj")),
        a.multi_latent_attention,
        message="mla_up_proj can only be recomputed with latent attention, but --multi-latent-attention is not set",
        why="the module does not exist in this model, so Megatron rejects the model configuration",
        at=(a.recompute_modules,),
        fixes=(),
    ),
    requires(
        "recompute-gdn-without-gdn",
        all_of(selective, a.recompute_modules.has("gdn_norm_out")),
        delta_net,
        message=("gdn_norm_out can only be recomputed in a gated delta net, but the model has none"),
        why="the module does not exist in this model, so Megatron rejects the model configuration",
        at=(a.recompute_modules,),
    ),
    conflicts(
        "recompute-shared-experts-with-overlap",
        all_of(selective, a.recompute_modules.has("shared_experts"), a.moe_shared_expert_intermediate_size.is_set),
        a.moe_shared_expert_overlap,
        message="shared experts cannot both be recomputed and overlap with communication",
        why=(
            "an overlapped shared expert runs in pieces that cannot be replayed, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.moe_shared_expert_overlap, a.recompute_modules),
        fixes=(drop(a.moe_shared_expert_overlap, safety=Safety.SAFE),),
    ),
    refuse(
        "recompute-with-delayed-fp8",
        all_of(
            selective,
            a.fp8.is_set,
            any_of(a.recompute_modules.has("moe_act"), a.recompute_modules.has("layernorm")),
            a.fp8_recipe == "delayed",
        ),
        message="moe_act and layernorm cannot be recomputed under fp8 with the {fp8_recipe} recipe",
        why=(
            "delayed scaling keeps a history across passes, and a replay would corrupt it, so Megatron rejects the "
            "model configuration"
        ),
        at=(a.fp8_recipe, a.recompute_modules),
    ),
    refuse(
        "moe-layer-recompute-with-full",
        all_of(a.moe_layer_recompute, FULL),
        message=(
            "--moe-layer-recompute is a kind of selective recomputation, but --recompute-granularity is "
            "{recompute_granularity}"
        ),
        why="full recomputation already covers the expert layers, so Megatron rejects the model configuration",
        at=(a.moe_layer_recompute,),
        fixes=(drop(a.moe_layer_recompute, safety=Safety.SAFE),),
    ),
    requires(
        "recompute-mhc-without-mhc",
        MHC,
        a.enable_mhc_connections,
        message="mhc can only be recomputed with hyper-connections, but --enable-mhc-connections is not set",
        at=(a.recompute_modules,),
        fixes=(),
    ),
    refuse(
        "recompute-mhc-with-mlp",
        all_of(MHC, a.recompute_modules.has("mlp")),
        message="mhc and mlp cannot both be recomputed",
        why=(
            "nesting the checkpoints of the two modules in this way is not supported, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.recompute_modules,),
    ),
    refuse(
        "recompute-mhc-layers-not-positive",
        all_of(MHC, a.mhc_recompute_layer_num < 1),
        message="--mhc-recompute-layer-num is {mhc_recompute_layer_num}; it must be at least 1",
        at=(a.mhc_recompute_layer_num,),
        fixes=(drop(a.mhc_recompute_layer_num),),
    ),
    conflicts(
        "recompute-mhc-with-activation-offload",
        MHC,
        a.fine_grained_activation_offloading,
        message="mhc recomputation and fine-grained activation offloading cannot be combined yet",
        why=(
            "the recomputation hook runs before the offloaded chunk exists, so Megatron rejects the model configuration"
        ),
        at=(a.fine_grained_activation_offloading, a.recompute_modules),
        fixes=(),
    ),
    refuse(
        "recompute-method-without-granularity",
        all_of(
            a.recompute_granularity.is_none,
            any_of(a.recompute_method.given, a.recompute_num_layers.given),
            ~any_of(a.swap_attention, a.recompute_in_advance),
        ),
        message=(
            "nothing is recomputed, because --recompute-method and --recompute-num-layers have no effect without "
            "--recompute-granularity"
        ),
        why="the run keeps every activation, so it needs more memory than planned or runs out of memory",
        severity=Severity.WARNING,
        at=(a.recompute_method, a.recompute_num_layers),
        fixes=(put(a.recompute_granularity, "full"),),
    ),
)
