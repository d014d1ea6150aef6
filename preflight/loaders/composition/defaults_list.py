"""The entries of a Hydra defaults list: which config each names, and below which keys its values come."""

from __future__ import annotations

from preflight.loaders.document import Node
from preflight.source.record import NamedTuple

SELF = "_self_"
_GLOBAL = "_global_"


class Default(NamedTuple):
    """An entry. group: "" where it names a config itself. option: None where none is chosen, or the names of several.

    package: what stands behind @, None without it. place: the folder and the package of the config that has the entry.
    """

    group: str
    option: str | tuple[str, ...] | None
    package: str | None = None
    optional: bool = False
    override: bool = False
    folder: str = ""
    parent: str = ""

    @property
    def is_self(self) -> bool:
        """Whether it is the place of the config itself among its defaults."""
        return not self.group and self.option == SELF

    @property
    def group_path(self) -> str:
        """The folder of the config."""
        inner = self.group if self.group else str(self.option).lstrip("/").rpartition("/")[0]
        if (self.group or str(self.option)).startswith("/"):
            return inner.lstrip("/")
        return "/".join(part for part in (self.folder, inner) if part)

    @property
    def config_path(self) -> str:
        """The config among the folders that are searched, without .yaml."""
        if self.group:
            return f"{self.group_path}/{self.option}"
        path = str(self.option)
        return path[1:] if path.startswith("/") else "/".join(part for part in (self.folder, path) if part)

    def package_of(self, header: str | None) -> str:
        """The keys below which its values come. header: what its file says itself."""
        own = self.package if self.package is not None else header
        if own is None:
            own = (self.group or str(self.option).lstrip("/").rpartition("/")[0]).lstrip("/").replace("/", ".")
        if "_group_" in own:
            own = f"{_GLOBAL}.{own.replace('_group_', self.group_path.replace('/', '.'))}"
        whole = ".".join(part for part in (self.parent, own) if part)
        at = whole.rfind(_GLOBAL)
        return whole if at < 0 else whole[at + len(_GLOBAL) + 1 :]

    @property
    def override_key(self) -> str:
        """What an override of its choice is called."""
        final = self.package_of(None)
        return (
            self.group_path if final == self.group_path.replace("/", ".") else f"{self.group_path}@{final or _GLOBAL}"
        )


def defaults_of(tree: Node) -> tuple[Default, ...] | None:
    """The entries of a config, None where it has no list; what is no entry of Hydra's is left out."""
    listed = tree.get("defaults")
    if listed is None or listed.kind != "sequence":
        return None
    return tuple(entry for item in listed.items if (entry := _entry(item)) is not None)


def _entry(item: Node) -> Default | None:
    if item.kind == "scalar":
        path, _, package = str(item.value).partition("@")
        return Default("", path, _package(package) if "@" in str(item.value) else None)
    if item.kind != "mapping" or len(item.entries) != 1:
        return None
    words = str(item.entries[0].key.value).split()
    if not words:
        return None
    group, _, package = words[-1].partition("@")
    value = item.entries[0].value
    option = tuple(str(one.value) for one in value.items) if value.kind == "sequence" else _option(value)
    placed = _package(package) if "@" in words[-1] else None
    if group == "" or (words[-1] == "optional" and len(words) == 1):
        return None
    return Default(group, option, placed, "optional" in words[:-1], "override" in words[:-1])


def _package(text: str) -> str:
    return "" if text == "_here_" else text.rpartition(":")[2]


def _option(value: Node) -> str | None:
    return None if value.value is None or value.kind != "scalar" else str(value.value)
