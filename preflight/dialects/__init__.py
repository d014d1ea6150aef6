"""Dialects: one per framework family. Each decides whether a document belongs to its family, and reads it into
arguments and a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from preflight.loaders.document import Document
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster, Device
from preflight.run.request import Request, Target
from preflight.run.training_plan import Plan
from preflight.source.checkout_root import started_from
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # most files are not in a checkout
    from preflight.program.checkout.enclosing_checkout import Checkout, Checkouts


class Surroundings(NamedTuple):
    """Surroundings of a document that a dialect may use.

    read: opens another file that the config names (a path relative to the document), or None if it is missing or must
    not be opened. device: finds an accelerator by name or alias, None if the name is unknown; likely: the same for the
    word that a job uses in its request to the cluster. checkout: the one around a document, None if there is none or it
    must not be examined. around: the same for scripts next to a document. data: the bytes of another file, None if
    there is none or it must not be opened.
    """

    request: Request
    read: Callable[[Document, str], Document | None]
    device: Callable[[str], Device | None]
    likely: Callable[[str], Device | None] = lambda name: None
    checkout: Callable[[Document], Checkout | None] = lambda document: None
    around: Checkouts | None = None
    data: Callable[[Document, str], bytes | None] = lambda document, name: None


class Reading(NamedTuple):
    """A run as a dialect understands it; documents[0] is its input."""

    documents: tuple[Document, ...]
    target: Target
    arguments: Arguments
    plan: Plan
    cluster: Cluster


class Dialect(Protocol):
    """A reader of one kind of config."""

    @property
    def name(self) -> str: ...

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every supported framework and version, the default of each framework first."""
        ...

    def claims(self, document: Document, request: Request) -> bool:
        """Whether the document is a config of this family; a fast check of its content."""
        ...

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Translate. Raises InputError if the framework itself cannot read the file."""
        ...


class Ambiguous(InputError):
    """More than one dialect claims a document."""


def claim(document: Document, dialects: Sequence[Dialect], request: Request) -> Dialect | None:
    """The one dialect that claims a document, or None. Raises Ambiguous.

    If a dialect reads programs that start the framework of another dialect, `over` names the latter, which then yields.
    """
    seen = document if document.meant is None else replace(document, launch=document.meant)
    claiming = [dialect for dialect in dialects if dialect.claims(seen, request)]
    if len(claiming) > 1:
        left = {name for dialect in claiming for name in getattr(dialect, "over", ())}
        claiming = [dialect for dialect in claiming if dialect.name not in left]
    if len(claiming) > 1:
        raise Ambiguous(
            f"matches {' and '.join(sorted(d.name for d in claiming))}; choose one with --target", document.source.name
        )
    return claiming[0] if claiming else None


def folders(document: Document) -> tuple[Path, ...]:
    """Folders of the files that a document names: for a config its own folder, for a command the working directory; a
    script may be started from its own folder or, as in the root of a repository, from the working directory."""
    own = (document.source.path.parent,) if document.source.path is not None else ()
    if document.kind == "command" or (document.kind in ("script", "manifest") and own):
        here = Path.cwd()
        above = started_from(document.source.path) if document.source.path and document.source.in_checkout else ()
        return (*own, here, *(folder for folder in above if folder != here))
    return own
