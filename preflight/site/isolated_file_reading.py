"""Looks at files in a child process with limits: a file system that hangs, a file that is a trap, and a reader that
takes too much do not harm the caller. Results come back as values, and only names of preflight's own facts are resolved
in them."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import stat
import sys
import time
from collections.abc import Sequence
from functools import partial

from preflight.job import Opened
from preflight.loaders.text_limits import address_space, fork
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

LARGEST = 64 * 1024 * 1024
"""Bytes of one file that are read."""
ALL = 256 * 1024 * 1024
"""Bytes of all files of one run."""
MEMORY = 1024 * 1024 * 1024
"""Bytes that the child may allocate in addition to those at its start: 23 MB of metadata take 378 MB."""
SECONDS = 30
"""Processor seconds for the whole child."""
ANSWER = 16 * 1024 * 1024
"""Bytes of one answer."""
HOME = "preflight.job"
"""The module of the facts that a job has."""
DEEP = 2
"""A path counts as missing if this number of folders above it exist: a machine without /data is not the job's
machine."""
NO_FORK = "this system cannot start a separate process for this check"


class Unread(Exception):
    """Raised for something that is not read; the message has the reason."""


class Eyes:
    """Access to regular files of limited size, each access recorded."""

    def __init__(self) -> None:
        self.opened: dict[tuple[str, str], Opened] = {}
        self._left = ALL

    def note(self, path: str, how: str, because: str = "") -> None:
        """Record an operation on a path."""
        if how == "read":
            self.opened.pop((path, "seen"), None)
        if (path, "read") not in self.opened:
            self.opened[path, how] = Opened(path, how, because)  # type: ignore[arg-type]

    def status(self, path: str) -> os.stat_result | None:
        """The status of a path, following links; None if nothing is there. Raises Unread if access is denied, or if a
        link leads to a place that this machine does not have."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            self.note(path, "missing")
            if (elsewhere := leads_elsewhere(path)) is not None:
                raise Unread(f"{path} leads to {elsewhere}, which this machine does not have") from None
            return None
        except ValueError:  # a NUL in the name
            self.note(path, "missing")
            return None
        except OSError as error:
            raise self._refused(path, error) from None
        self.note(path, "seen")
        return found

    def is_file(self, path: str) -> bool:
        """Whether the path is a regular file."""
        found = self.status(path)
        return found is not None and stat.S_ISREG(found.st_mode)

    def is_folder(self, path: str) -> bool:
        """Whether the path is a folder."""
        found = self.status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def size(self, path: str) -> int | None:
        """The size of a regular file in bytes; None if nothing is there. Raises Unread for other kinds of files."""
        found = self.status(path)
        if found is None:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise Unread(f"{path} is not a regular file")
        return found.st_size

    def is_empty(self, path: str) -> bool:
        """Whether a folder has no entries, like a place at which nothing is mounted. Raises Unread."""
        try:
            with os.scandir(path) as entries:
                return next(entries, None) is None
        except OSError as error:
            raise self._refused(path, error) from None

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """The bytes of a regular file. Raises Unread if it is missing or too large."""
        whole = self.size(path)
        if whole is None:
            raise Unread(f"{path} does not exist")
        size = whole - start if size is None else min(size, whole - start)
        if size > LARGEST:
            raise Unread(f"{path} has {size:,} bytes; more than {LARGEST:,} are not read")
        if size > self._left:
            raise Unread(f"more than {ALL:,} bytes of what the run names are not read")
        self._left -= max(size, 0)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise Unread(f"{path} is not a regular file")
                stream.seek(start)
                data = stream.read(max(size, 0))
        except OSError as error:
            raise self._refused(path, error) from None
        self.note(path, "read")
        return data

    def text(self, path: str, most: int = 1 << 20) -> str:
        """The text of a small file. Raises Unread."""
        return self.read(path, 0, most).decode("utf-8", "replace")

    def listed(self, path: str, most: int = 4096) -> tuple[str, ...]:
        """The first names of a folder, sorted. Raises Unread."""
        names = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) > most:
                        raise Unread(f"{path} has more than {most:,} entries")
        except OSError as error:
            raise self._refused(path, error) from None
        self.note(path, "read")
        return tuple(sorted(names))

    def _refused(self, path: str, error: OSError) -> Unread:
        reason = error.strerror or str(error)
        self.note(path, "not read", reason)
        return Unread(f"{path} cannot be read: {reason}")


def leads_elsewhere(path: str) -> str | None:
    """The target of a missing path with a link in it, if the folders of the target are not on this machine."""
    target = os.path.realpath(path)
    if target == os.path.abspath(path):
        return None
    above = os.path.dirname(target)
    while above != "/" and not os.path.isdir(above):
        above = os.path.dirname(above)
    return target if len([part for part in above.split("/") if part]) < DEEP else None


Task = partial[Any]
"""A reader with its arguments, which must be hashable; it reads files through the object that limits it."""


class Answer(NamedTuple):
    """The result of a task; because: the reason if there is none. opened: the inspected paths."""

    value: Any
    because: str = ""
    opened: tuple[Opened, ...] = ()


def look_apart(tasks: Sequence[Task], seconds: float) -> list[Answer]:
    """The answers of tasks, in order. A task that exceeds its time or ends its process has no value; the others
    continue in a new process."""
    if not hasattr(os, "fork"):
        return [Answer(None, NO_FORK) for _ in tasks]
    answers: list[Answer] = []
    while len(answers) < len(tasks):
        before = len(answers)
        because = _in_child(tasks[before:], seconds, answers)
        if len(answers) < len(tasks):
            answers.append(Answer(None, because))
    return answers


def _in_child(tasks: Sequence[Task], seconds: float, answers: list[Answer]) -> str:
    """Collect the answers of a child until it ends or hangs; returns the reason for the end."""
    reader, writer = os.pipe()
    try:
        child = fork()
        if child == 0:
            _serve(tasks, writer)
    except OSError as error:
        os.close(reader)
        return f"no process can be started for it: {error.strerror}"
    finally:
        os.close(writer)
    try:
        for _ in tasks:
            frame = _frame(reader, seconds)
            if not frame:
                return f"it took more than {seconds:.0f} s" if frame is None else "it exceeded its limits"
            answers.append(_Facts(io.BytesIO(frame)).load())
        return ""
    except Exception:  # the data from the child is not a result
        return "it exceeded its limits"
    finally:
        os.close(reader)
        _end(child)


def _frame(reader: int, seconds: float) -> bytes | None:
    """One answer as bytes; None on timeout, empty at the end."""
    from select import POLLIN, poll

    ends = poll()
    ends.register(reader, POLLIN)
    until, data, wanted = time.monotonic() + seconds, b"", 4
    while len(data) < wanted:
        left = until - time.monotonic()
        if left <= 0 or not ends.poll(left * 1000):
            return None
        part = os.read(reader, min(wanted - len(data), 1 << 20))
        if not part:
            return b""
        data += part
        if len(data) == wanted == 4:
            wanted = 4 + min(int.from_bytes(data, "little"), ANSWER)
    return data[4:]


def _end(child: int) -> None:
    """End the child; one that hangs in the kernel is abandoned."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, 9)
        for _ in range(100):
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            time.sleep(0.001)


def _serve(tasks: Sequence[Task], writer: int) -> None:
    """The main loop of the child: one answer per task."""
    try:
        _confine()
        eyes = Eyes()
        for task in tasks:
            data = pickle.dumps(_answer(task, eyes), 4)
            data = data if len(data) <= ANSWER else pickle.dumps(Answer(None, "it is too large"), 4)
            data = len(data).to_bytes(4, "little") + data
            while data:
                data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def _confine() -> None:
    import resource
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    if (size := address_space()) is not None:
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _answer(task: Task, eyes: Eyes) -> Answer:
    eyes.opened = {}
    try:
        return Answer(task(eyes), "", tuple(eyes.opened.values()))
    except Unread as error:
        return Answer(None, str(error), tuple(eyes.opened.values()))
    except (MemoryError, RecursionError):
        return Answer(None, "it exceeded its limits", tuple(eyes.opened.values()))
    except Exception as error:
        return Answer(None, f"its format is not recognized ({type(error).__name__})", tuple(eyes.opened.values()))


class _Facts(pickle.Unpickler):
    """Unpickles the child's answers, which may contain preflight's own records and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        ours = module == HOME or module.startswith("preflight.site.")
        found = getattr(sys.modules.get(module), name, None) if ours and "." not in name else None
        if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
            raise pickle.UnpicklingError(f"{module}.{name} is not a fact")
        return found
