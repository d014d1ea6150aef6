"""Finds the repositories of the frameworks on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from upstream.checkout import Checkout
from upstream.frameworks import Framework, Release
from upstream.wheel import Wheel

VARIABLE = "PREFLIGHT_UPSTREAM"
"""The variable that names the folder with the repositories; its subfolder `wheels` has the releases that are only
published as wheels."""
FOLDER = "upstream-repositories"


WHEELS = "PREFLIGHT_WHEELS"
"""The variable that names another folder for them."""


def wheels() -> Path:
    """The folder with wheels of releases that are only published as wheels."""
    return Path(os.environ.get(WHEELS) or Path(os.environ.get(VARIABLE, FOLDER), "wheels"))


class NoRepository(Exception):
    """Raised if a framework's repository is not found."""


class Repositories:
    """Repositories by framework: given one by one as NAME=PATH or PATH, otherwise found in the folder that the variable
    names. pinned: framework → release, tag or branch → the commit at which it is read, wherever its branch is."""

    def __init__(
        self,
        given: Iterable[str] = (),
        default: str = "",
        pinned: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        self._pinned = pinned
        pairs = [word.partition("=")[::2] if "=" in word else (default, word) for word in given]
        self._given = {name: Path(path) for name, path in pairs}

    def path(self, framework: Framework) -> Path:
        """The repository of a framework. Raises NoRepository."""
        if framework.name in self._given:
            return self._given[framework.name]
        owner, _, name = framework.repository.partition("/")
        root = Path(os.environ.get(VARIABLE, FOLDER))
        for place in (root / name, root / f"{name}.git", root / owner / name, root / f"{owner}+{name}" / "repo"):
            if place.is_dir():
                return place
        how = f"name one with --repository {framework.name}=PATH or set {VARIABLE}"
        raise NoRepository(f"no repository of {framework.repository} is in {root}; {how}")

    def has(self, framework: Framework) -> bool:
        """Whether the repository exists."""
        try:
            return self.path(framework).is_dir()
        except NoRepository:
            return False

    def revision(self, framework: Framework, release: str) -> str:
        """The revision at which a release of a framework is read; any other name is a revision."""
        pinned = self._pinned.get(framework.name, {})
        try:
            known = framework.release(release)
        except KeyError:
            return pinned.get(release, release)
        return pinned.get(known.name, known.revision)

    def checkout(self, framework: Framework, release: str) -> Checkout | Wheel:
        """A release of a framework; any other name is a revision."""
        revision = self.revision(framework, release)
        if revision.endswith(".whl"):
            return Wheel(wheels() / revision)
        return Checkout(self.path(framework), revision)


def followed_releases(framework: Framework) -> list[Release]:
    """The releases whose checks are followed, the oldest first."""
    return [release for release in framework.releases if not release.options_only]
