"""A repository at one revision: its commit, its files, a folder with some of them."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

BLOB = 12
"""Number of digits that are kept of an object's name."""


class NoRevision(Exception):
    """Raised if a repository lacks a revision."""


class Checkout:
    """A bare repository or a clone, read at one revision; its work tree and its configuration are not used."""

    def __init__(self, repository: Path, revision: str) -> None:
        self.repository, self.revision = repository, revision

    def _git(self, *words: str) -> bytes:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", "-C", str(self.repository), *words], capture_output=True, env=environment, check=False
        )
        if done.returncode:
            raise NoRevision(f"{self.repository} at {self.revision}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    @cached_property
    def commit(self) -> str:
        """The commit that the revision names."""
        return self._git("rev-parse", "--verify", f"{self.revision}^{{commit}}").decode().strip()

    @cached_property
    def date(self) -> str:
        """The date of the commit."""
        return self._git("show", "--no-patch", "--format=%cs", self.commit).decode().strip()

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Every tag of the repository."""
        return tuple(self._git("tag", "--list").decode().split())

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every file of the revision."""
        return frozenset(self._git("ls-tree", "-r", "-z", "--name-only", self.commit).decode().split("\0")) - {""}

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """File → its abbreviated blob id."""
        rows = self._git("ls-tree", "-r", "-z", self.commit, "--", *paths).decode().split("\0")
        found = (row.partition("\t")[::2] for row in rows if row)
        return {path: about.split()[2][:BLOB] for about, path in found}

    def _archive(self, paths: Iterable[str]) -> tarfile.TarFile | None:
        wanted = [path for path in paths if any(known == path or known.startswith(f"{path}/") for known in self.paths)]
        return tarfile.open(fileobj=io.BytesIO(self._git("archive", self.commit, "--", *wanted))) if wanted else None

    def texts(self, paths: Iterable[str], suffixes: tuple[str, ...] = (".py",)) -> Mapping[str, str]:
        """Path → text of the files at and below these paths with one of the suffixes."""
        archive, found = self._archive(paths), {}
        for member in archive or ():
            if (
                archive is not None
                and member.isfile()
                and member.name.endswith(suffixes)
                and (file := archive.extractfile(member)) is not None
            ):
                found[member.name] = file.read().decode("utf-8", errors="replace")
        return found

    def extract(self, folder: Path, paths: Iterable[str]) -> None:
        """Extract the files at and below these paths into a folder."""
        if (archive := self._archive(paths)) is not None:
            archive.extractall(folder, filter="data")
