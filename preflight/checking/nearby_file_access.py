"""The files around a document, as far as it may be opened."""

from __future__ import annotations

from collections.abc import Callable

from preflight.loaders.document import Document
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:  # most files are in no checkout
    from preflight.program.checkout.enclosing_checkout import Checkout, Checkouts


class Beside(NamedTuple):
    """read: another file that a document names; checkout: the enclosing one; around: scripts next to it; data: the
    bytes of another file. None if they must not be opened.
    """

    read: Callable[[Document, str], Document | None] = lambda document, name: None
    checkout: Callable[[Document], Checkout | None] = lambda document: None
    around: Checkouts | None = None
    data: Callable[[Document, str], bytes | None] = lambda document, name: None


NOTHING = Beside()
