"""The accelerator of a run, its rank table, and the communication settings of its environment."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.loaders.document import Document, Node, Setting
from preflight.run.cluster import Cluster, Device
from preflight.run.plan import Plan
from preflight.run.request import Request
from preflight.run.value import Origin, Value, derived, unknown
from preflight.source.pattern import lazy_pattern
from preflight.source.record import replace
from preflight.source.text import InputError
from preflight.source.word import Needed, Reason


def which(document: Document, surroundings: Surroundings) -> tuple[Device | None, Value]:
    """The accelerator, and where the job names it."""
    asked, word = surroundings.request.device, document.launch.device if document.launch is not None else None
    if asked:
        return surroundings.device(asked), unknown("named by the caller")
    device = surroundings.likely(word.text) if word is not None and word.text is not None else None
    if device is None or word is None:
        return None, unknown(Reason("the device is not named", Needed.DEVICE))
    return device, Value(
        device.name,
        Origin.DERIVED,
        Setting((), word.text, word.span, word.span, editable=False),
        "what the job asks for",
    )


BUFFER_VARIABLE = "HCCL_BUFFSIZE"
_MB = 2**20


def completed(cluster: Cluster, document: Document, request: Request, plan: Plan) -> Cluster:
    """The cluster with the size of a buffer, and with what was measured on it."""
    cluster = replace(cluster, measured=request.measured, pace=request.pace, network=request.network, link=request.link)
    cluster = replace(cluster, software=request.software or _container(document.source.text))
    if request.factors:
        experts = bool(plan.model.experts.raw) if plan.model.experts.known else None
        found = next((one for one in request.factors if one.holds(cluster.device, experts)), None)
        if found is not None:
            cluster = replace(cluster, measured=found.beyond or 0.0, pace=found.pace or 1.0)
    text = request.environment.get(BUFFER_VARIABLE)
    if text is None and document.launch is not None and BUFFER_VARIABLE in document.launch.environment:
        word = document.launch.environment[BUFFER_VARIABLE]
        if word.text is None:
            return replace(cluster, buffer=unknown(f"{BUFFER_VARIABLE} is {word.because}"))
        text = word.text
    return replace(cluster, buffer=_size(text)) if text is not None else cluster


CONTAINER = lazy_pattern(r"nvcr\.io[/#+]nvidia[/+](?:nemo|pytorch)[:+](\d\d\.(?:0[1-9]|1[0-2]))(?!\d)")
"""An NVIDIA image, whose tag is the year and month of its software."""


def _container(text: str) -> float | None:
    """The container image of a run, if it names one; comments are ignored."""
    if "nvcr.io" not in text:
        return None
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#") or "#SBATCH" in line)
    tags = {found[1] for line in lines for found in CONTAINER.finditer(line)}
    return float(tags.pop()) if len(tags) == 1 else None


def _size(text: str) -> Value:
    """A whole number of megabytes; other rules report anything else."""
    return (
        derived(int(text) * _MB, BUFFER_VARIABLE)
        if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 20
        else unknown(f"{BUFFER_VARIABLE} is {text!r}")
    )


RANK_TABLE_VARIABLE = "RANK_TABLE_FILE"
SOURCE = "the rank table"


def rank_table(document: Document, surroundings: Surroundings) -> Document | None:
    """The rank table that a launch names; None if there is none, or if it is missing or unreadable."""
    word = document.launch.environment.get(RANK_TABLE_VARIABLE) if document.launch is not None else None
    if word is None or word.text is None:
        return None
    try:
        found = surroundings.read(document, word.text)
    except InputError:
        return None
    return found if found is not None and found.tree is not None and found.tree.get("server_list") is not None else None


def listed_devices(ranks: Document, document: Document) -> Value:
    """How many devices a rank table lists, pointing at where the launch names it."""
    assert ranks.tree is not None and document.launch is not None
    span = document.launch.environment[RANK_TABLE_VARIABLE].span
    total = sum(len(server_devices(server)) for server in servers(ranks.tree))
    return Value(total, Origin.WRITTEN, Setting((), total, span, span, editable=False), SOURCE)


def servers(tree: Node) -> tuple[Node, ...]:
    """The servers of a table, in order."""
    listed = tree.get("server_list")
    return listed.items if listed is not None else ()


def server_devices(server: Node) -> tuple[Node, ...]:
    """The devices of a server."""
    listed = server.get("device")
    return listed.items if listed is not None else ()
