"""The files of a checkout, and the packages and releases that they are of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from preflight.source.budget import Allowance
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source

MAX_BYTES = 1_000_000
"""Maximum characters of one file: the largest parser of a framework has 300,000."""
MOST_FILES = 4_000
MOST_BYTES = 40_000_000
"""Maximum of all files opened in one checkout."""
MOST_ENTRIES = 20_000
MOST_BESIDE = 5_000
"""Entries of one folder; of a larger one none is looked at."""
MAX_CODE, MOST_CODE = 300_000, 2_000_000
"""Characters of a file, and of a checkout, parsed as Python: the largest parser of a framework has 250,000."""
DEEPEST = 10
NEVER = ("node_modules", "__pycache__", "site-packages", "build")


class Files:
    """The files below a folder, each read once. looked: the paths opened or searched."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.looked: dict[str, None] = {}
        self._real = os.path.realpath(root)
        self._files, self._bytes, self._code = Allowance(MOST_FILES), Allowance(MOST_BYTES), Allowance(MOST_CODE)
        self._parsed: set[str] = set()
        self._texts: dict[str, str | None] = {}

    def text(self, name: str) -> str | None:
        """The text of a file; None if it is missing, outside, or a limit is reached."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def code(self, name: str) -> str | None:
        """The text of a file to parse as Python; None also after the parsing limit."""
        text = self.text(name)
        if text is None or name in self._parsed:
            return text
        if len(text) > MAX_CODE or not self._code.draw(len(text)):
            return None
        self._parsed.add(name)
        return text

    def _read(self, name: str) -> str | None:
        path = os.path.join(self.root, name)
        self.looked[path] = None
        try:
            size = os.path.getsize(path) if self._inside(path) else MAX_BYTES + 1
            if size > MAX_BYTES or not self._bytes.draw(size) or not self._files.draw(1):
                return None
            return Source.read(Path(path), limit=MAX_BYTES).text
        except (InputError, OSError):
            return None

    def _inside(self, path: str) -> bool:
        """Whether a path, with links resolved, is a file below the folder."""
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return False
        return real.startswith(os.path.join(self._real, "")) and os.path.isfile(real)

    def names(self, folder: str = "", suffixes: tuple[str, ...] = (".py",), deepest: int = DEEPEST) -> Iterator[str]:
        """The files below a folder of the checkout with a suffix, sorted, without links and hidden folders."""
        waiting = [(folder, 0)]
        seen = 0
        while waiting and seen < MOST_ENTRIES:
            at, depth = waiting.pop()
            inner = []
            for entry in listed(os.path.join(self.root, at)):
                seen += 1
                name = f"{at}/{entry.name}" if at else entry.name
                if entry.is_symlink() or seen > MOST_ENTRIES:
                    continue
                if entry.is_dir():
                    inner += [(name, depth + 1)] if depth < deepest and _entered(entry.name) else []
                elif entry.name.endswith(suffixes):
                    yield name
            waiting += reversed(inner)


def _entered(name: str) -> bool:
    return not name.startswith(".") and name not in NEVER


def listed(folder: str) -> list[os.DirEntry[str]]:
    """The contents of a folder, sorted by name; empty if it cannot be listed or has too many entries."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, MOST_BESIDE + 1))
        return sorted(found, key=lambda entry: entry.name) if len(found) <= MOST_BESIDE else []
    except (OSError, ValueError):
        return []


class Layout(NamedTuple):
    """The layout of a framework in a checkout.

    marks: files of which one shows that it is there. version: the file that names the release, and the pattern that
    finds it.
    parser: folders and files, below the package, in which options are added. calls: names of functions that check.
    older: another file that names the release, in releases whose package does not.
    """

    framework: str
    package: str
    marks: tuple[str, ...]
    version: tuple[str, str]
    parser: tuple[str, ...]
    calls: str
    older: tuple[str, str] = ("", "")


MOST_FOLDERS = 100
"""Neighbouring folders that are looked into for a framework."""
BESIDE = ("third_party", "3rdparty", "thirdparty", "external", "submodules", "libs", "deps")
_MEGATRON_VERSION = r"MAJOR\s*=\s*(\d+)\s+MINOR\s*=\s*(\d+)\s+PATCH\s*=\s*(\d+)"
_QUOTED_VERSION = r"^__version__\s*=\s*['\"](\d+)\.(\d+)\.(\w+)"
_SETUP_VERSION = r"^[ \t]*version\s*=\s*['\"](\d+)\.(\d+)\.(\w+)"
_NONE = ("", "$^")
MINDSPEED_CALLS = r"(^|\.)(incompatible_check|dependency_check|check_\w+|_check_\w+|_?validate_\w+)$"
LAYOUTS = (
    Layout(
        "megatron",
        "megatron",
        ("megatron/core/package_info.py", "megatron/training/arguments.py", "megatron/arguments.py"),
        ("megatron/core/package_info.py", _MEGATRON_VERSION),
        ("training/arguments.py", "arguments.py", "post_training/arguments.py", "training/config"),
        r"^_check_arg_is_not_none$",
    ),
    Layout(  # its first generation, before the package existed
        "megatron",
        ".",
        ("gpt2_data_loader.py",),
        _NONE,
        ("arguments.py",),
        r"^_check_arg_is_not_none$",
    ),
    Layout(
        "mindspeed-llm",
        "mindspeed_llm",
        ("mindspeed_llm/__init__.py", "mindspeed_llm/training/arguments.py"),
        _NONE,
        ("training/arguments.py", "features_manager", "tasks/finetune/lora"),
        MINDSPEED_CALLS,
    ),
    Layout(
        "mindspeed-llm",
        "modellink",
        ("modellink/__init__.py", "modellink/training/arguments.py", "modellink/arguments.py"),
        _NONE,
        ("training/arguments.py", "arguments.py", "features_manager", "tasks/finetune/lora"),
        MINDSPEED_CALLS,
    ),
    Layout(
        "mindspeed",
        "mindspeed",
        ("mindspeed/arguments.py", "mindspeed/megatron_adaptor.py"),
        _NONE,
        ("arguments.py", "features_manager"),
        MINDSPEED_CALLS,
    ),
    Layout(
        "mindformers",
        "mindformers",
        ("mindformers/__init__.py", "mindformers/version_info.txt"),
        ("mindformers/__init__.py", _QUOTED_VERSION),
        (),
        r"(^|\.)_?(check|validate|verify)_\w+$|^(Validator|validator)\.",
        ("setup.py", _SETUP_VERSION),  # before 1.1
    ),
)
OTHER_READERS: Mapping[str, str] = {"mindrlhf": "MindRLHF"}
"""Packages of programs that read configs of a framework in their own way."""


def found_in(folder: str) -> tuple[Layout, ...]:
    """The frameworks with packages in a folder."""
    return tuple(one for one in LAYOUTS if any(os.path.isfile(os.path.join(folder, mark)) for mark in one.marks))


def found_below(folder: str) -> dict[Layout, str]:
    """The frameworks in the folders of a repository that occur exactly once."""
    places: dict[Layout, list[str]] = {}
    for one in _folders(folder):
        for layout in found_in(one):
            places.setdefault(layout, []).append(one)
    return {layout: at[0] for layout, at in places.items() if len(at) == 1}


def _folders(folder: str) -> list[str]:
    """The folders in a folder, and in its folder for third-party code."""
    own = [
        entry.path for entry in listed(folder)[:MOST_FOLDERS] if not entry.name.startswith(".") and _is_folder(entry)
    ]
    deeper = [one for place in own if os.path.basename(place) in BESIDE for one in _folders(place)]
    return [*own, *deeper][: MOST_FOLDERS * 2]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def said_version(text: str, pattern: str) -> str:
    """The release in a version file, or ""."""
    found = re.search(pattern, text, re.MULTILINE)
    return ".".join(found.groups()) if found else ""
