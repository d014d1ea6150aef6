"""The namespace of one graph-mode run while its values are derived: typed, switched, derived,
or the release's default."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from preflight.dialects.mindformers.release_tables import Table, table
from preflight.loaders.document import Unknown
from preflight.run.arguments import Switch
from preflight.run.value import Origin, Value, default, derived, unknown

TRAINING = ("train", "finetune", "predict_with_train_model")


@lru_cache(maxsize=4096)
def _default(version: str, name: str, model: str) -> Value:
    return default(table(version).default(name, model), f"MindFormers {version}")


class Run:
    """Values by dotted name. kind: legacy or mcore."""

    def __init__(self, table: Table, written: Mapping[str, Value], kind: str) -> None:
        self.table, self.written, self.kind = table, written, kind
        self.effective: dict[str, Value] = {}
        self.switches: list[Switch] = []
        type_name = written.get("model.model_config.type")
        self.model = type_name.raw if type_name is not None and isinstance(type_name.raw, str) else ""
        self.absent = ""  # why settings of the model may exist that were not seen
        self.open = ""  # why any setting may exist that was not seen

    def value(self, name: str) -> Value:
        """The value as it stands now."""
        found = self.effective.get(name) or self.written.get(name)
        return found if found is not None else self.default(name)

    def default(self, name: str) -> Value:
        """The default; None where the release has no such key.
        What a config.json that cannot be read may hold is unknown."""
        if self.open:
            return unknown(self.open)
        if self.absent and name.startswith(("mcore.", "model.model_config.")):
            return unknown(self.absent)
        return _default(self.table.version, name, self.model)

    def raw(self, name: str) -> Any:
        """The plain value, or an Unknown."""
        return self.value(name).raw

    def number(self, name: str) -> int | None:
        """The value if it is a whole number, else None."""
        raw = self.raw(name)
        return raw if isinstance(raw, int) and not isinstance(raw, bool) else None

    def true(self, name: str) -> bool | None:
        """Whether the framework takes the value as true; None when it is unknown."""
        raw = self.raw(name)
        return None if isinstance(raw, Unknown) else bool(raw)

    def derive(self, name: str, raw: object, note: str = "", of: str = "") -> None:
        """Set a derived value; it points at the place of the name `of`."""
        base = self.written.get(of or name)
        if isinstance(raw, Unknown):
            self.effective[name] = unknown(raw.because)
        elif base is not None and not of:
            self.effective[name] = base.derived(raw, note)
        else:
            self.effective[name] = (
                Value(raw, Origin.DERIVED, base.setting if base else None, note) if base else derived(raw, note)
            )

    def lose(self, name: str, because: str) -> None:
        """Make a value unknown; one that was typed keeps its place."""
        base = self.written.get(name)
        lost = Unknown(because)
        self.effective[name] = (
            base._replace(raw=lost, origin=Origin.UNKNOWN, note=because) if base is not None else unknown(because)
        )

    def switch(self, name: str, after: object, cause: str, upstream: str) -> None:
        """The framework changes a setting without asking."""
        before = self.value(name)
        if before.known and before.raw == after:
            return
        if before.written:
            self.switches.append(Switch(name, before.raw, after, cause, upstream))
        self.derive(name, after, cause)
