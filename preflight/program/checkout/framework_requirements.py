"""The releases that the files of a folder install: requirements, projects, Dockerfiles, environments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from preflight import schemas
from preflight.program.checkout.framework_discovery import MOST_FOLDERS, Files, listed
from preflight.run.version_ranges import matches, numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.typing_without_import import Any

INSTALLS = (
    *(".gitmodules", "pyproject.toml", "setup.py", "setup.cfg", "install.sh", "setup.sh"),
    *("environment.yml", "environment.yaml", "constraints.txt", "Pipfile", "Containerfile", "uv.lock", "poetry.lock"),
    *("requirements.txt", "Dockerfile"),
)
DEEPER = ("docker", "dockerfiles", "requirements", "reqs")
"""Folders whose files also install packages."""
_WHOLE = r"(?<![\w.-])"
"""Before a package: it is its whole name."""
_FINAL = r"(?!\.?(?:rc|a|b|dev)?\d)"
"""After a version: it is a final release, and whole."""
_TAG = lazy_pattern(
    rf"(?i)\bcore_[vr](\d+\.\d+\.\d+){_FINAL}"
    rf"|{_WHOLE}megatron[-_]core(?:\[[\w, -]*\])?\s*(?:={{2,3}}|~=)\s*(\d+\.\d+\.\d+){_FINAL}"
)
_SHORT = lazy_pattern(
    rf"(?i){_WHOLE}(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*={{2,3}}\s*(\d+\.\d+)(?!\.?(?:rc|a|b|dev)?[\d*])"
)
"""A package at a version of two numbers, which is that with 0 as the third one."""
_LOCKED = lazy_pattern(r"\bname = \"(megatron[-_]core|mindformers)\"\nversion = \"(\d+\.\d+\.\d+)\"")
"""A package in the lock file of uv or Poetry."""
_IN_NAME = lazy_pattern(
    r"(?i)(?:\b|_)megatron[-_](?:lm|core)[-_](?:core[-_])?[rv]?([0-3])[._](\d+)(?:[._](\d+))?(?![\w.]*\d)"
)
"""A folder or a branch that is named after a release, such as `third_party/megatron_lm_0_9_0`."""
_LABELLED = lazy_pattern(
    r"(?m)^[ \t]*(?:export[ \t]+)?M(?:CORE|EGATRON(?:_CORE)?)(?:_RELEASE)?_VERSION="
    r"[\"']?(?:core_)?[rv]?([0-3]\.\d+)(\.\d+)?[\"']?[ \t]*$"
)
"""A variable that names the release of a benchmark, as in NVIDIA's recipes for mixtures of experts."""
_COMMENT = lazy_pattern(r"(?m)(?:^|(?<=[ \t]))[ \t]*#.*$")
_MINDFORMERS = lazy_pattern(rf"{_WHOLE}mindformers\s*(?:={{2,3}}|~=)\s*(\d+\.\d+\.\d+){_FINAL}")
_RANGE = lazy_pattern(
    _WHOLE + r"(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*(?:=\s*[\"']|\(\s*)?"
    r"((?:[<>]=?|!=)\s*\d[\d.]*(?:\s*,\s*(?:[<>]=?|!=)\s*\d[\d.]*)*)"
)
"""A package in a range of releases."""
_SERIES = lazy_pattern(_WHOLE + r"(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*==\s*(\d+)\.(\d+)\.\*")
"""A package at any patch of a release."""
_POETRY = lazy_pattern(
    _WHOLE + r"(megatron[-_]core|mindformers)[\"']?\s*=\s*(?:\{[^{}\n]{0,100}?\bversion\s*=\s*)?"
    r"[\"'](?:([\^~]?)|==)\s*(\d+)\.(\d+)(?:\.(\d+))?[\"']"
)
"""A package in Poetry's spelling: ^0.14.1 and ~0.14.1 take its patches, and ^1.2 every 1.x from then on."""
_COMPATIBLE = lazy_pattern(
    rf"(?i){_WHOLE}(megatron[-_]core|mindformers)(?:\[[\w, -]*\])?\s*~=\s*(\d+)\.(\d+)(?!\.?[\w*])"
)
"""A package at any release of a major version from some release on."""
ENVIRONMENTS = (".venv", "venv", "env")
"""Folders in which packages are installed for a run next to them."""
_METADATA = r"-(\d+\.\d+\.\d+)(?:\+[^/]*|\.post\d+)?(?:-py[\d.]+)?\.(?:dist|egg)-info"
_INSTALLED = lazy_pattern(rf"(megatron_core|mindspeed_llm|mindspeed|mindformers){_METADATA}")
_CLONED = lazy_pattern(r"(?i)/(megatron-lm|mindspeed-llm|modellink|mindspeed|mindformers)(?=\.git|[\s/\"']|$)")
_CLONE = lazy_pattern(r"\bclone\b[^\n;&|]{1,300}")
_AT = lazy_pattern(r"(?i)\b(mindspeed-llm|modellink|mindformers)(?:\.git)?(?=[\s\"']|$)")
_BRANCH = lazy_pattern(r"(?i)(?:-b|--branch)[ =][rv]?(\d+\.\d+\.(?:rc)?\d+)(?![\w.])")
_CHECKED_OUT = lazy_pattern(
    r"(?i)\bcd\s+[\"']?(?:[\w./~-]{0,100}/)?(mindspeed-llm|modellink|mindformers)/?[\"']?\s*(?:&&|;|\n)\s*"
    r"git\s+checkout\s+(?:tags/)?[rv]?(\d+\.\d+\.(?:rc)?\d+)(?![\w.])"
)
"""A repository that is cloned, and the tag or branch at which it is."""
_AT_REVISION = lazy_pattern(
    r"(?i)/(mindspeed-llm|modellink|mindformers)(?:\.git)?(?:@|[\"']\s*,\s*(?:tag|rev|branch)\s*=\s*[\"'])"
    r"[rv]?(\d+\.\d+\.(?:rc)?\d+)(?!\.?\w)"
)
"""A repository that pip or uv installs, and the tag or branch at which it is."""
_HASH = lazy_pattern(
    r"(?:\bcheckout\s+(?:-q\s+|--detach\s+)?|/(?:megatron-lm|mindspeed-llm|mindformers)(?:\.git)?@|\brev\s*=\s*[\"'])"
    r"([0-9a-f]{7,40})\b",
    re.IGNORECASE,
)
"""A commit that is checked out or installed."""
_ASSIGNED = lazy_pattern(
    r"(?m)^[ \t]*(?:(?:ARG|ENV|export)[ \t]+)?([A-Za-z_]\w*)[= ]"
    r"[\"']?(v?\d+(?:\.\w+)+|core_[vr][\d.]+)[\"']?[ \t]*$"
)
"""A variable that holds a version."""
_VARIABLE = lazy_pattern(r"\$(?:\{(\w+)\}|(\w+))")
_NAMES = {"megatron-lm": "megatron", "megatron-core": "megatron", "modellink": "mindspeed-llm"}


def installing(folder: str) -> list[str]:
    """The files of a folder that install packages."""
    entries = [entry.name for entry in listed(folder)[:MOST_FOLDERS]]
    return [name for name in dict.fromkeys((*INSTALLS, *filter(_installs, entries))) if name in entries]


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
    beside = installing(files.root)
    usual, others = ([name for name in beside if (name in INSTALLS) == wanted] for wanted in (True, False))
    for names in (usual, others, installing_deeper(files.root)):
        texts = [(name, declared_in(files.text(name) or "")) for name in names]
        for framework in dict.fromkeys(framework for _, said in texts for framework in said):
            if not found.get(framework, ("", ""))[0]:
                release, name = agreed((said.get(framework, ""), name) for name, said in texts)
                first = next(name for name, said in texts if framework in said)
                found[framework] = (release, name) if release else found.get(framework, ("", first))
    for framework, said_by in installed_in(files.root).items():
        if not found.get(framework, ("", ""))[0]:
            found[framework] = said_by
    return found


def ranges(files: Files) -> dict[str, tuple[frozenset[str], str]]:
    """Framework → the described releases in the range that the files of a folder install, and the first file with
    one."""
    found: dict[str, tuple[frozenset[str], str]] = {}
    for name in (*installing(files.root), *installing_deeper(files.root)):
        for framework, inside in ranges_in(files.text(name) or "").items():
            found.setdefault(framework, (inside, name))
    return found


def release_of_front_end(files: Files, name: str, described: Iterable[str]) -> tuple[str, str]:
    """The file of a folder that installs a front end, and the release that it names; "" for none. described: the
    releases that a range may mean."""
    from preflight.program.checkout.front_end_discovery import named_release, named_series

    def said(file: str) -> str:
        text = files.text(file) or ""
        return named_release(text, name) or named_series(text, name, described)

    for names in (sorted(installing(files.root)), installing_deeper(files.root)):
        release, file = agreed((said(name), name) for name in names)
        if release:
            return file, release
    package = re.compile(rf"({re.escape(name.replace('-', '_'))}){_METADATA}")
    release, file = installed_in(files.root, package).get(name, ("", ""))
    return file, release


def declared_in(text: str) -> dict[str, str]:
    """Frameworks that a text installs or clones, with the release if it names exactly one."""
    if _ANY.search(text) is None:
        return {}
    text = _expanded(_COMMENT.sub("", text).replace("\\\n", " "))
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
    for match in _LABELLED.finditer(text):
        said.setdefault("megatron", set()).add(match[1] + (match[2] or ".0"))
    for match in _MINDFORMERS.finditer(text):
        said.setdefault("mindformers", set()).add(match[1])
    for pattern, end in ((_LOCKED, ""), (_SHORT, ".0"), (_AT_REVISION, "")):
        for match in pattern.finditer(text):
            name = match[1].lower().replace("_", "-")
            said.setdefault(_NAMES.get(name, name), set()).add(match[2] + end)
    for framework in [one for one in said if not said[one]]:
        said[framework].update(_of_commits(framework, {match[1].lower() for match in _HASH.finditer(text)}))
    _add_ranges(said, text)
    return {framework: next(iter(releases)) if len(releases) == 1 else "" for framework, releases in said.items()}


def _add_ranges(said: dict[str, set[str]], text: str) -> None:
    """Add the frameworks that a text installs in ranges, with the release if only one is in it."""
    for match in _RANGE.finditer(text):
        name = match[1].replace("_", "-")
        framework = _NAMES.get(name, name)
        said.setdefault(framework, set()).update(_inside(framework, match[2]))
    for match in _SERIES.finditer(text):
        name, major, minor = match[1].replace("_", "-"), match[2], int(match[3])
        framework = _NAMES.get(name, name)
        said.setdefault(framework, set()).update(_inside(framework, f">={major}.{minor},<{major}.{minor + 1}"))
    for match in _COMPATIBLE.finditer(text):
        name = match[1].lower().replace("_", "-")
        said.setdefault(_NAMES.get(name, name), set())
    for match in _POETRY.finditer(text):
        name, sign, major, minor, patch = match[1].replace("_", "-"), match[2], int(match[3]), int(match[4]), match[5]
        above = f"{major + 1}" if sign == "^" and major else f"{major}.{minor + 1}"
        framework, release = _NAMES.get(name, name), f"{major}.{minor}.{patch or 0}"
        said.setdefault(framework, set()).update(_inside(framework, f">={release},<{above}") if sign else (release,))


_ANY = lazy_pattern(r"(?i)megatron|mcore_|mindspeed|modellink|mindformers|core_[vr]\d")
"""A text without any of these installs no framework."""


def _expanded(text: str) -> str:
    """A text with the values of variables that hold a version, if each has only one."""
    values: dict[str, set[str]] = {}
    for match in _ASSIGNED.finditer(text) if "$" in text else ():
        values.setdefault(match[1], set()).add(match[2])
    known = {name: next(iter(said)) for name, said in values.items() if len(said) == 1}
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), text) if known else text


def _of_commits(framework: str, commits: Iterable[str]) -> set[str]:
    """The releases of a framework that are described at some of these commits."""
    wanted = tuple(commits)
    if not wanted or framework not in ("megatron", "mindspeed", "mindspeed-llm", "mindformers"):
        return set()
    known: dict[str, str] = schemas.read(f"{framework}/releases")["commits"]
    return {name for name, at in known.items() for one in wanted if one.startswith(at) or at.startswith(one)}


def ranges_in(text: str) -> dict[str, frozenset[str]]:
    """Frameworks that a text installs in a range with several described releases, with these releases."""
    found: dict[str, frozenset[str]] = {}
    for framework, wanted in _ranges(_COMMENT.sub("", text)) if _ANY.search(text) is not None else ():
        inside = frozenset(_with_patches(framework, wanted))
        found[framework] = found.get(framework, inside) & inside
    return {framework: inside for framework, inside in found.items() if len(inside) > 1}


def _ranges(text: str) -> Iterator[tuple[str, str]]:
    for match in _RANGE.finditer(text):
        name = match[1].replace("_", "-")
        yield _NAMES.get(name, name), match[2]
    for match in _COMPATIBLE.finditer(text):
        name = match[1].lower().replace("_", "-")
        yield _NAMES.get(name, name), f">={match[2]}.{match[3]},<{int(match[2]) + 1}"
    for match in _POETRY.finditer(text):
        name = match[1].replace("_", "-")
        if match[2] == "^" and int(match[3]):
            yield _NAMES.get(name, name), f">={match[3]}.{match[4]}.{match[5] or 0},<{int(match[3]) + 1}"


def _inside(framework: str, wanted: str) -> list[str]:
    """The described release in a range, if there is exactly one with its patch releases; otherwise its newest patch
    release in the range."""
    if len(within := _with_patches(framework, wanted)) != 1:
        return []
    (release, inside) = next(iter(within.items()))
    return [release if release in inside else max(inside, key=numbers)]


def _with_patches(framework: str, wanted: str) -> dict[str, list[str]]:
    """Described release → those in a range among itself and its patch releases."""
    releases = schemas.read("releases")
    of = {one: one for one in releases[framework]}
    of |= {one: row["of"] for one, row in releases["patches"].get(framework, {}).items()}
    found: dict[str, list[str]] = {}
    for one, release in of.items():
        if matches(one, wanted):
            found.setdefault(release, []).append(one)
    return found


def installed_in(root: str, known: Any = _INSTALLED) -> dict[str, tuple[str, str]]:
    """Framework → the release installed in an environment in a folder, and the metadata file that states it. known:
    the folders with metadata of the wanted packages."""
    found: dict[str, tuple[str, str]] = {}
    for name in ENVIRONMENTS:
        for framework, (release, path) in installed_by(os.path.join(root, name), known).items():
            found.setdefault(framework, (release, os.path.relpath(path, root)))
    return found


def installed_by(environment: str, known: Any = _INSTALLED) -> dict[str, tuple[str, str]]:
    """The same for one environment, of venv or of conda, with the path of the metadata."""
    found: dict[str, list[tuple[str, str]]] = {}
    if not any(os.path.lexists(os.path.join(environment, mark)) for mark in MARKS):
        return {}
    for python in listed(os.path.join(environment, "lib")):
        for entry in listed(os.path.join(python.path, "site-packages")):
            if match := known.fullmatch(entry.name):
                package = match[1].replace("_", "-")
                found.setdefault(_NAMES.get(package, package), []).append((match[2], entry.path))
    return {framework: one for framework, stated in found.items() if (one := agreed(stated))[0]}


MARKS = ("pyvenv.cfg", "conda-meta")
"""Files that an environment contains."""
_ACTIVATED = lazy_pattern(
    r"(?m)^[ \t]*(?:(?:source|\.)[ \t]+[\"']?([^\s\"'$`;&|]+)/bin/activate\b"
    r"|conda[ \t]+activate[ \t]+[\"']?(\.?/[^\s\"'$`;&|]+))"
)
_IN_BIN = lazy_pattern(r"([^\s$`]+)/bin/(?:python[\d.]*|torchrun|accelerate|msrun)")


def environments_named(text: str, launcher: Iterable[str]) -> list[str]:
    """The environments that a script activates, and those of the programs that it starts. launcher: its words."""
    started = (match[1] for word in launcher if (match := _IN_BIN.fullmatch(word)) is not None)
    activated = (match[1] or match[2] for match in (_ACTIVATED.finditer(text) if "activate" in text else ()))
    return list(dict.fromkeys((*started, *activated)))
