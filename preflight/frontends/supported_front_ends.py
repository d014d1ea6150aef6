"""The front ends that preflight reads, with their described releases; the reader of one is imported only if it is
used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from preflight.dialects import Reading, Surroundings
from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end_detection import (
    is_areal,
    is_flagscale,
    is_mcore_adapter,
    is_megatron_bridge,
    is_mindrlhf,
    is_mindspeed_fsdp2,
    is_mindspeed_mm,
    is_mindspeed_rl,
    is_ms_swift,
    is_nemo_rl,
    is_primus,
    is_skyrl,
    is_slime,
    is_verl,
    may_be_ms_swift,
)
from preflight.loaders.document import Document
from preflight.run.request import Request, Target
from preflight.source.record import NamedTuple


class FrontEndDialect(NamedTuple):
    """A front end without its reader. sign: decides whether a document belongs to it, by evidence that no other program
    has; module: its reader."""

    name: str
    release: str
    sign: Callable[[Document], bool]
    module: str
    over: tuple[str, ...] = ("megatron", "mindformers")
    """Dialects that yield a document to this one if both claim it."""

    weak: Callable[[Document], bool] | None = None
    """Replaces `sign` if the user states that a document belongs to this front end; None: `sign` applies."""

    others: tuple[str, ...] = ()
    """Other described releases."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """The releases whose sources were read; the first is assumed if none is stated."""
        return tuple(Target(self.name, release) for release in (self.release, *self.others))

    def claims(self, document: Document, request: Request) -> bool:
        """Whether a document is a run through this front end; not if another one is stated."""
        if request.target is None:
            return self.sign(document)
        return request.target.framework == self.name and (self.weak or self.sign)(document)

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Translate."""
        found: Reading = import_module(self.module).read(document, surroundings)
        return found


FRONT_ENDS = (
    FrontEndDialect("areal", "1.0.4", is_areal, "preflight.frontends.areal"),
    FrontEndDialect("skyrl", "0.3.0", is_skyrl, "preflight.frontends.skyrl"),
    FrontEndDialect("mindspeed-mm", "26.1.0", is_mindspeed_mm, "preflight.frontends.mindspeed_mm"),
    FrontEndDialect(
        *("mindspeed-llm-fsdp2", "26.1.0", is_mindspeed_fsdp2, "preflight.frontends.mindspeed_fsdp2"),
        others=contracts("mindspeed-llm-fsdp2"),
    ),
    FrontEndDialect(
        *("mcore-adapter", "0.3.0", is_mcore_adapter, "preflight.frontends.mcore_adapter"),
        others=contracts("mcore-adapter"),
    ),
    FrontEndDialect("primus", "26.5.1", is_primus, "preflight.frontends.primus"),
    FrontEndDialect("slime", "0.3.1", is_slime, "preflight.frontends.slime", others=contracts("slime")),
    FrontEndDialect(
        "nemo-rl", "0.7.0", is_nemo_rl, "preflight.frontends.nemo_rl", others=contracts("nemo-rl", "0.7.0")
    ),
    FrontEndDialect("verl", "0.9.0", is_verl, "preflight.frontends.verl_trainers", others=contracts("verl", "0.9.0")),
    FrontEndDialect("mindrlhf", "0.5.0", is_mindrlhf, "preflight.frontends.mindrlhf"),
    FrontEndDialect(
        *("mindspeed-rl", "2.3.0", is_mindspeed_rl, "preflight.frontends.mindspeed_rl"),
        others=contracts("mindspeed-rl"),
    ),
    FrontEndDialect("flagscale", "0.9.0", is_flagscale, "preflight.frontends.flagscale", others=contracts("flagscale")),
    FrontEndDialect(
        *("ms-swift", "4.5.2", is_ms_swift, "preflight.frontends.ms_swift"),
        weak=may_be_ms_swift,
        others=contracts("ms-swift"),
    ),
    FrontEndDialect(
        *("megatron-bridge", "0.6.0", is_megatron_bridge, "preflight.frontends.megatron_bridge"),
        others=contracts("megatron-bridge"),
    ),
)
"""All supported front ends."""
