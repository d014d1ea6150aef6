"""Features that the memory model does not describe: those that are on, and those that may be."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron import network_extensions
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.dialects.megatron.network_extensions import hybrid_parts, is_one_graph
from preflight.dialects.megatron.plan_network import FAMILIES
from preflight.dialects.megatron.plan_values import Source
from preflight.run.unmodelled_features import Unmodelled


def is_on(run: Run, name: str) -> bool:
    """Whether a switch is on, for options that only some frameworks have."""
    value = run.value(name)
    return value.written and getattr(run, name) not in (None, False, 0, "", "disable")


def _is_foreign(run: Run) -> bool:
    """Whether a release ships the entry script in addition to pretraining: it may build another model, or freeze parts
    of it."""
    shipped, known = run.value("entry_is_shipped"), run.value("entry_is_known")
    return shipped.raw is True and known.raw is not True


def _graphs(run: Run) -> bool:
    return bool(run.cuda_graph_impl not in (None, "none") or run.enable_cuda_graph or run.external_cuda_graph)


def _freezes(run: Run) -> bool:
    given = run.written.get("freeze_LM")
    return given is not None and given.raw is True


ADAPTED = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "shared linear_fc1", "shared linear_fc2")
# fmt: off
UNMODELLED: tuple[tuple[Unmodelled, Callable[[Run], object]], ...] = (
    (Unmodelled.HYBRID_MODEL, lambda r: hybrid_parts(r) == ""),
    (Unmodelled.ENCODER_ALONE, lambda r: FAMILIES.get(r.entry) == "bert"),
    (Unmodelled.ENCODER_AND_A_DECODER, lambda r: FAMILIES.get(r.entry) == "t5"),
    (Unmodelled.SEVERAL_ENCODERS, lambda r: FAMILIES.get(r.entry) in ("multimodal", "retrieval")),
    (
        Unmodelled.FROZEN_LANGUAGE_MODEL,
        lambda r: _is_foreign(r) and _freezes(r) and not network_extensions.frozen(r),
    ),
    (Unmodelled.OWN_ENTRY_SCRIPT, lambda r: _is_foreign(r) and not _freezes(r)),
    (Unmodelled.INFERENCE, lambda r: r.entry == "inference"),
    (Unmodelled.REINFORCEMENT_LEARNING, lambda r: r.entry == "rl" or r.perform_rl_step),
    (Unmodelled.RUN_WITHOUT_TRAINING, lambda r: r.skip_train),
    (Unmodelled.LAYERS_OF_DIFFERENT_SIZES,
        lambda r: r.heterogeneous_layers_config_path or r.heterogeneous_layers_config_encoded_json),
    (Unmodelled.RETRIEVAL, lambda r: r.retro_add_retriever),
    (Unmodelled.DISTILLATION_TEACHER, lambda r: r.export_kd_teacher_load),
    (Unmodelled.OTHER_ATTENTION,
        lambda r: r.experimental_attention_variant or r.kv_compress or r.full_attention_interval),
    (Unmodelled.LATENT_ATTENTION_INDEXER, lambda r: r.enable_dsa_indexer and not r.kv_compress),
    (Unmodelled.ALIBI, lambda r: r.position_embedding_type == "alibi" and not network_extensions.is_counted(r)),
    (Unmodelled.ZERO_EXPERTS, lambda r: r.num_zero_experts),
    (Unmodelled.LATENT_EXPERTS, lambda r: r.moe_latent_size is not None),
    (Unmodelled.FSDP2_BY_FILE, lambda r: r.use_torch_fsdp2 and "mindspeed" in r.versions),
    (Unmodelled.FP8_WITH_FSDP, lambda r: r.fp8 and (r.use_megatron_fsdp or r.use_custom_fsdp)),
    (Unmodelled.FP4, lambda r: r.fp4),
    (Unmodelled.CUDA_GRAPHS, lambda r: _graphs(r) and not is_one_graph(r)),
    (Unmodelled.WHOLE_CUDA_GRAPH, is_one_graph),
    (Unmodelled.OFFLOADED_ACTIVATIONS,
        lambda r: any(is_on(r, n) for n in ("cpu_offloading", "fine_grained_activation_offloading"))
            or (is_on(r, "swap_attention") and not network_extensions.modules(r))),
    (Unmodelled.STAGES_IN_TWO_DIRECTIONS, lambda r: is_on(r, "use_dualpipev")),
    (Unmodelled.VIRTUAL_OPTIMIZER, lambda r: r.virtual_optimizer),
    (Unmodelled.LOW_PRECISION_OPTIMIZER,
        lambda r: any(is_on(r, n) for n in ("quant_states", "quant_grads", "compress_optimizer"))),
    (Unmodelled.LAYERZERO, lambda r: is_on(r, "layerzero")),
    (Unmodelled.OTHER_OPTIMIZER, lambda r: r.optimizer not in ("adam", "sgd",
        "muon") or (r.optimizer == "muon" and r.muon_scalar_optimizer != "adam")),
    (Unmodelled.OTHER_ADAPTERS, lambda r: any(name not in ADAPTED for name in r.lora_target_modules or ())),
    (Unmodelled.WEIGHT_SHARDS,
        lambda r: r.gtp_weight_remat_size > 1 or r.expert_gtp_weight_remat_size > 1),
)
# fmt: on


def find_unmodelled(source: Source) -> tuple[tuple[Unmodelled, ...], tuple[Unmodelled, ...]]:
    """Features that the memory formulas do not cover: those that are on, and those that may be."""
    found, doubted = [], []
    for name, present in UNMODELLED:
        try:
            if present(source.run):
                found.append(name)
        except NotKnown:
            doubted.append(name)
        except TypeError:
            continue
    return tuple(dict.fromkeys(found)), tuple(name for name in dict.fromkeys(doubted) if name not in found)
