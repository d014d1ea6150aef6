"""A release that is published only as a wheel, read like a repository at one revision."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from upstream.checkout import BLOB, NoRevision


class Wheel:
    """The files of a wheel; its commit is the hash of the wheel itself."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            project, version = path.name.split("-")[:2]
            raise NoRevision(f"{path} is not there: pip download {project}=={version} --no-deps -d {path.parent}")
        self.path, self.revision = path, path.name

    @cached_property
    def commit(self) -> str:
        """The identity of this release."""
        return "sha256:" + hashlib.sha256(self.path.read_bytes()).hexdigest()

    @cached_property
    def date(self) -> str:
        """The date of its newest file."""
        return "{:04}-{:02}-{:02}".format(*max(entry.date_time for entry in self._files.values()))

    @cached_property
    def _files(self) -> dict[str, zipfile.ZipInfo]:
        with zipfile.ZipFile(self.path) as archive:
            return {entry.filename: entry for entry in archive.infolist() if not entry.is_dir()}

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every file of the release."""
        return frozenset(self._files)

    def _data(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = tuple(paths)
        with zipfile.ZipFile(self.path) as archive:
            return {
                name: archive.read(name)
                for name in self._files
                if any(name == one or name.startswith(f"{one}/") for one in wanted)
            }

    def texts(self, paths: Iterable[str], suffixes: tuple[str, ...] = (".py",)) -> Mapping[str, str]:
        """Path → text of the files at and below these paths with one of the suffixes."""
        return {
            name: data.decode("utf-8", errors="replace")
            for name, data in self._data(paths).items()
            if name.endswith(suffixes)
        }

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """File → the abbreviated blob id that git would give it."""
        return {name: _object(data) for name, data in self._data(paths).items()}

    def extract(self, folder: Path, paths: Iterable[str]) -> None:
        """Extracts the files at and below these paths into a folder."""
        with zipfile.ZipFile(self.path) as archive:
            archive.extractall(folder, members=list(self._data(paths)))


def _object(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:BLOB]
