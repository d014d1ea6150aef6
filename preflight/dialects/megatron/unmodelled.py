"""Features that the memory model does not describe: those that are on, and those that may be."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron import attention_bias, encoders, swapped_attention
from preflight.dialects.megatron.hybrid_parts import hybrid_parts
from preflight.dialects.megatron.namespace import NotKnown, Run
from preflight.dialects.megatron.overlaps import is_one_graph
from preflight.dialects.megatron.plan_model import FAMILIES
from preflight.dialects.megatron.plan_source import Source


def is_on(run: Run, name: str) -> bool:
    """Whether a switch is on, of options that not every framework has."""
    value = run.value(name)
    return value.written and getattr(run, name) not in (None, False, 0, "", "disable")


def _is_foreign(run: Run) -> bool:
    """Whether the entry script is one that a release ships beside pretraining: it may build another model, or freeze
    parts of it."""
    shipped, known = run.value("entry_is_shipped"), run.value("entry_is_known")
    return shipped.raw is True and known.raw is not True


def _graphs(run: Run) -> bool:
    return bool(run.cuda_graph_impl not in (None, "none") or run.enable_cuda_graph or run.external_cuda_graph)


def _freezes(run: Run) -> bool:
    given = run.written.get("freeze_LM")
    return given is not None and given.raw is True


ADAPTED = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "shared linear_fc1", "shared linear_fc2")
# fmt: off
UNMODELLED: tuple[tuple[str, Callable[[Run], object]], ...] = (
    ("a hybrid model", lambda r: hybrid_parts(r) == ""),
    ("an encoder alone", lambda r: FAMILIES.get(r.entry) == "bert"),
    ("an encoder and a decoder", lambda r: FAMILIES.get(r.entry) == "t5"),
    ("a model of several encoders", lambda r: FAMILIES.get(r.entry) in ("multimodal", "retrieval")),
    ("a frozen language model beside encoders", lambda r: _is_foreign(r) and _freezes(r) and not encoders.frozen(r)),
    ("an entry script with options of its own", lambda r: _is_foreign(r) and not _freezes(r)),
    ("inference", lambda r: r.entry == "inference"),
    ("reinforcement learning", lambda r: r.entry == "rl" or r.perform_rl_step),
    ("a run without training", lambda r: r.skip_train),
    ("a network with layers of different sizes",
        lambda r: r.heterogeneous_layers_config_path or r.heterogeneous_layers_config_encoded_json),
    ("retrieval", lambda r: r.retro_add_retriever),
    ("a distillation teacher", lambda r: r.export_kd_teacher_load),
    ("another kind of attention",
        lambda r: r.experimental_attention_variant or r.kv_compress or r.full_attention_interval),
    ("latent attention with an indexer", lambda r: r.enable_dsa_indexer and not r.kv_compress),
    ("ALiBi", lambda r: r.position_embedding_type == "alibi" and not attention_bias.is_counted(r)),
    ("experts that compute nothing", lambda r: r.num_zero_experts),
    ("latent experts", lambda r: r.moe_latent_size is not None),
    ("PyTorch's FSDP2 by a file of its own", lambda r: r.use_torch_fsdp2 and "mindspeed" in r.versions),
    ("FP8 with fully sharded data parallelism", lambda r: r.fp8 and (r.use_megatron_fsdp or r.use_custom_fsdp)),
    ("FP4", lambda r: r.fp4),
    ("CUDA graphs", lambda r: _graphs(r) and not is_one_graph(r)),
    ("a CUDA graph of the whole iteration", is_one_graph),
    ("offloaded activations",
        lambda r: any(is_on(r, n) for n in ("cpu_offloading", "fine_grained_activation_offloading"))
            or (is_on(r, "swap_attention") and not swapped_attention.modules(r))),
    ("stages in two directions", lambda r: is_on(r, "use_dualpipev")),
    ("a virtual optimizer", lambda r: r.virtual_optimizer),
    ("a compressed or low-precision optimizer",
        lambda r: any(is_on(r, n) for n in ("quant_states", "quant_grads", "compress_optimizer"))),
    ("LayerZero", lambda r: is_on(r, "layerzero")),
    ("this optimizer", lambda r: r.optimizer not in ("adam", "sgd",
        "muon") or (r.optimizer == "muon" and r.muon_scalar_optimizer != "adam")),
    ("adapters of this kind", lambda r: any(name not in ADAPTED for name in r.lora_target_modules or ())),
    ("weights in more shards than tensor parallelism",
        lambda r: r.gtp_weight_remat_size > 1 or r.expert_gtp_weight_remat_size > 1),
)
# fmt: on


def find_unmodelled(source: Source) -> tuple[tuple[str, ...], tuple[str, ...]]:
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
