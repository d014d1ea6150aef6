"""Tables of keys and defaults per release, under schemas/mindformers/graph: one small JSON file each, read once."""

from __future__ import annotations

from functools import lru_cache

from preflight import schemas
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

VERSIONS = tuple[str, ...](reversed(schemas.read("releases")["mindformers"]))
"""The described releases, oldest first."""
_BESIDE: dict[str, str] = schemas.read("releases")["mindformers beside"]


def read_at(version: str) -> str:
    """The release whose lines the rules cite for a version: the evidence maps them to the version."""
    return _BESIDE.get(version, version)


class Table(NamedTuple):
    """The keys of one release. strict: sections that refuse an unknown key; required: keys that a section must have.
    general: top-level scalars; sections, models, mcore_models, mcore: key → default, per section, per legacy model
    type, per mcore model type, of the mcore transformer config.
    """

    version: str
    strict: tuple[str, ...]
    required: dict[str, tuple[str, ...]]
    general: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    mcore: dict[str, Any]
    mcore_models: dict[str, dict[str, Any]]

    @property
    def templated(self) -> bool:
        """Whether this release fills and checks sections from a template (since 1.5)."""
        return bool(self.general)

    def default(self, name: str, model: str = "") -> Any:
        """The default of a dotted name, None if there is none. model: the type of its model_config."""
        section, _, key = name.partition(".")
        if not key:
            return self.general.get(name, _UNTEMPLATED.get(name))
        if section == "model" and key.startswith("model_config."):
            return self.models.get(model, {}).get(key.removeprefix("model_config."))
        if section == "mcore":
            return self.mcore.get(key)
        found = self.sections.get(section, {}).get(key)
        return _UNTEMPLATED.get(name) if found is None else found


_UNTEMPLATED = {
    "use_parallel": False,
    "micro_batch_interleave_num": 1,
    "runner_config.batch_size": 1,
    "runner_config.gradient_accumulation_steps": 1,
    "parallel_config.context_parallel": 1,
    "parallel_config.seq_split_num": 1,
    "parallel_config.context_parallel_algo": "colossalai_cp",
    "parallel_config.ulysses_degree_in_cp": 1,
    "swap_config.swap": False,
}


@lru_cache(maxsize=16)
def table(version: str) -> Table:
    """The table of a release."""
    data = schemas.read(f"mindformers/graph/{version}")
    required = {section: tuple(keys) for section, keys in data["required"].items()}
    return Table(
        data["version"],
        tuple(data["strict"]),
        required,
        data["general"],
        data["sections"],
        data["models"],
        data.get("mcore", {}),
        data.get("mcore_models", {}),
    )


DERIVED = (
    *(
        "kind",
        "training",
        "parallel_mode",
        "world_size",
        "pipeline_interleave",
        "ulysses_degree",
        "global_batch_size",
        "pipeline_layers",
        "layering",
        "clashes",
    ),
    *(
        "shape.layers",
        "shape.hidden",
        "shape.heads",
        "shape.query_groups",
        "shape.ffn",
        "shape.experts",
        "shape.family",
        "shape.vocab",
    ),
)
# fmt: off
_OPEN = (
    *("parallel.pipeline_config.pipeline_interleave", "parallel.pipeline_config.pipeline_scheduler",
        "parallel.dataset_strategy", "parallel.auto_pipeline", "optimizer.swap"),
    *("lr_schedule.warmup_steps", "lr_schedule.decay_steps", "infer"),
    *("grouped_lr_schedule.grouped", "grouped_lr_schedule.default"),
    *("parallel.parallel_optimizer_config.optimizer_level",
        "parallel.parallel_optimizer_config.gradient_accumulation_shard"),
    *("parallel.parallel_optimizer_config.optimizer_weight_shard_size",
        "parallel.parallel_optimizer_config.parallel_optimizer_threshold"),
    *("context.jit_level", "context.jit_config.jit_level", "context.infer_boost", "context.jit_config.infer_boost",
        "context.memory_optimize_level"),
    *("context.dataset_broadcast_opt_level", "train_dataset.data_loader.type", "train_dataset.data_loader.packing",
        "runner_wrapper.calculate_per_token_loss"),
    *("checkpoint", "checkpoint.save_max", "checkpoint.save_interleaved_steps", "checkpoint.reshard_worker_num"),
    *(
        "model.model_config.offset",
        "model.model_config.pp_interleave_num",
        "model.model_config.architectures",
        "model.model_config.quantization_config.quant_method",
    ),
    *("lr_schedule.warmup_epochs", "lr_schedule.warmup_ratio", "model.model_config.rope_scaling",
        "model.model_config.tp_x", "model.model_config.tp_y"),
    *("model.model_config.tp_z", "model.model_config.use_3d_tensor_parallel",
        "model.model_config.checkpoint_name_or_path", "model.model_config.use_past"),
    *(
        "processor.tokenizer",
        "model",
        "model.model_config",
        "train_dataset",
        "train_dataset.data_loader",
        "train_dataset.data_loader.sizes",
        "train_dataset_task",
        "eval_dataset",
        "eval_dataset_task",
        "train_dataset.data_loader.config",
        "mcore.rope_scaling",
        "model.model_config.input_sliced_sig",
    ),
    *(
        "train_precision_sync",
        "model.model_config.type",
        "trainer.type",
        "model.model_config.use_attn_mask_compression",
        "mcore.window_size",
        "mcore.model_architecture",
        "mcore.moe_layer_freq",
        "metric",
    ),
    *("train_dataset.max_source_length", "train_dataset.max_target_length", "train_dataset.dynamic_batch"),
    *("context.save_graphs", "runner_wrapper.max_grad_norm"),
)
# fmt: on


@lru_cache(maxsize=1)
def known_names() -> frozenset[str]:
    """Every name that a declared constraint may use, over all releases."""
    names = {*DERIVED, *_OPEN, *_UNTEMPLATED}
    for version in VERSIONS:
        t = table(version)
        names |= set(t.general) | {f"{section}.{key}" for section, keys in t.sections.items() for key in keys}
        names |= {
            f"model.model_config.{key}" for keys in (*t.models.values(), *t.mcore_models.values()) for key in keys
        } | {f"{part}.{key}" for key in t.mcore for part in ("mcore", "model.model_config")}
    return frozenset(names)
