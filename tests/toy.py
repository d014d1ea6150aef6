"""A minimal plugin for tests of the engine, the command line and the harness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight import Device, Finding, Fix, Job, Plan, Request, Severity, Target, Unverified, hookimpl, known, rule
from preflight.dialects import Dialect, Reading, Surroundings
from preflight.lint.rule import Rule
from preflight.loaders.document import Document, Setting
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Layout
from preflight.run.value import Origin, Value, default, unknown
from preflight.source.finding import Edit, Safety
from preflight.source.source_file import InputError

TARGET = Target("toy", "1.0")
BAD = "toy: true\ndata: 3  # dp\ntensor: 2\n"
GOOD = "toy: true\ndata: 4\ntensor: 2\n"
LOUD = "toy: true\nname: LOUD\n"
"""Texts that need a fix, none, and one that changes no result."""


def _value(document: Document, name: str) -> Value:
    node = document.tree.get(name) if document.tree else None
    if node is None:
        return default(1, "toy 1.0")
    if isinstance(node.value, str) and node.value.startswith("$"):
        return unknown(node.value)
    setting = Setting((name,), node.value, node.span, node.span)
    return Value(node.value, Origin.WRITTEN, setting, edits=lambda new: (Edit("set", (name,), new),))


class Toy:
    """Claims YAML that contains `toy: true`."""

    name = "toy"
    targets = (TARGET,)

    def claims(self, document: Document, request: Request) -> bool:
        return document.tree is not None and document.tree.get("toy") is not None

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        data, tensor = _value(document, "data"), _value(document, "tensor")
        if data.known and not isinstance(data.raw, int):
            assert data.span is not None
            raise InputError("data is not a number", document.source.name, data.span.line, data.span.column)
        count = surroundings.request.devices
        world = unknown("the device count is not given") if count is None else default(count, "--world-size")
        layout = Layout(data=data, tensor=tensor, world=world)
        device = surroundings.device(surroundings.request.device) if surroundings.request.device else None
        arguments = Arguments(TARGET, {}, {}, versions={"toy": "1.0"})
        return Reading((document,), TARGET, arguments, Plan(target=TARGET, layout=layout), Cluster(device, world))


@rule(severity=Severity.ERROR, id="toy-devices", frameworks=("toy",))
def toy_devices(job: Job, *, allow_idle: bool = False) -> Iterator[Finding | Unverified]:
    """Sizes do not multiply to the devices.

    ## What it does
    Multiplies.
    """
    layout = job.plan.layout
    if (values := known(layout.world, layout.data, layout.tensor)) is None:
        yield Unverified(next(v.because for v in (layout.world, layout.data, layout.tensor) if not v.known))
        return
    world, data, tensor = values
    if data * tensor != world and not (allow_idle and data * tensor < world):
        fix = (
            Fix(f"set data to {world // tensor}", layout.data.becomes(world // tensor)) if world % tensor == 0 else None
        )
        yield Finding(
            f"{data} x {tensor} is not {world}", job.place(layout.data), layout.tensor.related, fix, layout.data.key
        )


@rule(severity=Severity.WARNING, id="toy-name", frameworks=("toy",))
def toy_name(job: Job) -> Iterator[Finding]:
    """A name is shouted."""
    node = job.documents[0].tree.get("name") if job.documents[0].tree else None
    if node is not None and isinstance(node.value, str) and node.value.isupper():
        yield Finding(
            f"{node.value!r} is shouted",
            node.span,
            fix=Fix("say it softly", (Edit("set", ("name",), node.value.lower()),), Safety.SAFE),
        )


@rule(severity=Severity.ERROR, id="toy-crash", frameworks=("toy",))
def toy_crash(job: Job) -> Iterator[Finding]:
    """Crashes on request."""
    if job.documents[0].tree is not None and job.documents[0].tree.get("crash") is not None:
        raise ZeroDivisionError("as asked")
    yield from ()


@hookimpl
def preflight_rules() -> Sequence[Rule]:
    return [toy_devices, toy_name, toy_crash]


@hookimpl
def preflight_dialects() -> Sequence[Dialect]:
    return [Toy()]


@hookimpl
def preflight_devices() -> Sequence[Device]:
    return [Device("toy-card", 8 * 2**30, aliases=("tc",))]


@hookimpl
def preflight_reporters() -> Sequence[tuple[str, str]]:
    return [
        *((name, f"preflight.report.{name}:render") for name in ("text", "concise", "json", "statistics")),
        ("shout", "toy:shout"),
    ]


def shout(report: object, look: object) -> str:
    return "SHOUT\n"
