"""The users of a config: the front end that starts Megatron, and the scripts next to the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from preflight.program.checkout.framework_discovery import MOST_FOLDERS, Files, listed
from preflight.run.version_ranges import matches, numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:  # most runs are in no checkout of a front end
    from preflight.program.checkout.parser_options import OwnOption


class FrontEndLayout(NamedTuple):
    """How a program is in a checkout. mark: a file that shows it; version: the file with its release, and the pattern
    that finds it; parser: where it adds options, () if its keys do not come from a parser; configs: the folder of the
    files that have its keys; also: folders of other trainers with such files; fork: its name where that is another
    one."""

    name: str
    mark: str
    version: tuple[str, str]
    parser: tuple[str, ...] = ()
    configs: str = ""
    also: tuple[str, ...] = ()
    fork: str = ""


MOST_CONFIGS = 100
SLIME, BACKEND = "slime", "backends/megatron_utils/arguments.py"
_QUOTED = r"version(?:__)?\s*=\s*['\"](\d[\w.]*)['\"]"
_PARTS = r"MAJOR\s*=\s*(\d+)\s+MINOR\s*=\s*(\d+)\s+PATCH\s*=\s*(\d+)(?:\s+PRE_RELEASE\s*=\s*['\"](\w*)['\"])?"
"""The numbers of a release, and the suffix of a release candidate."""
_PROJECT = r"(?m)^version = \"(\d[\w.-]*)\""


def _slime(package: str) -> tuple[str, ...]:
    """The files in which slime adds options: its own, and those of each program that trains or generates."""
    backends = (f"{package}/backends/{name}_utils/arguments.py" for name in ("megatron", "fsdp", "sglang"))
    return (f"{package}/utils/arguments.py", *backends)


LAYOUTS = (
    FrontEndLayout("slime", "slime/utils/arguments.py", ("setup.py", _QUOTED), _slime("slime")),
    FrontEndLayout(
        "verl",
        "verl/version/version",
        ("verl/version/version", r"(\d[\w.]*)"),
        configs="verl/trainer/config",
        also=("verl/experimental", "recipe"),
    ),
    FrontEndLayout("nemo-rl", "nemo_rl/package_info.py", ("nemo_rl/package_info.py", _PARTS)),
    FrontEndLayout(
        "megatron-bridge", "src/megatron/bridge/package_info.py", ("src/megatron/bridge/package_info.py", _PARTS)
    ),
    FrontEndLayout("ms-swift", "swift/version.py", ("swift/version.py", _QUOTED)),
    FrontEndLayout("areal", "areal/api/alloc_mode.py", ("pyproject.toml", _QUOTED)),
    FrontEndLayout("flagscale", "flagscale/transformations/__init__.py", ("pyproject.toml", _PROJECT)),  # after 0.9.0
)


_VERSION = r"v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:dev|rc|post)\d*)?(?:\.[a-z]+(?:_[a-z\d]+)+)?)(?![A-Za-z\d])"
"""A release, or a variant of one such as v0.5.0.nemotron_3_super."""
_SPELT = {"ms-swift": r"(?:ms[-_]?)?swift", "nemo-rl": r"nemo[-_]?rl", "megatron-bridge": r"megatron[-_]bridge"}
"""How a front end is written in names of packages, images and folders."""
_BRANCH = lazy_pattern(rf"(?:-b|--branch)[ =](?:release/)?{_VERSION}")
GLUED = {"ms-swift": r"|(?<=swift)(?=\d)", "verl": r"|(?<=verl)(?=\d)"}
"""Names that tags of images have directly before the release, such as `app-verl0.5-vllm0.10.0`."""
LONGEST = 1000
"""Characters of a line that are searched for a release."""


def named_release(text: str, name: str) -> str:
    """The release of a front end that a text installs, clones, or has in the name of an image or a folder, outside of
    comments; "" if it names none, or several."""
    word = _SPELT.get(name, re.escape(name))
    if re.search(word, text, re.IGNORECASE) is None:
        return ""
    join = r"(?:\[[\w,-]*\])?(?:\s*[=~]=\s*|(?:\.git)?@(?:release[/_-])?|[-_:](?:release[/_-])?)"
    glued = GLUED.get(name, "")
    named = re.compile(rf"(?i)(?<![^\W\d_]){word}(?:{join}{glued}){_VERSION}")
    cloned = re.compile(rf"(?i)/{word}(?:\.git)?(?![\w-])")
    said = set[str]()
    for line in (one[:LONGEST] for one in text.split("\n") if not one.lstrip().startswith("#") or "#SBATCH" in one):
        said.update(match[1] for match in named.finditer(line))
        if "clone" in line and cloned.search(line) is not None:
            said.update(match[1] for match in _BRANCH.finditer(line))
    return said.pop() if len(said) == 1 else ""


_BOUNDS = r"(?:[<>]=?|!=)\s*\d[\d.]*"


def named_series(text: str, name: str, described: Iterable[str]) -> str:
    """The newest described release of a front end in the range that a text installs, if all in it differ in the last
    number only; otherwise ""."""
    word = _SPELT.get(name, re.escape(name))
    wanted = re.compile(
        rf"(?i)(?<![^\W\d_]){word}(?:\[[\w, -]*\])?[\"']?\s*(?:=\s*[\"'])?({_BOUNDS}(?:\s*,\s*{_BOUNDS})*)"
    )
    lines = (one[:LONGEST] for one in text.split("\n") if not one.lstrip().startswith("#"))
    ranges = {match[1] for line in lines for match in wanted.finditer(line)}
    inside = [one for one in described if one[:1].isdigit() and len(ranges) == 1 and matches(one, *ranges)]
    return max(inside, key=numbers) if len({numbers(one)[:2] for one in inside}) == 1 else ""


class FrontEndPackage:
    """A front end in a folder. version: "" if no file states it; evidence: the file that states it, or identifies the
    front end."""

    def __init__(self, layout: FrontEndLayout, files: Files) -> None:
        self._layout, self.files = layout, files
        file, pattern = layout.version
        found = re.search(pattern, files.text(file) or "") if file else None
        parts = found.groups() if found else ()
        self.version = ".".join(parts[:3]) + "".join(part or "" for part in parts[3:])
        self.evidence = file if self.version else layout.mark
        stated = re.search(_QUOTED, files.text("setup.py") or "") if layout.fork else None
        self.fork = " ".join((layout.fork, *(stated.groups() if stated else ())))
        """The name of a fork under another name, with its release if setup.py states it; "" otherwise."""

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
        """The files with its keys, one after another."""
        folders = (self._layout.configs, *self._layout.also) if self._layout.configs else ()
        names = (name for folder in folders for name in islice(self.files.names(folder, (".yaml",)), MOST_CONFIGS))
        return "\n".join(self.files.text(name) or "" for name in names)

    def configures(self, key: str) -> bool:
        """Whether one of its files has a key of that name."""
        name = re.escape(key.rpartition(".")[2])
        return re.search(rf"(?m)^[ \t]*{name}[ \t]*:", self._configured) is not None

    def has_key(self, config: str, key: str) -> bool:
        """Whether a config has a key at its place: in its generated file, or in a file that includes no others. If
        neither exists, whether one of the files has a key of that name."""
        folder = self._layout.configs
        whole = self.files.text(f"{folder}/_generated_{config}.yaml") or self.files.text(f"{folder}/{config}.yaml")
        if whole is None or re.search(r"(?m)^defaults:", whole) is not None:
            return self.configures(key)
        above: list[tuple[int, str]] = []
        for indent, name in re.findall(r"(?m)^( *)([\w-]+):", whole):
            above = [*(one for one in above if one[0] < len(indent)), (len(indent), name)]
            if ".".join(one for _, one in above) == key:
                return True
        return False

    def instantiates(self, section: str) -> bool:
        """Whether one of the files for a section of its configs names a class for it."""
        folder = f"{self._layout.configs}/{section}"
        texts = (self.files.text(name) or "" for name in islice(self.files.names(folder, (".yaml",)), MOST_CONFIGS))
        return any(re.search(r"(?m)^_target_[ ]*:", text) is not None for text in texts)

    def mentions(self, name: str) -> bool:
        """Whether code of the program has a name in quotes, as registries and lists of choices do."""
        folder = self._layout.mark.split("/")[0]
        quoted = (f'"{name}"', f"'{name}'")
        texts = (self.files.text(path) or "" for path in self.files.names(folder))
        return any(one in text for text in texts for one in quoted)

    def declares(self, key: str) -> bool:
        """Whether code of the program has a key as an option in quotes, or as a field of a class."""
        name = "[-_]".join(map(re.escape, re.split("[-_]", key.lstrip("-"))))
        declared = re.compile(rf"[\"']--{name}[\"']|^ {{1,8}}{name} ?:", re.MULTILINE)
        folder = self._layout.mark.split("/")[0]
        return any(declared.search(self.files.text(path) or "") is not None for path in self.files.names(folder))

    def says(self, file: str, name: str) -> bool:
        """Whether a file of its code has a name in quotes."""
        text = self.files.text(f"{self._layout.mark.partition('/')[0]}/{file}") or ""
        return any(f"{quote}{name}{quote}" in text for quote in "\"'")

    def has_config(self, name: str) -> bool:
        """Whether the folder with its keys has a file of that name."""
        folder = self._layout.configs
        return bool(folder) and self.files.text(f"{folder}/{name}.yaml") is not None


def _renamed(files: Files) -> Iterator[FrontEndLayout]:
    """slime under another name, as in its forks: a package with the same files."""
    for entry in listed(files.root)[:MOST_FOLDERS]:
        mark = f"{entry.name}/utils/arguments.py"
        if entry.name != SLIME and os.path.isfile(os.path.join(files.root, entry.name, BACKEND)):
            yield FrontEndLayout(SLIME, mark, ("", ""), _slime(entry.name), fork=entry.name)


def front_end_in(folders: Iterator[Files], name: str) -> FrontEndPackage | None:
    """The front end in the first of some folders that contains one."""
    layouts = [layout for layout in LAYOUTS if layout.name == name]
    for files in folders:
        for layout in (*layouts, *(_renamed(files) if name == SLIME else ())):
            if files.text(layout.mark) is not None:
                return FrontEndPackage(layout, files)
    return None


MOST_SCRIPTS = 100
"""Scripts of a folder that are looked at."""
HIGHEST_RUNNER = 3
"""Folders above a config in which a runner is looked for."""
_NAMED = lazy_pattern(r"[\"'/]([\w.+-]+\.ya?ml)\b")
_LAUNCHED = lazy_pattern(r"(?<![\w.+-])([\w.+-]+\.ya?ml)\b")
_ENTRY = "run_mindformer.py"
_NOT_FALSE = lazy_pattern(r"!=\s*\\?[\"']?false")


class Neighbours:
    """The scripts of one folder."""

    def __init__(self, folder: str) -> None:
        self.folder, self.files = folder, Files(folder)

    @cached_property
    def _names(self) -> list[str]:
        return [entry.name for entry in listed(self.folder)]

    def _scripts(self, suffix: str) -> list[tuple[str, str]]:
        names = [name for name in self._names if name.endswith(suffix)][:MOST_SCRIPTS]
        return [(name, text) for name in names if (text := self.files.text(name)) is not None]

    @cached_property
    def programs(self) -> dict[str, str]:
        """Config → the Python program that contains its name in a string."""
        return {
            config: name
            for name, text in reversed(self._scripts(".py"))
            if ".yaml" in text or ".yml" in text
            for config in _NAMED.findall(text)
        }

    @cached_property
    def launches(self) -> dict[str, tuple[str, ...]]:
        """Config → the scripts that contain its name and that of MindFormers' entry script."""
        found: dict[str, tuple[str, ...]] = {}
        for name, text in self._scripts(".sh"):
            for config in dict.fromkeys(_LAUNCHED.findall(text)) if _ENTRY in text else ():
                found[config] = (*found.get(config, ()), name)
        return found

    @cached_property
    def runner(self) -> str:
        """The script that passes on the options of a functional test, without false ones."""
        return next((name for name, text in self._scripts(".sh") if _drops_false(text)), "")


def _drops_false(text: str) -> bool:
    """Whether a script passes on the options of a test except false ones, in one line or two."""
    lines = [*text.split("\n"), ""] if ".MODEL_ARGS" in text else []
    taken = (at for at, line in enumerate(lines) if ".MODEL_ARGS" in line)
    return any(_NOT_FALSE.search(line) for at in taken for line in lines[at : at + 2])


def folders_above(start: str, number: int) -> list[str]:
    """A folder and some of those above it."""
    found = [start]
    while len(found) <= number and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found
