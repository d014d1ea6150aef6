"""An untrusted git repository: git reads objects within limits, and executes nothing that the repository configures."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from preflight.source.record import NamedTuple
from preflight.source.source_file import MAX_BYTES, InputError, bytes_of
from preflight.source.typing_without_import import IO

PIECE = 64 * 1024
MEMORY = 1024 * 1024 * 1024
"""Bytes that the program may allocate; files that it maps are not counted."""
MOST_COMPLAINTS = 10_000


class Ran(NamedTuple):
    """The result of a program: exit code, stdout and stderr."""

    returncode: int
    stdout: bytes
    stderr: bytes


class TooLong(Exception):
    """Raised if the program did not end in time."""


class TooMuch(Exception):
    """Raised if the program wrote too much output."""


class _Reader(threading.Thread):
    """Reads output up to a number of bytes; over: there was more, and the program was killed."""

    def __init__(self, stream: IO[bytes], most: int, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream, self._most, self._process = stream, most, process
        self.parts: list[bytes] = []
        self.over = False

    def run(self) -> None:
        size = 0
        with contextlib.suppress(OSError, ValueError):
            while part := self._stream.read1(PIECE):  # type: ignore[attr-defined]
                if (size := size + len(part)) > self._most:
                    self.over = True
                    self._process.kill()
                    break
                self.parts.append(part)


def run_bounded(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], given: bytes, seconds: float, most: int
) -> Ran:
    """Run a program with input on stdin. Raises TooLong, TooMuch, and OSError or ValueError if it cannot be started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        _limit_memory(process.pid)
        assert process.stdin and process.stdout and process.stderr
        readers = [_Reader(process.stdout, most, process), _Reader(process.stderr, MOST_COMPLAINTS, process)]
        writer = threading.Thread(target=_write, args=(process.stdin, given), daemon=True)
        for thread in (*readers, writer):
            thread.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TooLong from None
        finally:
            process.kill()
            process.wait()
        for thread in (*readers, writer):
            thread.join(seconds)
    if any(reader.over for reader in readers):
        raise TooMuch
    return Ran(process.returncode, *(b"".join(reader.parts) for reader in readers))


def _write(stream: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(given)
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _limit_memory(process: int) -> None:
    """Limit the memory of another process, if the system supports it."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY, MEMORY))  # type: ignore[attr-defined,unused-ignore]


SECONDS = 10
SECONDS_TOGETHER = 120
"""Seconds of all calls for a repository."""
SECONDS_FOR_RULES = 5
"""Patterns may be crafted so that matching them never ends: then none applies."""
MOST_OUTPUT = 64 * 1024 * 1024
"""Maximum bytes of output: a list of half a million files."""
MOST_ENTRIES = 20_000
LITERAL = "--literal-pathspecs"
_OWN = ("HEAD", "config", "config.worktree", "commondir", "gitdir", "packed-refs", "shallow", "info/grafts")
_SHARED = ("info/attributes", "info/exclude", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags")
"""Files that git always opens, and folders in which it may open any file."""
_OFF = {
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": "",
    "core.sshCommand": "false",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "maintenance.auto": "false",
    "gc.auto": "0",
    "core.packedGitWindowSize": "32m",
    "core.packedGitLimit": "512m",
}
_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # overrides protocol.NAME.allow of any config, in every version of git
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class Repository:
    """The repository around a folder. Raises InputError if there is none, or no git."""

    def __init__(self, folder: Path) -> None:
        here = Path(os.path.realpath(folder))
        top = next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), None)
        if top is None:
            raise InputError(f"{folder} is not in a git repository")
        self.top = top
        self._left = float(SECONDS_TOGETHER)
        self._program, self._environment = _program(top)
        _refuse_special(top / ".git")

    def commit(self, revision: str) -> str:
        """The commit that a revision refers to. Raises InputError if git does not know it."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        ran = self._run(*asked)
        if ran.returncode or not ran.stdout.strip():
            why = ran.stderr.decode("utf-8", "replace").partition("\n")[0]
            raise InputError(f"git does not know the revision {revision!r}" + (f": {why}" if why else ""))
        return ran.stdout.decode("ascii", "replace").strip()

    def file(self, commit: str, path: Path) -> bytes | None:
        """A file at a commit; None if it did not exist, is outside the repository, or is too large."""
        try:
            inside = Path(os.path.realpath(path.absolute().parent), path.name).relative_to(self.top)
        except ValueError:
            return None
        name = f"{commit}:{inside.as_posix()}"
        size = self._run("cat-file", "-s", name)
        if size.returncode or not size.stdout.strip().isdigit() or int(size.stdout) > MAX_BYTES:
            return None
        ran = self._run("cat-file", "blob", name)
        return ran.stdout if ran.returncode == 0 else None

    def commits_of(self, path: Path, most: int) -> list[str]:
        """The last commits that changed a file, the newest first. Raises InputError if git fails."""
        name = _inside(Path(os.path.realpath(path.absolute().parent), path.name), self.top)
        if not name or name == ".":
            return []
        ran = self._run("rev-list", "-n", str(most), "HEAD", "--", name, seconds=SECONDS_FOR_RULES)
        return ran.stdout.decode("ascii", "replace").split() if ran.returncode == 0 else []

    def fork(self, before: str, after: str) -> str:
        """The merge base of two commits. Raises InputError if there is none."""
        ran = self._run("merge-base", before, after)
        if ran.returncode or not ran.stdout.strip():
            raise InputError(f"{before[:12]} and {after[:12]} have no commit in common")
        return ran.stdout.decode("ascii", "replace").strip()

    def tree(self, commit: str, wanted: Iterable[Path] = ()) -> dict[str, str]:
        """The regular files of a commit by path from the top, each with its blob id.

        wanted: files and folders to list; () for all. Raises InputError if git cannot list them, or there are too many.
        """
        names = [_inside(path, self.top) for path in wanted]
        below = [name for name in names if name]
        if names and not below:
            return {}
        ran = self._run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *(() if "." in below else below))
        if ran.returncode:
            raise InputError(f"git cannot list the files of {commit[:12]}")
        entries = (entry.partition(b"\t") for entry in ran.stdout.split(b"\0") if entry)
        return {
            os.fsdecode(name): about.split()[2].decode("ascii")
            for about, _, name in entries
            if about.startswith((b"100644 blob", b"100755 blob"))
        }

    @staticmethod
    def digest(path: Path, like: str | None = None) -> str:
        """The blob id of a file's content; "" if there is no regular file. like: an id of the repository, which shows
        its hash function."""
        from hashlib import sha1, sha256

        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                return ""
            data = bytes_of(path)
        except OSError:
            return ""
        made = sha256 if like is not None and len(like) == 64 else sha1
        return made(b"blob %d\0" % len(data) + data).hexdigest()

    def ignored(self, paths: Sequence[Path]) -> frozenset[Path]:
        """Those of the paths that the rules in the repository ignore. Raises InputError if git fails."""
        names: dict[bytes, Path] = {}
        for path in paths:
            try:
                inside = Path(os.path.realpath(path.absolute().parent), path.name).relative_to(self.top)
            except ValueError:
                continue
            names[os.fsencode(inside)] = path
        ran = self._run(
            *("check-ignore", "--no-index", "-z", "--stdin"),
            given=b"\0".join(names) + b"\0",
            seconds=SECONDS_FOR_RULES,
            first=("-c", f"core.excludesFile={os.devnull}"),
        )
        if ran.returncode not in (0, 1):
            raise InputError("git does not list the files it ignores")
        return frozenset(names[name] for name in ran.stdout.split(b"\0") if name in names)

    def _run(
        self,
        *words: str,
        given: bytes = b"",
        seconds: float | None = None,
        first: tuple[str, ...] = (LITERAL,),
    ) -> Ran:
        """The output of git. Raises InputError if it takes too long or prints too much. first: options of git
        itself."""
        options = [part for name, value in _OFF.items() for part in ("-c", f"{name}={value}")]
        command = [self._program, "--no-pager", *options, *first, *words]
        start, seconds = time.monotonic(), min(SECONDS if seconds is None else seconds, max(0.0, self._left))
        try:
            return run_bounded(command, self.top, self._environment, given, seconds, MOST_OUTPUT)
        except TooLong:
            raise InputError(f"git {words[0]} does not finish within {seconds:.0f} s") from None
        except TooMuch:
            raise InputError(f"git {words[0]} prints more than {MOST_OUTPUT} bytes, which are not read") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in a revision
            raise InputError(f"git cannot be run: {getattr(error, 'strerror', None) or error}") from None
        finally:
            self._left -= time.monotonic() - start


def _inside(path: Path, top: Path) -> str:
    """A path relative to the top of a repository; "" if it is outside."""
    try:
        return path.relative_to(top).as_posix()
    except ValueError:
        return "." if path in top.parents else ""


def _refuse_special(git: Path) -> None:
    """Raises InputError if git would open a special file: opening a pipe waits forever."""
    places = [git]
    if git.is_file():
        own = _named_in(git, "gitdir:")
        places += [own] if own is not None else []
    shared = _named_in(places[-1] / "commondir", "")
    places += [shared] if shared is not None else []
    for place in chain.from_iterable(_opened(place) for place in places):
        try:
            kind = os.stat(place).st_mode
        except OSError:
            continue
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise InputError("is not a regular file, so git is not called", str(place))


def _opened(folder: Path) -> Iterable[Path]:
    """The files that git may open in a folder of a repository."""
    yield folder
    for name in (*_OWN, *_SHARED):
        yield folder / name
    for name in _SHARED:
        try:
            with os.scandir(folder / name) as entries:
                yield from (Path(entry.path) for entry in islice(entries, MOST_ENTRIES))
        except OSError:
            continue


def _named_in(file: Path, before: str) -> Path | None:
    """The folder named by a file of a repository, or None."""
    try:
        text = bytes_of(file)[:4096].decode("utf-8", "replace") if stat.S_ISREG(os.stat(file).st_mode) else ""
    except OSError:
        return None
    name = text.strip().removeprefix(before).strip()
    return file.parent / name if name and "\0" not in name else None


def _program(top: Path) -> tuple[str, dict[str, str]]:
    """The git executable, never one from the repository, and its environment: the caller's without variables that
    control git.

    The user's own config is read: it lists which folders of other owners are safe.
    """
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(part)]
    trusted = os.pathsep.join(part for part in folders if not Path(os.path.realpath(part)).is_relative_to(top))
    found = shutil.which("git", path=trusted)
    if found is None or Path(os.path.realpath(found)).is_relative_to(top):
        raise InputError("git cannot be run, because it is not on PATH")
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    ceiling = {"GIT_CEILING_DIRECTORIES": str(top.parent)}
    return found, {**environment, **_ENVIRONMENT, **ceiling, "PATH": trusted}
