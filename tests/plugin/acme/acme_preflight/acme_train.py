"""acme-train 3.1: `python acme_train.py` with its own options, which it passes to Megatron-LM 0.16."""

from __future__ import annotations

from preflight import Value
from preflight.plugin import Document, Flag, FrontEnd, Reading, Run, Surroundings, derives, read_options


def devices(run: Run) -> Value:
    """The devices that train: here an option sets them."""
    return run.value("devices")


@derives("max_position_embeddings")
def positions(run: Run) -> None:
    """The values that acme-train sets before Megatron validates."""
    run.derive("max_position_embeddings", run.seq_length, "the sequence length")


FRONT_END = FrontEnd(
    "acme-train",
    "3.1",
    core="0.16.0",
    world=devices,
    before=(positions,),
    options=(
        Flag("--devices", "devices", "int", 8),
        Flag("--tp", "tensor_model_parallel_size", "int", 1),
        Flag("--layers", "num_layers", "int"),
        Flag("--width", "hidden_size", "int"),
        Flag("--heads", "num_attention_heads", "int"),
        Flag("--length", "seq_length", "int", 4096),
        Flag("--micro-batch", "micro_batch_size", "int", 1),
        Flag("--batch", "global_batch_size", "int"),
        Flag("--steps", "train_iters", "int", 1000),
        Flag("--rate", "lr", "float", 1e-4),
    ),
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """The run that a launch starts."""
    return read_options(FRONT_END, document, surroundings)
