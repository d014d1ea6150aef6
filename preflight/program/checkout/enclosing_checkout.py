"""Finds the checkout around a file, the nearest folder above it that contains a framework; cached within a call."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path

from preflight import schemas
from preflight.program.checkout.framework_discovery import (
    MOST_FOLDERS,
    OTHER_READERS,
    Files,
    Layout,
    found_below,
    found_in,
    listed,
)
from preflight.program.checkout.framework_requirements import (
    declared,
    environments_named,
    installed_by,
    ranges,
    release_of_front_end,
)
from preflight.program.checkout.front_end_discovery import HIGHEST_RUNNER, Neighbours, folders_above
from preflight.program.launched_source import Located, locate
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:  # it loads when a framework is there
    from preflight.loaders.document import Document
    from preflight.program.checkout.framework import Package
    from preflight.program.checkout.front_end_discovery import FrontEndPackage
    from preflight.program.checkout.parser_options import OwnOption

_EXTENDS = lazy_pattern(r"^[ \t]{0,40}(?:from|import)[ \t]{1,9}megatron\b", re.MULTILINE)
"""An import of the framework that a file extends."""
HIGHEST = 16
"""Folders above a file that are looked into."""
MOST_CODE = 2500
"""Files of a checkout in which an option is looked for that its parser does not have."""
PATCHES, PATCH = ("arguments.py", "patch_arguments.py", "megatron_arguments.py"), 4
REPOSITORY = ".git"
CONTRACTS = "frontends/contracts"


class Checkout:
    """A folder with its contents and requirements. packages: the frameworks in it; readers: other programs that read
    configs."""

    def __init__(self, root: str, places: Mapping[Layout, str]) -> None:
        self.root, self.files = root, Files(root)
        self._places = places
        self._packages: dict[str, Package] = {}
        self._entries: dict[str, Mapping[str, OwnOption]] = {}

    def package(self, framework: str) -> Package | None:
        """A framework in the checkout."""
        if framework not in self._packages:
            found = next(((layout, at) for layout, at in self._places.items() if layout.framework == framework), None)
            if found is None:
                return None
            from preflight.program.checkout.framework import Package

            layout, at = found
            self._packages[framework] = Package(layout, self.files if at == self.root else Files(at))
        return self._packages[framework]

    @property
    def frameworks(self) -> frozenset[str]:
        """The names of the frameworks in the checkout."""
        return frozenset(layout.framework for layout in self._places)

    def roots(self, versions: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folders that contain the packages of some frameworks, and the frameworks that are missing.

        versions: of the frameworks. Missing parts of the checkout may be in a neighbouring folder, if exactly one has
        that version.
        """
        places = {layout.framework: at for layout, at in reversed(list(self._places.items()))}
        for name in [name for name in versions if name not in places]:
            beside = list(islice(self._beside(name, versions[name]), 2))
            if len(beside) == 1:
                places[name] = beside[0]
        lacking = tuple(name for name in versions if name not in places)
        return tuple(dict.fromkeys(places[name] for name in versions if name in places)), lacking

    def _beside(self, framework: str, version: str) -> Iterator[str]:
        """The neighbouring folders that contain a version of a framework."""
        from preflight.program.checkout.framework import Package

        above = os.path.dirname(self.root)
        for entry in listed(above)[:MOST_FOLDERS] if above != self.root else ():
            one = os.path.join(above, os.path.basename(entry.path))
            layouts = found_in(one) if _named_so(one) and one != self.root else ()
            for layout in layouts:
                if layout.framework == framework and Package(layout, Files(one)).release in ("", version):
                    yield one

    def described(self, framework: str) -> str:
        """A description of a framework's source: its location, its release, and the number of changed files."""
        package = self.package(framework)
        if package is None:
            return ""
        shown = os.path.relpath(package.files.root)
        where = package.files.root if shown.startswith(os.path.join("..", "..", "..")) else shown
        more = package.release if package.release else "of an unknown release"
        if package.release and not package.proven and (changed := package.changed):
            more += f" with {changed} changed file{'s' if changed > 1 else ''}"
        return f"{framework} in {where}, {more}"

    @cached_property
    def reader(self) -> str:
        """Another program in the checkout that reads the framework's configs in a different way, or ""."""
        return next((name for name in OTHER_READERS if self.files.text(f"{name}/__init__.py") is not None), "")

    def entry(self, name: str) -> Mapping[str, OwnOption]:
        """The options that an entry script adds, by name."""
        if name not in self._entries:
            from preflight.program.checkout.framework import entry_options

            self._entries[name] = entry_options(self.files, name)
        return self._entries[name]

    @cached_property
    def patches(self) -> tuple[str, ...]:
        """Parsers that extend a separately installed framework."""
        if self._places:
            return ()
        named = (name for name in self.files.names(deepest=PATCH) if name.rpartition("/")[2] in PATCHES)
        found = ((name, self.files.text(name) or "") for name in islice(named, MOST_FOLDERS))
        return tuple(name for name, text in found if "add_argument" in text and "megatron" in text)

    @cached_property
    def renamed(self) -> bool:
        """Whether these parsers belong to copies of the framework under other names, and not to extensions of it."""
        texts = [self.files.text(name) or "" for name in self.patches]
        return bool(texts) and all("ArgumentParser(" in text and not _EXTENDS.search(text) for text in texts)

    @cached_property
    def patched_options(self) -> tuple[OwnOption, ...]:
        """The options of these parsers."""
        from preflight.program.checkout.parser_options import own_options

        texts = (self.files.code(name) for name in self.patches)
        return tuple(one for text in texts if text is not None for one in own_options(text))

    @cached_property
    def patched_arguments(self) -> frozenset[str]:
        """The arguments that these files always set, regardless of the command line."""
        from preflight.program.checkout.parser_options import set_always

        return frozenset(name for path in self.patches for name in set_always(self.files.code(path) or ""))

    @cached_property
    def declared(self) -> Mapping[str, tuple[str, str]]:
        """Framework → the release that the checkout installs ("" if not stated), and the file that states it."""
        return declared(self.files)

    @cached_property
    def ranges(self) -> Mapping[str, tuple[frozenset[str], str]]:
        """Framework → the described releases in the range that the checkout installs, and the file that states it."""
        return ranges(self.files)

    @property
    def names_release(self) -> bool:
        """Whether the checkout installs a named release, or one in a range."""
        return any(release for release, _ in self.declared.values()) or bool(self.ranges)

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Every option name in the code of the checkout: a script may add options."""
        from preflight.program.checkout.parser_options import mentioned

        places = {at: self.files if at == self.root else Files(at) for at in (self.root, *self._places.values())}
        texts = (files.text(name) for files in places.values() for name in list(files.names())[:MOST_CODE])
        return mentioned(text for text in texts if text is not None)

    @property
    def looked(self) -> Iterable[str]:
        """The paths opened or searched so far."""
        places = [package.files.looked for package in self._packages.values()]
        return dict.fromkeys(path for looked in (self.files.looked, *places) for path in looked)


class Checkouts:
    """The checkouts of one call.

    named: the folders that the call names. isolated: nothing outside of these is opened.
    """

    def __init__(self, named: Iterable[str] = (), *, isolated: bool = False) -> None:
        self._named = tuple(os.path.abspath(path) for path in named if os.path.isdir(path))
        self._isolated = isolated
        self._found: dict[str, Checkout | None] = {}
        self._made: dict[str, Checkout | None] = {}
        self._neighbours: dict[str, Neighbours] = {}
        self._programs: dict[str, Files] = {}
        self._front_ends: dict[tuple[str, str], FrontEndPackage | None] = {}
        self._located: dict[tuple[object, ...], Located] = {}
        self._joined: dict[tuple[str, ...], Checkout | None] = {}
        self._run: dict[str, dict[str, Checkout]] = {}

    @property
    def isolated(self) -> bool:
        """Whether only paths named by the call are opened."""
        return self._isolated

    def around(self, path: Path | None) -> Checkout | None:
        """The checkout that contains a file; None if there is none, or it is not recognized."""
        if path is None:
            return None
        start = os.path.dirname(os.path.abspath(path))
        if start not in self._found:
            self._found[start] = self._above(start) if os.path.lexists(path) else None
        return self._found[start]

    def run_by(self, document: Document, stated: str = "") -> Checkout | None:
        """The source that a document's launch runs; if unknown, the checkout around the document.

        stated: the folder of the source, as the caller states it.
        """
        found = self.stated(stated) if stated else self._of(document)
        if found is not None:
            self._run.setdefault(str(document.source.path), {})[found.root] = found
        return found

    def stated(self, folder: str) -> Checkout | None:
        """The source in a named folder: a checkout, one with several in it, or where packages are
        installed."""
        start = os.path.abspath(os.path.expanduser(folder))
        if start not in self._made:
            self._made[start] = next((made for at in _installed_in(start) if (made := _whole(at)) is not None), None)
        return self._made[start]

    def located(self, document: Document) -> Located:
        """The location of the program of a document's launch."""
        key = (document.source.path, document.source.text, document.run)
        if key not in self._located:
            start = os.path.dirname(os.path.abspath(document.source.path or Path.cwd() / "command"))
            self._located[key] = locate(document, lambda folder: not self._closed(folder, start))
        return self._located[key]

    def environment(self, document: Document) -> Mapping[str, tuple[str, str]]:
        """Framework → the release in the environment that a document activates or starts a program of, and the path of
        its metadata."""
        words = (word.text or "" for word in document.launch.launcher_words) if document.launch is not None else ()
        named = environments_named(document.source.text, words)
        start = os.path.dirname(os.path.abspath(document.source.path)) if document.source.path is not None else ""
        above = list(folders_above(start, HIGHEST)) if start else []
        for one in named:
            for folder in (*above, os.getcwd()):
                place = os.path.normpath(os.path.join(folder, one))
                if os.path.isdir(place) and not self._closed(place, start or place) and (found := installed_by(place)):
                    return found
        return {}

    def _of(self, document: Document) -> Checkout | None:
        where = self.located(document)
        if where.sure == "elsewhere":
            return self._with_paths(where.paths, self._installed_by(document))
        if where.sure == "unsaid":
            return self._with_paths(where.paths, self.around(document.source.path))
        folder = os.path.dirname(where.entry)
        return self._with_paths((folder, *where.paths), self._above(folder))

    def _installed_by(self, document: Document) -> Checkout | None:
        """The folder around a document that installs a release but contains no framework."""
        around = self.around(document.source.path)
        none = around is None or around.frameworks or around.reader or around.patches or not around.names_release
        return None if none else around

    def _with_paths(self, paths: tuple[str, ...], around: Checkout | None) -> Checkout | None:
        """A checkout with frameworks from separate module folders instead of those inside it."""
        told = tuple(path for path in paths if found_in(path))
        if not told or (around is not None and told[0] == around.root):
            return around
        key = (*told, around.root if around is not None else "")
        if key not in self._joined:
            places: dict[Layout, str] = {}
            for path in told:
                for layout in found_in(path):
                    places.setdefault(layout, path)
            self._joined[key] = Checkout(around.root if around is not None else told[0], places)
        return self._joined[key]

    def program(self, path: Path | None) -> str:
        """The Python program, next to a config or in the folder above, that contains its name."""
        return self._told(path, 1, lambda one, name: one.programs.get(name, ""))

    def launches(self, path: Path | None) -> tuple[str, ...]:
        """The scripts next to a config that launch it."""
        return tuple(self._told(path, 0, lambda one, name: "\n".join(one.launches.get(name, ()))).split())

    def runner(self, path: Path | None) -> str:
        """The script above a functional test that translates its options."""
        return self._told(path, HIGHEST_RUNNER, lambda one, name: one.runner)

    def front_end(self, path: Path | None, name: str) -> FrontEndPackage | None:
        """The front end in the nearest folder above a run that contains one."""
        key = str(path), name
        if key not in self._front_ends:
            from preflight.program.checkout.front_end_discovery import front_end_in

            folders = (self._programs.setdefault(at, Files(at)) for at in self._repository(path))
            self._front_ends[key] = front_end_in(folders, name)
        return self._front_ends[key]

    def installs(self, path: Path | None, name: str) -> tuple[str, str]:
        """The file in the repository of a run that installs a front end, and the release that it names; "" for none."""
        start = f"{CONTRACTS}/{name}-"
        described = [one.removeprefix(start) for one in schemas.names(CONTRACTS) if one.startswith(start)]
        for at in self._repository(path):
            found = release_of_front_end(self._programs.setdefault(at, Files(at)), name, described)
            if found[1]:
                return found
        return "", ""

    def _repository(self, path: Path | None) -> Iterator[str]:
        """The folders above a file, up to the top of its repository."""
        start = os.path.dirname(os.path.abspath(path)) if path is not None and os.path.lexists(path) else ""
        for folder in folders_above(start, HIGHEST) if start else ():
            if self._closed(folder, start):
                return
            yield folder
            if os.path.lexists(os.path.join(folder, REPOSITORY)):
                return

    def _told(self, path: Path | None, above: int, tell: Callable[[Neighbours, str], str]) -> str:
        """The answer for the nearest folder around a file that has one, otherwise ""."""
        start = os.path.dirname(os.path.abspath(path)) if path is not None and os.path.lexists(path) else ""
        for folder in folders_above(start, above) if start else ():
            if self._closed(folder, start):
                return ""
            if folder not in self._neighbours:
                self._neighbours[folder] = Neighbours(folder)
            if found := tell(self._neighbours[folder], os.path.basename(str(path))):
                return found
        return ""

    def looked(self, path: Path | None) -> Iterable[str]:
        """The paths opened or searched around a file so far."""
        checkout = self.around(path)
        start = os.path.dirname(os.path.abspath(path)) if path is not None else ""
        beside = [one for at in folders_above(start, HIGHEST_RUNNER) if (one := self._neighbours.get(at)) is not None]
        front_ends = [
            files.looked for at in folders_above(start, HIGHEST) if (files := self._programs.get(at)) is not None
        ]
        around = dict.fromkeys(checkout.looked) if checkout is not None else {}
        for run in self._run.get(str(path), {}).values():
            around |= dict.fromkeys(run.looked)
        looked = [*(one.files.looked for one in beside), *front_ends, around]
        return dict.fromkeys(name for names in (*looked, dict.fromkeys(one.folder for one in beside)) for name in names)

    def _above(self, start: str) -> Checkout | None:
        folders = [start, *map(str, Path(start).parents)][:HIGHEST]
        installs = None
        for folder in folders:
            if self._closed(folder, start):
                return installs
            found = self._in(folder)
            if found is not None or os.path.lexists(os.path.join(folder, REPOSITORY)):
                says = found is not None and (found.frameworks or found.reader or found.patches or found.names_release)
                return found if says else installs or found
            installs = installs or self._installing(folder)
        return installs

    def _installing(self, folder: str) -> Checkout | None:
        """A folder of a repository with a file that installs a release of a framework."""
        made = Checkout(folder, {})
        return made if made.names_release else None

    def _in(self, folder: str) -> Checkout | None:
        """The checkout with a folder as its root."""
        if folder not in self._made:
            places = dict.fromkeys(found_in(folder), folder)
            top = folder in self._named or os.path.lexists(os.path.join(folder, REPOSITORY))
            if not places and top:
                places = found_below(folder)
            made = Checkout(folder, places)
            told = places or made.reader or (top and (made.declared or made.patches))
            self._made[folder] = made if told else None
        return self._made[folder]

    def _closed(self, folder: str, start: str) -> bool:
        """Whether a folder must not be read: it is not named, or users other than the file's owner may write to it."""
        if any(os.path.commonpath((folder, one)) == one for one in self._named):
            return False
        if self._isolated:
            return True
        try:
            status, own = os.stat(folder), os.stat(start)
        except OSError:
            return True
        return bool(status.st_mode & stat.S_IWOTH) or status.st_uid not in (own.st_uid, 0)


def _installed_in(folder: str) -> Iterator[str]:
    """A folder, its src, and its site-packages folders if it is an environment."""
    yield from (folder, os.path.join(folder, "src"))
    yield from map(str, sorted(Path(folder).glob("lib/python3*/site-packages")))


def _named_so(folder: str) -> bool:
    """Whether a folder has the same name as a checkout of a framework."""
    name = os.path.basename(folder).lower()
    return any(part in name for part in ("megatron", "mindspeed", "mindformers"))


def _whole(folder: str) -> Checkout | None:
    places = dict.fromkeys(found_in(folder), folder) or found_below(folder)
    return Checkout(folder, places) if places else None
