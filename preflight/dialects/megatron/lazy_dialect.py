"""Which documents belong to Megatron; the reader is imported only when one is read."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.loaders.document import Document
from preflight.run.request import Request, Target
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.dialects.completion_data import Offers
    from preflight.job import Job


SECTIONS = ("MODEL_ARGS", "language_model")
"""A YAML file without any of these sections is not a config of this family."""


class Megatron:
    """The dialect without its reader, as the engine loads it."""

    name = "megatron"

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every described release."""
        from preflight.dialects.megatron.framework_version import TARGETS

        return TARGETS

    def claims(self, document: Document, request: Request) -> bool:
        """Decided by the entry script, the options, the sections."""
        if document.launch is None:
            tree = document.tree
            if tree is None or all(tree.get(section) is None for section in SECTIONS):
                return False
        from preflight.dialects.megatron.family_membership import claims

        return claims(document, request)

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Translate."""
        from preflight.dialects.megatron.dialect import MegatronDialect

        return MegatronDialect().read(document, surroundings)

    def offers(self, job: Job) -> Offers:
        """Options and values offered to editors."""
        from preflight.dialects.megatron.json_schema import offers

        return offers(job)
