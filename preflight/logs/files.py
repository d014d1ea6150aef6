"""The logs of a call: files, the files in folders, stdin; compressed files are decompressed."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from preflight.logs.failures import Failure, Failures
from preflight.logs.relevant_lines import Reads, lines_of_interest
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import BinaryIO, cast

STDIN = "-"
SUFFIXES = (".log", ".out", ".err", ".txt", ".gz", ".stdout", ".stderr", "stdout", "stderr")
"""Names of files in a folder that count as logs."""
MOST = 20_000
"""Maximum number of files in a folder."""


def opened(names: Sequence[str]) -> list[str]:
    """The logs for names: named files, and in folders the files that are named like logs. Raises InputError if one does
    not exist."""
    found: list[str] = []
    for name in names:
        if name != STDIN and os.path.isdir(name):
            inside = sorted(_in_folder(name))
            if not inside:
                raise InputError("contains no log files", name)
            found += inside
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _in_folder(folder: str) -> Iterator[str]:
    count = 0
    for top, _, files in os.walk(folder):
        for file in files:
            count += 1
            if count > MOST:
                raise InputError(f"contains more than {MOST} files; name the logs", folder)
            if file.endswith(SUFFIXES):
                yield os.path.join(top, file)


def read_logs(names: Sequence[str], said: Sequence[str] = ()) -> tuple[Failure, ...]:
    """The failures in logs. `said`: additional lines, such as a scheduler's record. Raises InputError."""
    failures = Failures()
    for name in names:
        with log(name) as file:
            failures.read("<stdin>" if name == STDIN else name, lines_of_interest(file, failures.full))
    if said:
        failures.read("scheduler", lines_of_interest(cast(Reads, io.BytesIO("\n".join(said).encode()))))
    return failures.found


@contextmanager
def log(name: str) -> Iterator[Reads]:
    """A log, open for reading. Raises InputError if it is not a regular file, or is unreadable."""
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        status = os.stat(name)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            raise InputError("is not a file", name)
        with Path(name).open("rb", buffering=0) as file:
            yield cast(Reads, gzip.GzipFile(fileobj=cast(BinaryIO, file)) if name.endswith(".gz") else file)
    except (OSError, EOFError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", name) from None
