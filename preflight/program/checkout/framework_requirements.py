"""The releases that the files of a folder install: requirements, projects, Dockerfiles, environments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from preflight import schemas
from preflight.program.checkout.framework_discovery import MOST_FOLDERS, Files, listed
from preflight.run.version_ranges import matches
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.type_hints import Any

INSTALLS = (".gitmodules", "pyproject.toml", "setup.py", "install.sh", "setup.sh", "environment.yml")
DEEPER = ("docker", "dockerfiles", "requirements", "reqs")
"""Folders whose files also install packages."""
_TAG = lazy_pattern(r"\bcore_[vr](\d+\.\d+\.\d+)|\bmegatron[-_]core(?:\[[\w, -]*\])?\s*(?:==|~=)\s*(\d+\.\d+\.\d+)")
_IN_NAME = lazy_pattern(
    r"(?i)(?:\b|_)megatron[-_](?:lm|core)[-_](?:core[-_])?[rv]?([0-3])[._](\d+)(?:[._](\d+))?(?![\w.]*\d)"
)
"""A folder or a branch that is named after a release, such as `third_party/megatron_lm_0_9_0`."""
_COMMENT = lazy_pattern(r"(?m)^[ \t]*#.*$")
_MINDFORMERS = lazy_pattern(r"\bmindformers\s*(?:==|~=)\s*(\d+\.\d+\.\d+)")
_RANGE = lazy_pattern(
    r"\b(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*(?:=\s*[\"']|\(\s*)?"
    r"((?:[<>]=?|!=)\s*\d[\d.]*(?:\s*,\s*(?:[<>]=?|!=)\s*\d[\d.]*)*)"
)
"""A package in a range of releases."""
_SERIES = lazy_pattern(r"\b(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*==\s*(\d+)\.(\d+)\.\*")
"""A package at any patch of a release."""
_POETRY = lazy_pattern(
    r"\b(megatron[-_]core|mindformers)[\"']?\s*=\s*(?:\{[^{}\n]{0,100}?\bversion\s*=\s*)?[\"']([\^~]?)(\d+)\.(\d+)(?:\.(\d+))?[\"']"
)
"""A package in Poetry's spelling: ^0.14.1 and ~0.14.1 take its patches, and ^1.2 every 1.x from then on."""
ENVIRONMENTS = (".venv", "venv", "env")
"""Folders in which packages are installed for a run next to them."""
_INSTALLED = lazy_pattern(r"(megatron_core|mindspeed_llm|mindspeed|mindformers)-(\d+\.\d+\.\d+)[^/]*\.dist-info")
_CLONED = lazy_pattern(r"(?i)/(megatron-lm|mindspeed-llm|modellink|mindspeed|mindformers)(?=\.git|[\s/\"']|$)")
_CLONE = lazy_pattern(r"\bclone\b[^\n;&|]{1,300}")
_AT = lazy_pattern(r"(?i)\b(mindspeed-llm|modellink|mindformers)(?:\.git)?(?=[\s\"']|$)")
_BRANCH = lazy_pattern(r"(?i)(?:-b|--branch)[ =][rv]?(\d+\.\d+\.(?:rc)?\d+)(?![\w.])")
_CHECKED_OUT = lazy_pattern(
    r"(?i)\bcd\s+[\"']?(?:[\w./~-]{0,100}/)?(mindspeed-llm|modellink|mindformers)/?[\"']?\s*(?:&&|;|\n)\s*"
    r"git\s+checkout\s+(?:tags/)?[rv]?(\d+\.\d+\.(?:rc)?\d+)(?![\w.])"
)
"""A repository that is cloned, and the tag or branch at which it is."""
_NAMES = {"megatron-lm": "megatron", "megatron-core": "megatron", "modellink": "mindspeed-llm"}


def installing(folder: str) -> list[str]:
    """The files of a folder that install packages."""
    entries = [entry.name for entry in listed(folder)[:MOST_FOLDERS]]
    return [name for name in (*INSTALLS, *filter(_installs, entries)) if name in entries]


def _installs(name: str) -> bool:
    return name.startswith(("requirements", "Dockerfile")) or name.endswith("ockerfile")


def installing_deeper(folder: str) -> list[str]:
    """The files that install packages in folders for these."""
    found = []
    for entry in listed(folder)[:MOST_FOLDERS]:
        if entry.name.lower() in DEEPER and not entry.is_symlink() and entry.is_dir():
            names = [one.name for one in listed(entry.path)[:MOST_FOLDERS] if one.is_file(follow_symlinks=False)]
            lists = (".txt", ".in") if entry.name.lower() in DEEPER[2:] else ()
            found += [f"{entry.name}/{name}" for name in names if _installs(name) or name.endswith(lists)]
    return found


def agreed(stated: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The release that several files state, and the first of them; "" where they state none, or different ones. stated:
    release and file."""
    found = [one for one in stated if one[0]]
    return found[0] if len({release for release, _ in found}) == 1 else ("", "")


def declared(files: Files) -> dict[str, tuple[str, str]]:
    """Framework → the release that the files of a folder install ("" if not stated), and the file that states it."""
    found: dict[str, tuple[str, str]] = {}
    for name in installing(files.root):
        text = files.text(name)
        for framework, release in declared_in(text).items() if text else ():
            if framework not in found or (release and not found[framework][0]):
                found[framework] = (release, name)
    deeper = [(name, declared_in(files.text(name) or "")) for name in installing_deeper(files.root)]
    for framework in dict.fromkeys(framework for _, said in deeper for framework in said):
        if not found.get(framework, ("", ""))[0]:
            release, name = agreed((said.get(framework, ""), name) for name, said in deeper)
            found[framework] = (release, name) if release else found.get(framework, ("", deeper[0][0]))
    for framework, said_by in installed_in(files.root).items():
        if not found.get(framework, ("", ""))[0]:
            found[framework] = said_by
    return found


def release_of_front_end(files: Files, name: str, described: Iterable[str]) -> tuple[str, str]:
    """The file of a folder that installs a front end, and the release that it names; "" for none. described: the
    releases that a range may mean."""
    from preflight.program.checkout.config_consumers import named_release, named_series

    def said(file: str) -> str:
        text = files.text(file) or ""
        return named_release(text, name) or named_series(text, name, described)

    for file in sorted(installing(files.root)):
        if release := said(file):
            return file, release
    release, file = agreed((said(file), file) for file in installing_deeper(files.root))
    if release:
        return file, release
    package = re.compile(rf"({re.escape(name.replace('-', '_'))})-(\d+\.\d+\.\d+)[^/]*\.dist-info")
    release, file = installed_in(files.root, package).get(name, ("", ""))
    return file, release


def declared_in(text: str) -> dict[str, str]:
    """Frameworks that a text installs or clones, with the release if it names exactly one."""
    text = _COMMENT.sub("", text).replace("\\\n", " ")
    said: dict[str, set[str]] = {}
    for command in _CLONE.finditer(text):
        repository, branch = _AT.search(command[0]), _BRANCH.search(command[0])
        if repository is not None and branch is not None:
            name = repository[1].lower()
            said.setdefault(_NAMES.get(name, name), set()).add(branch[1])
    for match in _CHECKED_OUT.finditer(text):
        name = match[1].lower()
        said.setdefault(_NAMES.get(name, name), set()).add(match[2])
    for match in _CLONED.finditer(text):
        name = match[1].lower()
        said.setdefault(_NAMES.get(name, name), set())
    for match in _TAG.finditer(text):
        said.setdefault("megatron", set()).add(match[1] or match[2])
    for match in _IN_NAME.finditer(text):
        said.setdefault("megatron", set()).add(".".join((match[1], match[2], match[3] or "0")))
    for match in _MINDFORMERS.finditer(text):
        said.setdefault("mindformers", set()).add(match[1])
    for match in _RANGE.finditer(text):
        name = match[1].replace("_", "-")
        framework = _NAMES.get(name, name)
        said.setdefault(framework, set()).update(_inside(framework, match[2]))
    for match in _SERIES.finditer(text):
        name, major, minor = match[1].replace("_", "-"), match[2], int(match[3])
        framework = _NAMES.get(name, name)
        said.setdefault(framework, set()).update(_inside(framework, f">={major}.{minor},<{major}.{minor + 1}"))
    for match in _POETRY.finditer(text):
        name, sign, major, minor, patch = match[1].replace("_", "-"), match[2], int(match[3]), int(match[4]), match[5]
        above = f"{major + 1}" if sign == "^" and major else f"{major}.{minor + 1}"
        framework, release = _NAMES.get(name, name), f"{major}.{minor}.{patch or 0}"
        said.setdefault(framework, set()).update(_inside(framework, f">={release},<{above}") if sign else (release,))
    return {framework: next(iter(releases)) if len(releases) == 1 else "" for framework, releases in said.items()}


def _inside(framework: str, wanted: str) -> list[str]:
    """The described release in a range, if there is exactly one; otherwise the patch release in it, if there is only
    one."""
    releases = schemas.read("releases")
    for known in (releases[framework], releases["patches"].get(framework, ())):
        if inside := [one for one in known if matches(one, wanted)]:
            return inside if len(inside) == 1 else []
    return []


def installed_in(root: str, known: Any = _INSTALLED) -> dict[str, tuple[str, str]]:
    """Framework → the release installed in an environment in a folder, and the metadata file that states it. known:
    the folders with metadata of the wanted packages."""
    found: dict[str, tuple[str, str]] = {}
    for name in ENVIRONMENTS:
        library = os.path.join(root, name, "lib")
        for python in listed(library) if os.path.isfile(os.path.join(root, name, "pyvenv.cfg")) else ():
            for entry in listed(os.path.join(python.path, "site-packages")):
                if match := known.fullmatch(entry.name):
                    package = match[1].replace("_", "-")
                    found.setdefault(_NAMES.get(package, package), (match[2], os.path.relpath(entry.path, root)))
    return found
