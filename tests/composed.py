"""Configs composed by preflight and by OmegaConf and Hydra, as comparable plain data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from preflight.loaders import load
from preflight.loaders.command_line import load_command
from preflight.loaders.composition.hydra import Hydra, composed
from preflight.loaders.composition.inheritance import Inherited, inherited
from preflight.loaders.composition.overrides import Override, Refused, apply, read_override
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Document, Node, Unknown
from preflight.source.source_file import Source


def written(folder: Path, files: dict[str, str]) -> Path:
    """A folder with files in it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def document(path: Path) -> Document:
    return load(Source.read(path, str(path)))[0]


def overrides(*words: str) -> tuple[Override, ...]:
    """Words of a command as overrides."""
    launch = load_command(["python", "train.py", *words]).launch
    assert launch is not None
    found = [read_override(word) for word in launch.words]
    assert None not in found, [w for w, f in zip(words, found, strict=True) if f is None]
    return tuple(one for one in found if one is not None)


def hydra(folder: Path, name: str, *words: str) -> tuple[Hydra, Composed, tuple[Refused, ...]]:
    """A config of a folder, with overrides."""

    def opened(path: str) -> Document | None:
        file = folder / f"{path}.yaml"
        return document(file) if file.is_file() else None

    found = composed(name, opened, overrides(*words))
    assert found is not None
    tree, refused = apply(found.tree, found.overrides)
    return found, Composed(tree, "a file is missing" if found.missing else ""), refused


def parents(path: Path) -> tuple[Inherited, Composed]:
    """A config that names its parents by paths."""

    def opened(current: Document, name: str) -> Document | None:
        assert current.source.path is not None
        file = current.source.path.parent / name
        return document(file) if file.is_file() else None

    found = inherited(document(path), opened)
    return found, Composed(found.tree, "a file is missing" if found.missing else "")


def plain(config: Composed, *path: str | int) -> Any:
    """A part of a config as plain data; unknown parts are "?"."""
    return _plain(config, config.at(*path))


def _plain(config: Composed, found: Found) -> Any:
    if isinstance(found.value, Unknown):
        return "?"
    node: Node | None = found.node
    if node is None or node.kind == "scalar":
        return found.value
    if node.kind == "mapping":
        return {e.key.value: plain(config, *found.path, e.key.value) for e in node.entries if not e.shadowed}
    return [plain(config, *found.path, index) for index, _ in enumerate(node.items)]


def real_hydra(folder: Path, name: str, *words: str) -> Any:
    """The result of Hydra. Skips if it is not installed; raises its exception if it refuses."""
    pytest.importorskip("hydra", reason="hydra-core is not installed")
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(folder), version_base=None):
        config = compose(name, overrides=list(words))
    return OmegaConf.to_container(config, resolve=True)


def real_omegaconf(text: str, resolvers: Sequence[str] = ()) -> Any:
    """The result of OmegaConf for one text, with interpolations resolved. Skips if it is not installed."""
    pytest.importorskip("omegaconf", reason="omegaconf is not installed")
    from omegaconf import OmegaConf

    own = {"mul": lambda a, b: a * b, "div": lambda a, b: a / b, "max": lambda a, b: max(a, b)}
    for name in resolvers:
        if not OmegaConf.has_resolver(name):
            OmegaConf.register_new_resolver(name, own[name])
    return OmegaConf.to_container(OmegaConf.create(text), resolve=True)
