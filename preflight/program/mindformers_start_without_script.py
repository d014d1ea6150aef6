"""The handling of a configuration of MindFormers if no script of the checkout shows it: an installed package has
none, and one for PyNative mode is chosen on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from preflight.program.sources import Sources
from preflight.program.values import Value

GRAPH = """
from mindformers.tools.register import MindFormerConfig
from mindformers.core.context import build_context
from mindformers.trainer import Trainer


def main(config):
    build_context(config)
    trainer = Trainer(config)
    if config.run_mode == "predict":
        trainer.predict(
            predict_checkpoint=config.load_checkpoint,
            input_data=config.input_data,
            batch_size=config.predict_batch_size,
        )
    else:
        trainer.train()


main(MindFormerConfig("configuration.yaml"))
"""
"""A network built as a graph: the effect of every release's script with only its file."""
PYNATIVE = """
from mindformers.pynative.trainer.trainer import Trainer

Trainer(configuration)
"""
PYNATIVE_WITHOUT_TRAINER = """
from mindformers.pynative.config import TrainConfig

TrainConfig.from_dict(configuration)
"""
"""PyNative mode: a trainer that leaves much of its work to MindSpore, so a refusal may be certain, but an acceptance is
not."""
CONFIGURATION = "configuration"
"""The name that holds the file's content there."""
REST = "the trainer of PyNative mode"
STARTED = ("train", "finetune", "predict")
GRAPH_TRAINER, PYNATIVE_CONFIG = "mindformers.trainer.trainer", "mindformers.pynative.config"
PYNATIVE_TRAINER = "mindformers.pynative.trainer.trainer"
OF_PYNATIVE = ("training", "parallelism", "lr_scheduler")
OF_GRAPHS = ("parallel_config", "runner_config", "runner_wrapper", "train_dataset_task", "use_legacy")


class Start(NamedTuple):
    """The statements that start a run. rest: later code that is not read, "" for none."""

    text: str
    rest: str = ""


def is_pynative(document: Mapping[str, Value]) -> bool:
    """Whether a configuration is one of PyNative mode."""
    own = sum(key in document for key in OF_PYNATIVE)
    return own > 1 or (own > 0 and not any(key in document for key in OF_GRAPHS))


def start(document: Mapping[str, Value], sources: Sources, has_script: bool) -> Start | None:
    """How a configuration is started without its script; None if the script shows it, or nothing does."""
    if is_pynative(document):
        known = document.get("run_mode", "train") == "train" and sources.find(PYNATIVE_CONFIG) is not None
        whole = known and sources.find(PYNATIVE_TRAINER) is not None
        return Start(PYNATIVE if whole else PYNATIVE_WITHOUT_TRAINER, REST) if known else None
    known = document.get("run_mode") in STARTED and sources.find(GRAPH_TRAINER) is not None
    return Start(GRAPH) if known and not has_script else None
