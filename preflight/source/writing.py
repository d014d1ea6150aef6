"""The only module that writes: every file that preflight creates, replaces or appends to is opened here."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from preflight.source.checkout_root import MARKS
from preflight.source.source_file import SCRIPT_SUFFIXES, YAML_SUFFIXES, InputError, Source, files_read

SETTINGS = (".toml", ".gitignore", ".gitattributes", ".gitmodules", ".gitconfig")
"""Names of files that control preflight or git: a report never gets one of them, even if no such file exists yet."""
INPUTS = (*YAML_SUFFIXES, *SCRIPT_SUFFIXES, *SETTINGS)
"""Names of files that preflight or git reads: a report never replaces one."""
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
"""Names of streams that the caller has opened; also /dev/fd/N and the null device."""
_NO_LINK = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))


def write_report(file: str, report: str | bytes, taken: Iterable[str] = ()) -> None:
    """Write a report atomically, never over a file that a user wrote or that was read for it.

    taken: files that were read. Raises InputError.
    """
    refuse_report(file, taken)
    data = report if isinstance(report, bytes) else report.encode("utf-8", "backslashreplace")
    write_file(Path(file), data)


def refuse_report(file: str, taken: Iterable[str] = ()) -> None:
    """Raise InputError if a report would replace a file that a user wrote."""
    if _stream(file) is not None:
        return
    with told(file):
        there = _judged(file)
    if there is None:
        if file.lower().endswith(SETTINGS):
            raise InputError("would be read as settings, so a report cannot have this name", file)
        return
    if file.lower().endswith(INPUTS) or _first_bytes(file) == b"#!":
        raise InputError("is a config, a script or settings, and is never replaced by a report", file)
    if any(_is(there, other) for other in (*taken, *files_read())):
        raise InputError("was read for this report, so the report does not replace it", file)


def write_file(path: Path, data: bytes, *, parents: bool = False, mode: int | None = None) -> None:
    """Create or replace a file atomically, or write to a stream of the caller.

    parents: create the folders above it. mode: that of a new file; by default the umask determines it. Raises
    InputError.
    """
    name = str(path)
    with told(name):
        if (stream := _stream(name)) is not None:
            _to_stream(stream, data)
            return
        there = _judged(name)
        if parents:
            os.makedirs(path.parent, exist_ok=True)
        if there is None:
            _create(path, data, mode)
        else:
            replace(path, there, data, name)


def create_file(path: Path, data: bytes, *, parents: bool = False) -> None:
    """Create a file that does not exist. Raises InputError."""
    if os.path.lexists(path):
        raise InputError("exists already", str(path))
    write_file(path, data, parents=parents)


def open_to_append(path: Path) -> int:
    """An appending, non-blocking handle of a regular file, created if missing, for callers with permission to open it.

    Also /dev/stdout, /dev/stderr, /dev/fd/N and the null device. Raises InputError if no report may be written there,
    OSError if writing fails.
    """
    if (stream := _stream(str(path))) is not None:
        return _opened(stream)
    refuse_report(str(path))
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o640)
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # created there in the meantime
        os.close(handle)
        raise _special(str(path))
    return handle


def keep_file(path: str, data: bytes) -> None:
    """Replace a file in a private folder that the caller has checked, readable only by this user. Raises OSError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _fill(temporary, data, 0o600)
        os.replace(temporary, path)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def replace(path: Path, status: os.stat_result, data: bytes, shown: str) -> None:
    """Replace a file atomically, keeping owner and permissions.

    Raises InputError if these cannot be kept, OSError if it cannot be written.
    """
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".preflight", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
        made = os.stat(name)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            raise InputError("belongs to another user or group, which a fix would change; nothing was written", shown)
        os.chmod(name, status.st_mode & 0o7777)
        _attributes(path, name)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def told(shown: str) -> Iterator[None]:
    """An error of the system as an InputError about a file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", shown) from None


def _judged(file: str) -> os.stat_result | None:
    """The status of the path of a file to be written, None if nothing is there.

    Raises InputError if nothing may be written there, OSError if that cannot be determined.
    """
    folder = os.path.realpath(os.path.dirname(os.path.abspath(file)))
    if _is_gits(os.path.join(folder, os.path.basename(file))):
        raise InputError("is in the .git folder of a repository; nothing was written", file)
    if elsewhere := _led_out(os.path.dirname(os.path.abspath(file))):
        raise InputError(
            f"a link in the checkout leads out of it, to {elsewhere}, so nothing was written (name the folder itself)",
            file,
        )
    try:
        there = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(there.st_mode):
        raise InputError("is a link, and links are not followed for writing; name its target", file)
    if stat.S_ISDIR(there.st_mode):
        raise InputError("cannot be written: Is a directory", file)
    if not stat.S_ISREG(there.st_mode):
        raise _special(file)
    return there


def _special(file: str) -> InputError:
    return InputError("is a pipe, a socket or a device; nothing was written", file)


def _is_gits(path: str) -> bool:
    """Whether a path, without links, is a .git folder or is in one."""
    if any(part.lower() == ".git" for part in path.split(os.sep)):
        return True
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        inner = [os.path.join(folder, name) for name in ("objects", "refs", "HEAD")]
        if os.path.isdir(inner[0]) and os.path.isdir(inner[1]) and os.path.lexists(inner[2]):
            return True
        folder = os.path.dirname(folder)
    return False


def _led_out(folder: str) -> str:
    """The target of a link among the folders of a path that is in a checkout and leads out of it; "" if there is
    none."""
    above = os.path.dirname(folder)
    while folder != above:
        if os.path.islink(folder):
            root, real = _marked(os.path.realpath(above)), os.path.realpath(folder)
            if root and os.path.commonpath([root, real]) != root:
                return real
        folder, above = above, os.path.dirname(above)
    return ""


def _marked(folder: str) -> str:
    """The nearest folder above that is the top of a checkout, "" if there is none."""
    while not any(os.path.lexists(os.path.join(folder, mark)) for mark in MARKS):
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)
    return folder


def _first_bytes(file: str) -> bytes:
    """The first bytes of a regular file; none if it cannot be read."""
    try:
        handle = os.open(file, os.O_RDONLY | _NO_LINK)
    except OSError:
        return b""
    try:
        return os.read(handle, 2)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _is(there: os.stat_result, other: str) -> bool:
    try:
        return os.path.samestat(there, os.stat(other))
    except (OSError, ValueError):
        return False


def _stream(name: str) -> int | None:
    """The descriptor of a stream opened and named by the caller, -1 for the null device, None for a file."""
    name = os.path.normpath(name)
    folder, _, number = name.rpartition("/")
    if folder == "/dev/fd" and re.fullmatch("[0-9]{1,6}", number):
        return int(number)
    return -1 if name == os.devnull else STREAMS.get(name)


def _opened(stream: int) -> int:
    """A handle of a stream, to be closed by the caller. Raises OSError."""
    return os.dup(stream) if stream >= 0 else os.open(os.devnull, os.O_WRONLY)


def _to_stream(stream: int, data: bytes) -> None:
    sys.stdout.flush()
    with os.fdopen(_opened(stream), "wb") as file:
        file.write(data)


def _create(path: Path, data: bytes, mode: int | None) -> None:
    temporary = str(path.with_name(f".{path.name[:100]}.{os.getpid()}.preflight"))
    try:
        _fill(temporary, data, 0o666)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _fill(temporary: str, data: bytes, mode: int) -> None:
    """Create a new file with a mode that the umask limits."""
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, mode), "wb") as stream:
        stream.write(data)


def _attributes(path: Path, name: str) -> None:
    """Extended attributes, including access lists, as far as the file system supports them."""
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(path):
                with contextlib.suppress(OSError):
                    os.setxattr(name, attribute, os.getxattr(path, attribute))


PATIENCE = 10.0
"""Seconds until waiting for another process's lock ends."""
SILENCE = 0.5
"""Seconds until the user is informed."""
PAUSE = 0.02


def write(old: Source, new: Source, tell: Callable[[str], None] = lambda name: None) -> None:
    """Write an edited source over its file, atomically.

    `tell` is called with the file's name if another process has locked it. Raises InputError if the file has changed
    since, has other names, stays locked, or cannot be written.
    """
    if old.path is None:
        raise InputError("is not a file that can be written", old.name)
    path = Path(os.path.realpath(old.path))
    with told(old.name), _locked(path, old.name, tell):
        status = path.stat()
        if path.read_bytes() != old.encode(old.text):
            raise InputError("changed while it was being fixed; nothing was written", old.name)
        if not os.access(path, os.W_OK) or not status.st_mode & 0o222:
            raise InputError("is read-only; nothing was written", old.name)
        if status.st_nlink > 1:
            raise InputError(
                "has other names (hard links), which would keep the old text; nothing was written", old.name
            )
        replace(path, status, new.encode(new.text), old.name)


@contextlib.contextmanager
def _locked(path: Path, shown: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Lock out other fixers; a file that one of them has replaced meanwhile is detected by its changed bytes.

    Any reader of the file may hold a lock on it, so the wait is limited. Raises InputError.
    """
    with open(path, "rb") as stream:
        start, waits = time.monotonic(), False
        while not _lock(stream.fileno()):
            waited = time.monotonic() - start
            if waited > PATIENCE:
                raise InputError("is locked by another process; nothing was written", shown)
            if waited > SILENCE and not waits:
                tell(shown)
            waits = waits or waited > SILENCE
            time.sleep(PAUSE)
        yield


def _lock(handle: int) -> bool:
    """Lock a file; False if another process holds a lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, and file systems without locks
        return True
    return True
