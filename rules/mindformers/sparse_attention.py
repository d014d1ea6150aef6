"""Requirements of DeepSeek sparse attention (DSA) in graph mode and pynative mode, which share one configuration."""

from preflight.dialects.mindformers.graph_value_kinds import Leads
from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.lint.value_kinds import ListOf, one_of, whole
from preflight.rules.mindformers.shared_conditions import a, mcore, pipeline, scheduler, training

MINDFORMERS = ConstraintSet("mindformers")
PYNATIVE = ConstraintSet("pynative")
pynative = Handles(names())
WHY = "the network's configuration rejects these settings"
_SIZES = {"kv_lora_rank": 512, "qk_pos_emb_head_dim": 64, "dsa_indexer_head_dim": 128, "dsa_indexer_n_heads": 64}
_LAYOUT = ListOf(one_of("full", "shared", any_case=True))
_FIELDS = (
    *("experimental_attention_variant", "multi_latent_attention", "use_flash_attention", "num_layers"),
    *("dsa_warmup_layerwise_backward", "dsa_indexer_use_sparse_loss", "dsa_index_share_loss"),
    *("dsa_index_topk_freq", "dsa_indexer_types", *_SIZES),
)


for fields, net, built, added in (
    (a, "mcore", all_of(mcore, training), MINDFORMERS),
    (pynative, "net", pynative["net.num_layers"].is_set, PYNATIVE),
):
    n = {name: fields[f"{net}.{name}"] for name in _FIELDS}
    on = all_of(built, n["experimental_attention_variant"] == "dsa")
    off = all_of(built, n["experimental_attention_variant"] != "dsa")
    latent = all_of(on, n["multi_latent_attention"])
    types, share = n["dsa_indexer_types"], n["dsa_index_topk_freq"]
    by_count = all_of(latent, types.is_none, share > 1)
    added.add(
        refuse(
            "sparse-latent",
            all_of(on, ~n["multi_latent_attention"]),
            message="experimental_attention_variant dsa needs multi_latent_attention",
            why=WHY,
            at=(n["experimental_attention_variant"], n["multi_latent_attention"]),
        ),
        refuse(
            "sparse-flash",
            all_of(on, ~n["use_flash_attention"]),
            message="experimental_attention_variant dsa needs use_flash_attention",
            why=WHY,
            at=(n["use_flash_attention"], n["experimental_attention_variant"]),
            fixes=(put(n["use_flash_attention"], True),),
        ),
        refuse(
            "sparse-warm-up",
            all_of(on, n["dsa_warmup_layerwise_backward"], n["dsa_indexer_use_sparse_loss"]),
            message="dsa_warmup_layerwise_backward does not work with dsa_indexer_use_sparse_loss",
            why="the backward pass runs layer by layer only in the dense warm-up stage",
            at=(n["dsa_warmup_layerwise_backward"], n["dsa_indexer_use_sparse_loss"]),
        ),
        refuse(
            "sparse-warm-up-elsewhere",
            all_of(off, n["dsa_warmup_layerwise_backward"]),
            message="dsa_warmup_layerwise_backward needs experimental_attention_variant dsa",
            why=WHY,
            at=(n["dsa_warmup_layerwise_backward"],),
        ),
        refuse(
            "sparse-sharing-elsewhere",
            all_of(off, any_of(share > 1, types.is_set)),
            message="layers share the indices of sparse attention, but experimental_attention_variant is not dsa",
            why=WHY,
            at=(share, types),
        ),
        refuse(
            "sparse-sizes",
            all_of(latent, any_of(*(n[name] != size for name, size in _SIZES.items()))),
            message=(
                f"sparse attention is built for kv_lora_rank 512, rotary width 64 and 64 index heads of 128, not for "
                f"{{{net}.kv_lora_rank}}, {{{net}.qk_pos_emb_head_dim}} and {{{net}.dsa_indexer_n_heads}} of "
                f"{{{net}.dsa_indexer_head_dim}}"
            ),
            why="the sparse-attention kernels support only these sizes",
            at=tuple(n[name] for name in _SIZES),
        ),
        refuse(
            "sparse-share-loss",
            all_of(latent, ~n["dsa_index_share_loss"].is_in("leader", "served")),
            message=f"dsa_index_share_loss is {{{net}.dsa_index_share_loss}}; it must be leader or served",
            why=WHY,
            at=(n["dsa_index_share_loss"],),
        ),
        refuse(
            "sparse-share-count",
            all_of(latent, ~share.is_a(whole(1).or_null())),
            message=f"dsa_index_topk_freq is {{{net}.dsa_index_topk_freq}}; it must be a positive integer",
            why=WHY,
            at=(share,),
        ),
        divides(
            "sparse-share-groups",
            share,
            n["num_layers"],
            when=by_count,
            message=(
                f"{{{net}.num_layers}} layers cannot be divided into groups of {{{net}.dsa_index_topk_freq}} that share "
                "their indices"
            ),
            why="the last group of layers would be incomplete",
            at=(share, n["num_layers"]),
        ),
        refuse(
            "sparse-share-layout",
            all_of(latent, types.is_set, ~types.is_a(_LAYOUT)),
            message=f"dsa_indexer_types is {{{net}.dsa_indexer_types}}; it must be a list of full and shared",
            why=WHY,
            at=(types,),
        ),
        refuse(
            "sparse-share-layers",
            all_of(latent, types.is_a(_LAYOUT), types.length != n["num_layers"]),
            message=f"dsa_indexer_types needs {{{net}.num_layers}} entries, one per layer, not {{length}}",
            why="the list must have one entry per layer",
            at=(types, n["num_layers"]),
            shows={"length": types.length},
        ),
        refuse(
            "sparse-share-first",
            all_of(latent, types.is_a(_LAYOUT), types.length > 0, ~types.is_a(Leads("full"))),
            message="dsa_indexer_types begins with shared, but the first layer has no earlier indices to share",
            why=WHY,
            at=(types,),
        ),
    )
del added  # no third set

_sparse = all_of(mcore, training, a["mcore.experimental_attention_variant"] == "dsa")
_interleaved = a["model.model_config.pp_interleave_num"]

MINDFORMERS.add(
    refuse(
        "sparse-zero-bubble",
        all_of(_sparse, scheduler == "zero_bubble_v"),
        message="experimental_attention_variant dsa does not work with the schedule zero_bubble_v",
        why=WHY,
        at=(scheduler, a["mcore.experimental_attention_variant"]),
    ),
    divides(
        "sparse-share-stages",
        a["mcore.dsa_index_topk_freq"],
        a["mcore.num_layers"] // pipeline,
        when=all_of(
            *(_sparse, a["mcore.multi_latent_attention"], a["mcore.dsa_indexer_types"].is_none, pipeline > 1),
            *(a["mcore.dsa_index_topk_freq"] > 1, a["mcore.num_layers"] % pipeline == 0),
            a["mcore.num_layers"] % a["mcore.dsa_index_topk_freq"] == 0,
            any_of(_interleaved.is_none, _interleaved == 1),
        ),
        message=(
            "a stage has {layers} layers, which cannot be divided into groups of {mcore.dsa_index_topk_freq} that share "
            "their indices"
        ),
        why="a group of layers would span two stages",
        at=(a["mcore.dsa_index_topk_freq"], pipeline),
        shows={"layers": a["mcore.num_layers"] // pipeline},
    ),
)
