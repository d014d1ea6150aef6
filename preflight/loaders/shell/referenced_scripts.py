"""Other scripts: those that a script names, and those that it writes and runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from preflight.loaders.document import Word
from preflight.loaders.file_kinds import COMMAND
from preflight.loaders.shell.command_output import Printer, path_of
from preflight.loaders.shell.launches import Found, Launches
from preflight.loaders.shell.nested_commands import Nested, nested
from preflight.loaders.shell.state import Variable, bounded
from preflight.loaders.shell.word_splitting import Field, Value, value_of
from preflight.source.budget import may_read
from preflight.source.checkout_root import checkout_root, started_from
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError, Source, Span

MAX_FILES = 20
MAX_BYTES = 2_000_000
MOST_TRIED = 400
"""Number of unsuccessful look-ups after which no other folder is tried."""
MOST_SOURCED = 3_000
"""Number of different names that a script and its sourced texts may source."""
_BATCH = lazy_pattern(r"^#SBATCH(?=[ \t])", re.MULTILINE)


class Files:
    """Opens files around a script; remembers them, and the names that it looked up."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.opened: dict[Path, Source] = {}
        self.looked: dict[str, None] = {}
        self._sourced: dict[tuple[str, bool, Path | None], Source | None] = {}
        self._above: tuple[Path, ...] | None = None
        self._tops: tuple[Path, ...] | None = None

    def open(self, name: str | None) -> Source | None:
        """A file by the name in a script, or None if it does not exist, is outside, or is too large."""
        script = self.source.path
        if not name or script is None:
            return None
        found = (self._open(script, folder / name) for folder in self._folders(script, name))
        return next((source for source in found if source is not None), None)

    def sourced(self, name: str, end: bool, source: Source) -> Source | None:
        """The same for sourced files: a name that does not exist in the folder of the script may be relative to the
        folder of the text, or to the top of the checkout. end: only the end of the name is known."""
        asked = (name, end, source.path)
        if asked not in self._sourced and len(self._sourced) < MOST_SOURCED:
            self._sourced[asked] = self._find_sourced(name, end, source)
        return self._sourced.get(asked)

    def _find_sourced(self, name: str, end: bool, source: Source) -> Source | None:
        name = name.lstrip("/") if end else name
        vague = end and "/" not in name  # $HOME/env.sh is a different file
        script = self.source.path
        if not name or script is None:
            return None
        found = self._open(script, script.parent / name) if vague else self.open(name)
        if found is None and source.path is not None and source.path != script:
            found = self._open(script, source.path.parent / name)
        if found is None and self.source.in_checkout and not vague:
            top = Path(checkout_root(script))
            tail = _from_top(name, top.name)
            found = self._open(script, top / tail) if tail else None
        tail = name.rpartition("/")[2] if found is None and vague else ""
        places = (self._open(script, folder / tail) for folder in self.source.search if tail)
        return found or next((source for source in places if source is not None), None)

    def _folders(self, script: Path, name: str) -> Iterator[Path]:
        """Possible working directories of the script, and the script folders in the settings. Slurm runs a batch script
        where it was submitted, never in the script's own folder: of several folders the one nearest to the top of the
        checkout counts. Other scripts are assumed to run in their own folder first.
        """
        if os.path.isabs(name) or len(self.looked) > MOST_TRIED:
            yield script.parent
            return
        if self._above is None:
            above = tuple(started_from(script)) if self.source.in_checkout else ()
            self._above = (*above, script.parent) if _BATCH.search(self.source.text) else (script.parent, *above)
        yield from self._above
        yield from self.source.search

    def _open(self, script: Path, target: Path) -> Source | None:
        self.looked[str(target)] = None
        try:
            path, here = target.resolve(), script.parent.resolve()
            near = path.is_relative_to(here) or self._may_be_read(script, path)
            if near and path in self.source.beside:
                return self.source.beside[path]
            if not (near or self.source.name == COMMAND) or not path.is_file() or path == script.resolve():
                return None
            if path not in self.opened:
                size = path.stat().st_size
                if len(self.opened) >= MAX_FILES or size > MAX_BYTES or not may_read(size):
                    return None
                self.opened[path] = Source.read(path, self._shown(script, path) if near else str(path))
        except (InputError, OSError, ValueError):
            return None
        return self.opened[path]

    def _shown(self, script: Path, path: Path) -> str:
        """The name of another file, relative to the displayed location of the script."""
        if os.path.abspath(self.source.name) != os.path.abspath(script):  # a submitted script, named as typed
            return os.path.relpath(path, script.parent.resolve())
        return os.path.normpath(Path(self.source.name).parent / os.path.relpath(path, script.parent.resolve()))

    def _may_be_read(self, script: Path, path: Path) -> bool:
        """Whether a file is in the checkout around the script, if that may be read, or in a folder of the settings."""
        if self._tops is None:
            around = (Path(checkout_root(script)), *islice(started_from(script), 1)) if self.source.in_checkout else ()
            self._tops = (*around, *(folder.resolve() for folder in self.source.search))
        return any(path.is_relative_to(folder) for folder in self._tops)


def _from_top(name: str, top: str) -> str:
    """A path relative to the top folder of a checkout: a relative one, or the part after the folder's name in a path of
    another machine; "" if there is none."""
    return name.partition(f"/{top}/")[2] if name.startswith("/") else name


class WrittenScripts:
    """The files that a script writes. follow: notes the launches of a script meant to run, regardless of what runs
    it."""

    def __init__(self, printer: Printer, launches: Launches, follow: Callable[[Nested], None]) -> None:
        self.printer, self.launches, self.follow = printer, launches, follow
        self.started: dict[str, list[Found]] = {}
        """Launches of scripts, noted before the script itself runs them; by path."""
        self.grown: set[str] = set()

    def write(self, path: Value, grows: bool, value: Value | None, place: Span) -> None:
        """Write text to a file, replacing or appending."""
        key = path_of(path)
        if not key or value is None:
            return
        old = self.printer.content(key) if grows else None
        text = Variable((bounded((*(old or ()), *value)),), False, place, exported=True)
        self.printer.expander.state.put(key, text)
        if old is None:
            self._begin(key)
        else:
            self.grown.add(key)

    def finish(self) -> None:
        """At the end: scripts that were extended after their launches were noted."""
        for key in sorted(self.grown):
            self._begin(key)

    def text(self, path: Word) -> Nested | None:
        """A written file, by the name in the script."""
        return self._nested(path_of(value_of(path)))

    def run(self, path: Word) -> None:
        """The script runs a file itself: its launches are noted at this place."""
        self._forget(path_of(value_of(path)))

    def _nested(self, key: str) -> Nested | None:
        value = self.printer.content(key)
        return nested([Field(list(value))]) if value is not None else None

    def _begin(self, key: str) -> None:
        self._forget(key)
        text, count = self._nested(key), len(self.launches.found)
        if text is not None and text.source.text.startswith("#!"):
            self.follow(text)
            self.started[key] = self.launches.found[count:]

    def _forget(self, key: str) -> None:
        """Withdraw the launches of a file noted before it ran, or before it was rewritten."""
        self.grown.discard(key)
        for found in self.started.pop(key, ()):
            at = next((at for at, one in enumerate(self.launches.found) if one is found), None)
            if at is not None:
                del self.launches.found[at]
                self.launches.last = None
