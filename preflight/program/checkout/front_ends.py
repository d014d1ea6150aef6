"""The program that starts Megatron underneath, where it lies in a folder above a run: its release, its own options."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from preflight.program.checkout.files import Files, listed
from preflight.program.checkout.packages import MOST_FOLDERS
from preflight.source.record import NamedTuple

if TYPE_CHECKING:  # most runs lie in no checkout of a door
    from preflight.program.checkout.parser_options import OwnOption


class DoorLayout(NamedTuple):
    """How a program lies in a checkout. mark: a file that shows it; version: the file with its release, and the pattern
    that finds it; parser: where it adds options, () where its keys are none of a parser; configs: the folder of the
    files that have its keys."""

    name: str
    mark: str
    version: tuple[str, str]
    parser: tuple[str, ...] = ()
    configs: str = ""


MOST_CONFIGS = 100
SLIME, BACKEND = "slime", "backends/megatron_utils/arguments.py"
_QUOTED = r"version(?:__)?\s*=\s*['\"](\d[\w.]*)['\"]"
_PARTS = r"MAJOR\s*=\s*(\d+)\s+MINOR\s*=\s*(\d+)\s+PATCH\s*=\s*(\d+)"


def _slime(package: str) -> tuple[str, ...]:
    """The files in which slime adds options: its own, and those of each program that trains."""
    backends = (f"{package}/backends/{name}_utils/arguments.py" for name in ("megatron", "fsdp"))
    return (f"{package}/utils/arguments.py", *backends)


LAYOUTS = (
    DoorLayout("slime", "slime/utils/arguments.py", ("setup.py", _QUOTED), _slime("slime")),
    DoorLayout("verl", "verl/version/version", ("verl/version/version", r"(\d[\w.]*)"), configs="verl/trainer/config"),
    DoorLayout("nemo-rl", "nemo_rl/package_info.py", ("nemo_rl/package_info.py", _PARTS)),
    DoorLayout(
        "megatron-bridge", "src/megatron/bridge/package_info.py", ("src/megatron/bridge/package_info.py", _PARTS)
    ),
    DoorLayout("ms-swift", "swift/version.py", ("swift/version.py", _QUOTED)),
)


class DoorPackage:
    """A program in a folder. version: "" where no file says it; evidence: the file that says it, or shows the
    program."""

    def __init__(self, layout: DoorLayout, files: Files) -> None:
        self._layout, self.files = layout, files
        file, pattern = layout.version
        found = re.search(pattern, files.text(file) or "") if file else None
        self.version = ".".join(found.groups()) if found else ""
        self.evidence = file if self.version else layout.mark

    @cached_property
    def options(self) -> tuple[OwnOption, ...]:
        """The options that its parser adds."""
        texts = [text for name in self._layout.parser if (text := self.files.code(name)) is not None]
        if not texts:
            return ()
        from preflight.program.checkout.parser_options import own_options

        return tuple({one.option: one for text in reversed(texts) for one in own_options(text)}.values())

    @cached_property
    def _configured(self) -> str:
        """The files with its keys, one after the other."""
        folder = self._layout.configs
        names = list(self.files.names(folder, (".yaml",))) if folder else []
        return "\n".join(self.files.text(name) or "" for name in names[:MOST_CONFIGS])

    def configures(self, key: str) -> bool:
        """Whether one of its files has a key of that name."""
        name = re.escape(key.rpartition(".")[2])
        return re.search(rf"(?m)^[ \t]*{name}[ \t]*:", self._configured) is not None


def _renamed(files: Files) -> Iterator[DoorLayout]:
    """slime under another name, as its forks have it: a package with the same files."""
    for entry in listed(files.root)[:MOST_FOLDERS]:
        mark = f"{entry.name}/utils/arguments.py"
        if entry.name != SLIME and os.path.isfile(os.path.join(files.root, entry.name, BACKEND)):
            yield DoorLayout(SLIME, mark, ("", ""), _slime(entry.name))


def door_in(folders: Iterator[Files], name: str) -> DoorPackage | None:
    """The program of a door in the nearest of some folders that has it."""
    layouts = [layout for layout in LAYOUTS if layout.name == name]
    for files in folders:
        for layout in (*layouts, *(_renamed(files) if name == SLIME else ())):
            if files.text(layout.mark) is not None:
                return DoorPackage(layout, files)
    return None
