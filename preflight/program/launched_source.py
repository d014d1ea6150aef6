"""The source that a launch runs: the entry script and the folders of its modules, determined from the launch itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from preflight.loaders.document import Document, Launch, Piece, Word, word_of
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Literal

_SELF = lazy_pattern(r"(?:\$0|\$\{0\}|\$\{?BASH_SOURCE(?:\[0\])?\}?)")
_HERE = lazy_pattern(r"\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}")
_WORKING = lazy_pattern(r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`\s*pwd\s*`|\$PWD\b|\$\{PWD\}")
_TOP = lazy_pattern(r"\$\(\s*git\s+rev-parse\s+--show-toplevel\s*\)")
_OF_PATH = r"[^\s$`();&|<>]+"
_DIRNAME = lazy_pattern(rf"\$\(\s*dirname\s+(?:--\s+)?({_OF_PATH})\s*\)|`\s*dirname\s+(?:--\s+)?({_OF_PATH})\s*`")
_REAL = rf"\$\(\s*(?:realpath|readlink\s+-\w+|cd)\s+(?:-\w+\s+|--\s+)*({_OF_PATH})\s*"
_QUIETLY = r"(?:>\s*/dev/null\s*(?:2>&1)?\s*)?"
_FORMS = tuple(
    lazy_pattern(_REAL + end + r"\)")
    for end in ("", rf"{_QUIETLY}(?:&&|;)\s*pwd(?:\s+-[LP])?\s*", rf"{_QUIETLY}(?:&&|;)\s*pwd\s*2>\s*/dev/null\s*")
)
START = "."
"""The working directory of a script."""
MOST_NESTED = 8


class Known(NamedTuple):
    """A path. text: the known part; whole: from its beginning, otherwise only the end after an unknown part."""

    text: str
    whole: bool
    from_start: bool = False
    """It is relative to the unknown working directory of the script."""

    @property
    def absolute(self) -> bool:
        """Whether it is completely known."""
        return self.whole and self.text.startswith("/")


def path_of(word: Word, script: str, working: Callable[[Piece], str], top: str) -> Known:
    """The path in a word. script: the file that contains it; working: the folder in which a piece of it is expanded;
    top: that of the repository. Each is "" if unknown."""
    pieces = word.pieces or (Piece(word.text, word.span, because=word.because),)
    text, whole, from_start = "", True, False
    for piece in pieces:
        lost = piece.text is None or bool(piece.because)
        raw = (piece.span.text if piece.because[:1] in "$`" else "$") if lost else str(piece.text)
        folder = working(piece)
        part = _folded(raw, script, folder, top) if lost else raw
        from_start = from_start or (lost and folder == START and _WORKING.search(raw) is not None)
        if "$" in part or "`" in part:
            text, whole = _after(part), False
        else:
            text += part
    text = os.path.expanduser(text) if text.startswith("~/") else text
    return Known(os.path.normpath(text) if whole and text else text.strip("/"), whole, from_start)


def _after(part: str) -> str:
    """The end of a path after its last unknown part."""
    end = max(part.rfind("$"), part.rfind("`"), part.rfind(")"), part.rfind("}"))
    return part[end:].partition("/")[2]


def _folded(text: str, script: str, working: str, top: str) -> str:
    """A text in which folders replace the shell expressions for them."""
    text = text.replace('"', "")
    if script:
        text = _HERE.sub(lambda _: os.path.dirname(script), text)
        text = _SELF.sub(lambda _: script, text)
    for _ in range(MOST_NESTED):
        before = text
        text = _WORKING.sub(lambda found: working or found[0], text)
        text = _TOP.sub(lambda found: top or found[0], text)
        text = _DIRNAME.sub(lambda found: os.path.dirname(found[1] or found[2]) or ".", text)
        for form in _FORMS:
            text = form.sub(lambda found: os.path.normpath(found[1]), text)
        if text == before:
            break
    return text


TO_FILL_IN = lazy_pattern(r"(?i)[<>\[\]{}]|\.\.\.|^x{3,}$|^(?:path[-_]?)?to(?:[-_]|$)|^path$|\byour(?:[-_ ]|\b)|_your_")
"""Names of folders that are placeholders for the user to fill in."""
HIGHEST = 16
"""Folders above a script in which its program is searched."""
REPOSITORY = ".git"
MODULE = "-m"
_CHDIR = lazy_pattern(r"(?m)^#SBATCH[ \t]+(?:-D[ \t]*|--chdir[= ])[\"']?(/[^\s\"'$]+)")
Sure = Literal["found", "likely", "elsewhere", "unsaid"]


class Located(NamedTuple):
    """The location of a launch's program. sure: found: its path leads here. likely: it leads to another place, which
    may have the same path; its options must still be compared. elsewhere: it leads to another program. unsaid:
    undecided. entry: the started script, "" if it is not here. paths: existing module folders that the launch names.
    called: the launch's name of a folder assumed to be one here, "" if it does not name it.
    """

    sure: Sure
    entry: str = ""
    paths: tuple[str, ...] = ()
    called: str = ""


UNSAID = Located("unsaid")


def locate(document: Document, is_open: Callable[[str], bool]) -> Located:
    """The location of the program of a document's launch. is_open: whether a folder may be read."""
    launch = document.launch
    if launch is None:
        return UNSAID
    path = document.source.path
    if path is None or not os.path.lexists(path):
        path = None if document.kind != "command" else Path.cwd() / "command"
    return UNSAID if path is None else _Search(launch, str(Path(os.path.abspath(path))), is_open).located()


class _Search:
    """The search for one launch. start: the folder of the script."""

    def __init__(self, launch: Launch, script: str, is_open: Callable[[str], bool]) -> None:
        self.launch, self.script, self.is_open = launch, script, is_open
        self.start = os.path.dirname(script)
        self.above = list(self._folders_above())
        self.top = self.above[-1] if self.above else self.start

    def located(self) -> Located:
        """The facts stated by the launch."""
        working = self._working()
        paths = self._module_paths(working)
        module = self.launch.launcher_words and self.launch.launcher_words[-1].text == MODULE
        wanted = self._entry(working, bool(module))
        if not wanted.text:
            return Located("unsaid", paths=paths)
        if wanted.absolute:
            if self._is_file(wanted.text):
                return Located("found", wanted.text, paths)
            return self._alike(wanted, paths)
        if wanted.from_start:
            working = None
        if not wanted.whole or (working is not None and not working):
            return self._alike(wanted, paths)
        for folder in working if working is not None else (*self.above, os.getcwd()):
            if self._is_file(found := os.path.normpath(os.path.join(folder, wanted.text))):
                return Located("elsewhere" if self._imports_elsewhere(found, working) else "found", found, paths)
        if working is None and "/" not in wanted.text:
            return Located("unsaid", paths=paths)
        return self._alike(wanted, paths)

    def _folders_above(self) -> Iterator[str]:
        """The folder of the script and those above it, up to the top of its repository."""
        for folder in [self.start, *map(str, Path(self.start).parents)][:HIGHEST]:
            if not self.is_open(folder):
                return
            yield folder
            if os.path.lexists(os.path.join(folder, REPOSITORY)):
                return

    def _path(self, word: Word, working: str = "") -> Known:
        source = word.span.source.path
        script = str(Path(os.path.abspath(source))) if source is not None and os.path.lexists(source) else self.script
        changed = self.launch.directory

        def folder(piece: Piece) -> str:
            """The working directory before the script changes to another one."""
            if changed is None or (piece.span.source is changed.span.source and piece.span.start < changed.span.start):
                return START
            return working

        return path_of(word, script if os.path.isfile(script) else "", folder, self.top)

    def _working(self) -> tuple[str, ...] | None:
        """Its possible working directories: () if it changes to one that does not exist here, None if it does not
        change its directory."""
        if self.launch.directory is None:
            return self._of_scheduler()
        to = self._path(self.launch.directory)
        if to.absolute:
            return (to.text,) if os.path.isdir(to.text) else ()
        if not to.whole:
            return ()
        made = (os.path.normpath(os.path.join(folder, to.text)) for folder in (self.start, os.getcwd(), *self.above))
        return tuple(folder for folder in dict.fromkeys(made) if os.path.isdir(folder))

    def _of_scheduler(self) -> tuple[str, ...] | None:
        """The working directory that a script asks Slurm for, by an absolute path that exists here."""
        found = _CHDIR.search(self.launch.entry.span.source.text)
        return (found[1],) if found is not None and os.path.isdir(found[1]) else None

    def _entry(self, working: tuple[str, ...] | None, module: bool) -> Known:
        entry = self.launch.entry
        if module:
            text = entry.text or ""
            return Known(f"{text.replace('.', '/')}.py" if text else "", True)
        return self._path(entry, working[0] if working else "")

    def _named_paths(self, working: tuple[str, ...] | None) -> list[Known]:
        word = self.launch.environment.get("PYTHONPATH")
        return [self._path(part, working[0] if working else "") for part in _split(word)] if word is not None else []

    def _module_paths(self, working: tuple[str, ...] | None) -> tuple[str, ...]:
        """The existing folders of PYTHONPATH."""
        found = (one for one in self._named_paths(working) if one.whole and one.text)
        starts = dict.fromkeys((*(working or ()), self.start, *self.above, os.getcwd()))
        made = [
            next(filter(os.path.isdir, (os.path.normpath(os.path.join(at, one.text)) for at in starts)), "")
            for one in found
        ]
        return tuple(folder for folder in dict.fromkeys(made) if folder and self.is_open(folder))

    def _imports_elsewhere(self, entry: str, working: tuple[str, ...] | None) -> bool:
        """Whether a script below the top finds its modules in PYTHONPATH only, of which no folder is here."""
        if os.path.dirname(entry) == self.top:
            return False
        named = [one for one in self._named_paths(working) if one.text]  # without inherited members
        here = os.path.basename(self.top)
        return bool(named) and all(
            one.absolute and not os.path.isdir(one.text) and os.path.basename(one.text) != here for one in named
        )

    def _alike(self, wanted: Known, paths: tuple[str, ...]) -> Located:
        """The existing path at the end of a path that leads elsewhere, longest end first."""
        parts = wanted.text.strip("/").split("/")
        beside = os.path.dirname(self.top)
        for at in range(len(parts)):
            end = os.path.join(*parts[at:])
            for folder in (*self.above, *([beside] if "/" in end and self.is_open(beside) else [])):
                if self._is_file(found := os.path.join(folder, end)):
                    return Located("likely", found, paths, self._name(parts[at - 1], wanted) if at else "")
        named = wanted.whole or len(parts) > 1  # of a script in an unknown folder
        return Located("elsewhere" if named else "unsaid", paths=paths)

    def _name(self, folder: str, wanted: Known) -> str:
        """The name of a folder on the way to a script; "" for an unfilled placeholder, and for a folder of the
        enclosing checkout from which a script was moved."""
        moved = (
            wanted.whole and not wanted.absolute and any(os.path.isdir(os.path.join(at, folder)) for at in self.above)
        )
        return "" if moved or TO_FILL_IN.search(folder) is not None else folder

    def _is_file(self, path: str) -> bool:
        return self.is_open(os.path.dirname(path)) and os.path.isfile(path)


def _split(word: Word) -> list[Word]:
    """The entries of a list of folders."""
    pieces = word.pieces or (Piece(word.text, word.span, because=word.because),)
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.text is None or ":" not in piece.text:
            parts[-1].append(piece)
            continue
        first, *more = piece.text.split(":")
        parts[-1].append(piece._replace(text=first, exact=False))
        parts += [[piece._replace(text=one, exact=False)] for one in more]
    kept = [[piece for piece in part if piece.text != ""] for part in parts]
    return [word_of(tuple(part)) for part in kept if part]
