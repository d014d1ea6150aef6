"""Facts about a run beyond its layout: learning rate, length, data, checkpoints, by each framework's names."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.run.arguments import Arguments
from preflight.run.value import Value
from preflight.source.record import NamedTuple


class TrainingFacts(NamedTuple):
    """Values by meaning; None if the framework has no argument for one, or it is not set."""

    rate: Value | None = None
    least_rate: Value | None = None
    decay: Value | None = None
    decay_steps: Value | None = None
    warmup: Value | None = None
    steps: Value | None = None
    samples: Value | None = None
    epochs: Value | None = None
    data: Value | None = None
    tokenizer: Value | None = None
    load: Value | None = None
    save: Value | None = None
    save_every: Value | None = None


_MEGATRON: Mapping[str, tuple[str, ...]] = {
    "rate": ("lr",),
    "least_rate": ("min_lr",),
    "decay": ("lr_decay_style",),
    "decay_steps": ("lr_decay_iters", "lr_decay_samples"),
    "warmup": ("lr_warmup_iters", "lr_warmup_samples", "lr_warmup_fraction"),
    "steps": ("train_iters",),
    "samples": ("train_samples",),
    "data": ("data_path", "train_data_path", "data_args_path", "mock_data"),
    "tokenizer": ("tokenizer_model", "tokenizer_name_or_path", "vocab_file", "tokenizer_type"),
    "load": ("load", "pretrained_checkpoint"),
    "save": ("save",),
    "save_every": ("save_interval",),
}
_MINDFORMERS: Mapping[str, tuple[str, ...]] = {
    "rate": ("lr_schedule.learning_rate", "optimizer.learning_rate"),
    "least_rate": ("lr_schedule.lr_end",),
    "decay": ("lr_schedule.type",),
    "decay_steps": ("lr_schedule.total_steps",),
    "warmup": ("lr_schedule.warmup_steps", "lr_schedule.warmup_ratio"),
    "epochs": ("runner_config.epochs",),
    "data": ("train_dataset.data_loader.dataset_dir", "train_dataset.data_loader.path"),
    "load": ("load_checkpoint", "pretrained_model_dir"),
    "save": ("output_dir",),
}
_PYNATIVE: Mapping[str, tuple[str, ...]] = {
    "rate": ("lr_scheduler.learning_rate",),
    "least_rate": ("lr_scheduler.lr_end",),
    "decay": ("lr_scheduler.type",),
    "decay_steps": ("lr_scheduler.total_steps",),
    "warmup": ("lr_scheduler.warmup_steps", "lr_scheduler.warmup_ratio"),
    "steps": ("training.steps",),
    "data": ("train_dataset.dataloader.config.data_path", "train_dataset.dataloader.path"),
    "load": ("checkpoint.load_path", "pretrained_model_dir"),
    "save": ("checkpoint.save_path",),
    "save_every": ("checkpoint.save_interleaved_steps",),
}
"""The keys of configs for MindFormers' pynative trainer."""


def training_facts(arguments: Arguments) -> TrainingFacts:
    """Explicit settings of a run; of several arguments with the same meaning, the first that is set."""
    facts = TrainingFacts(**{fact: _first(arguments, each) for fact, each in _names(arguments).items()})
    saves = arguments.given("checkpoint.enable_save")
    return facts._replace(save=None, save_every=None) if saves is not None and saves.raw is False else facts


def _names(arguments: Arguments) -> Mapping[str, tuple[str, ...]]:
    if arguments.target.framework != "mindformers":
        return _MEGATRON
    return _PYNATIVE if arguments.given("lr_scheduler.type") is not None else _MINDFORMERS


def _first(arguments: Arguments, names: tuple[str, ...]) -> Value | None:
    given = (arguments.given(name) for name in names)
    found = next((value for value in given if value is not None and value.raw not in (None, "", -1)), None)
    return found
