"""Scripts that a script writes (`cat > job.sh <<EOF`), and runs itself or leaves for somebody to run."""

from __future__ import annotations

from collections.abc import Callable

from preflight.loaders.document import Word
from preflight.loaders.shell.launches import Found, Launches
from preflight.loaders.shell.nested_commands import Nested, nested
from preflight.loaders.shell.printed import Printer, path_of
from preflight.loaders.shell.state import Variable, bounded
from preflight.loaders.shell.word_splitting import Field, Value, value_of
from preflight.source.text import Span


class WrittenScripts:
    """The files that a script writes. follow: notes the launches of one that is meant to run, whoever runs it."""

    def __init__(self, printer: Printer, launches: Launches, follow: Callable[[Nested], None]) -> None:
        self.printer, self.launches, self.follow = printer, launches, follow
        self.started: dict[str, list[Found]] = {}
        """Launches of scripts, from before the script itself runs them; by path."""
        self.grown: set[str] = set()

    def write(self, path: Value, grows: bool, value: Value | None, place: Span) -> None:
        """Text into a file, in place of what is there or behind it."""
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
        """At the end: scripts of which more was written after their launches were noted."""
        for key in sorted(self.grown):
            self._begin(key)

    def text(self, path: Word) -> Nested | None:
        """A file that is written, by the name that the script gives it."""
        return self._nested(path_of(value_of(path)))

    def run(self, path: Word) -> None:
        """The script runs a file itself: its launches are noted there."""
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
        """Take the launches of a file back that were noted before it ran, or was written anew."""
        self.grown.discard(key)
        for found in self.started.pop(key, ()):
            at = next((at for at, one in enumerate(self.launches.found) if one is found), None)
            if at is not None:
                del self.launches.found[at]
                self.launches.last = None
