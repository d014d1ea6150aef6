"""Acme's additions to preflight: its own trainer's YAML, its front end to Megatron, its accelerator, a house rule, a
CSV report."""

from __future__ import annotations

from collections.abc import Sequence

from acme_preflight import seeds
from acme_preflight.dialect import AcmeDialect
from preflight import Device, hookimpl
from preflight.dialects import Dialect
from preflight.plugin import Document, FrontEndDialect
from preflight.rule import Rule


@hookimpl
def preflight_rules() -> Sequence[Rule]:
    return [seeds.check]


def starts_acme_train(document: Document) -> bool:
    """Recognise a launch by its entry script."""
    return document.launch is not None and (document.launch.entry.text or "").endswith("acme_train.py")


@hookimpl
def preflight_dialects() -> Sequence[Dialect]:
    return [AcmeDialect(), FrontEndDialect("acme-train", "3.1", starts_acme_train, "acme_preflight.acme_train")]


@hookimpl
def preflight_devices() -> Sequence[Device]:
    return [Device("acme-one", memory=48 * 2**30, per_node=4, aliases=("a1",), vendor="acme", source="Acme data sheet")]


@hookimpl
def preflight_reporters() -> Sequence[tuple[str, str]]:
    return [("csv", "acme_preflight.csv_report:render")]
