"""Reads inputs for tests of the Megatron family: options after pretrain_gpt.py, or a file."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import MegatronDialect
from preflight.loaders import load
from preflight.loaders.command_line import load_command
from preflight.loaders.document import Document
from preflight.run.cluster import Device
from preflight.run.request import Request, Target
from preflight.source.source_file import Source

SIZES = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 1 "
)


def document(text: str, name: str = "run.sh") -> Document:
    return load(Source(text, name))[0]


def read(
    text: str, devices: int | None = 8, target: str = "megatron@0.20.0", name: str = "", **said: object
) -> Reading:
    """Read options after pretrain_gpt.py, or a file when it is named."""
    request = Request(world_size=devices, target=Target.parse(target) if target else None, device="h100", **said)  # type: ignore[arg-type]
    made = document(text, name) if name else load_command(["pretrain_gpt.py", *text.split()])
    return MegatronDialect().read(
        made, Surroundings(request, lambda d, n: None, lambda n: Device(n, 80e9, architecture=9))
    )
