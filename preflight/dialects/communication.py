"""What the job's environment says about communication buffers: HCCL_BUFFSIZE, in MB;
every communicator takes two of them."""

from __future__ import annotations

from preflight.loaders.document import Document
from preflight.run.cluster import Cluster
from preflight.run.request import Request
from preflight.run.value import Value, derived, unknown
from preflight.source.record import replace

VARIABLE = "HCCL_BUFFSIZE"
_MB = 2**20


def completed(cluster: Cluster, document: Document, request: Request) -> Cluster:
    """The cluster with the size of a buffer, and with what was measured on it."""
    cluster = replace(cluster, measured=request.measured, pace=request.pace)
    text = request.environment.get(VARIABLE)
    if text is None and document.launch is not None and VARIABLE in document.launch.environment:
        word = document.launch.environment[VARIABLE]
        if word.text is None:
            return replace(cluster, buffer=unknown(f"{VARIABLE} is {word.because}"))
        text = word.text
    return replace(cluster, buffer=_size(text)) if text is not None else cluster


def _size(text: str) -> Value:
    """A whole number of megabytes; anything else is for other rules to say."""
    return (
        derived(int(text) * _MB, VARIABLE)
        if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 20
        else unknown(f"{VARIABLE} is {text!r}")
    )
