"""Which accelerator a run gets: as the caller names it, else as the job asks its cluster for it."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.loaders.document import Document, Setting
from preflight.run.cluster import Device
from preflight.run.value import Origin, Value, unknown


def which(document: Document, surroundings: Surroundings) -> tuple[Device | None, Value]:
    """The accelerator, and where the job says it."""
    asked, word = surroundings.request.device, document.launch.device if document.launch is not None else None
    if asked:
        return surroundings.device(asked), unknown("named by the caller")
    device = surroundings.likely(word.text) if word is not None and word.text is not None else None
    if device is None or word is None:
        return None, unknown("the device is not named")
    return device, Value(
        device.name,
        Origin.DERIVED,
        Setting((), word.text, word.span, word.span, editable=False),
        "what the job asks for",
    )
