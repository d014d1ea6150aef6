"""YAML of Acme's trainer: `acme_trainer: 2` and flat keys."""

from __future__ import annotations

from preflight import Plan, Request, Target, Value
from preflight.arguments import Arguments
from preflight.cluster import Cluster
from preflight.dialects import Reading, Surroundings
from preflight.document import Document, Setting
from preflight.finding import Edit
from preflight.plan import Layout
from preflight.value import Origin, default

TARGET = Target("acme", "2")


class AcmeDialect:
    """Reads `ranks` as data parallelism."""

    name = "acme"
    targets = (TARGET,)

    def claims(self, document: Document, request: Request) -> bool:
        """Recognise a file by the key that no other program has."""
        return document.tree is not None and document.tree.get("acme_trainer") is not None

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Every flat key is an argument."""
        written = {}
        for entry in document.tree.entries if document.tree else ():
            name = str(entry.key.value)
            setting = Setting((name,), entry.value.plain(), entry.value.span, entry.key.span)
            written[name] = Value(
                setting.value, Origin.WRITTEN, setting, edits=lambda new, name=name: (Edit("set", (name,), new),)
            )
        one = default(1, "acme 2")
        ranks = written.get("ranks", one)
        layout = Layout(world=ranks, data=ranks, tensor=one, pipeline=one, context=one)
        request = surroundings.request
        device = surroundings.device(request.device) if request.device else None
        arguments = Arguments(
            TARGET, written, {}, put=lambda name, value: (Edit("set", (name,), value),), versions={"acme": "2"}
        )
        return Reading((document,), TARGET, arguments, Plan(target=TARGET, layout=layout), Cluster(device, ranks))
