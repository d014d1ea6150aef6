"""A git repository that somebody else may have made: git reads objects from it and runs nothing that it names.

git itself runs what a repository's config says (a file-system monitor, hooks, the other end of a fetch), and takes any
folder with the right names for a repository. So it is called from the nearest folder that has a `.git`, which no
commit can bring; only `rev-parse`, `cat-file`, `ls-tree`, `merge-base` and `check-ignore --no-index` are called, which
read neither the index nor any file but those of rules; and whatever could start a program is switched off on the
command line, which outweighs every config.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from preflight.source.text import MAX_BYTES, InputError

SECONDS = 30
SECONDS_FOR_RULES = 5
"""Patterns may be made so that matching them takes without end: then none counts."""
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
}
_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # outweighs protocol.NAME.allow of any config, and holds for any git
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class Repository:
    """The repository around a folder. Raises InputError where there is none, or no git."""

    def __init__(self, folder: Path) -> None:
        here = Path(os.path.realpath(folder))
        top = next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), None)
        if top is None:
            raise InputError(f"there is no git repository at {folder}")
        self.top = top
        self._program, self._environment = _program(top)

    def commit(self, revision: str) -> str:
        """The commit that a revision names. Raises InputError where git knows none."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        ran = self._run(*asked)
        if ran.returncode or not ran.stdout.strip():
            why = ran.stderr.decode("utf-8", "replace").partition("\n")[0]
            raise InputError(f"git knows no revision {revision!r} here" + (f": {why}" if why else ""))
        return ran.stdout.decode("ascii", "replace").strip()

    def file(self, commit: str, path: Path) -> bytes | None:
        """A file as it was; None where it was not there, lies outside of the repository, or is too large."""
        try:
            inside = Path(os.path.realpath(path.absolute().parent), path.name).relative_to(self.top)
        except ValueError:
            return None
        name = f"{commit}:{inside.as_posix()}"
        size = self._run("cat-file", "-s", name)
        if size.returncode or int(size.stdout) > MAX_BYTES:
            return None
        ran = self._run("cat-file", "blob", name)
        return ran.stdout if ran.returncode == 0 else None

    def fork(self, before: str, after: str) -> str:
        """The commit at which two commits parted. Raises InputError where they have none in common."""
        ran = self._run("merge-base", before, after)
        if ran.returncode or not ran.stdout.strip():
            raise InputError(f"{before[:12]} and {after[:12]} have no commit in common")
        return ran.stdout.decode("ascii", "replace").strip()

    def tree(self, commit: str) -> dict[str, str]:
        """The regular files of a commit by path from the top, each with the id of its content.

        Raises InputError where git cannot list them.
        """
        ran = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
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
        """The id that git gives to the content of a file; "" where there is no regular file. like: an id of the
        repository, which tells how it makes them."""
        from hashlib import sha1, sha256

        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                return ""
            data = path.read_bytes()
        except OSError:
            return ""
        made = sha256 if like is not None and len(like) == 64 else sha1
        return made(b"blob %d\0" % len(data) + data).hexdigest()

    def ignored(self, paths: Sequence[Path]) -> frozenset[Path]:
        """Those of the paths that the rules in the repository ignore. Raises InputError where git does not say."""
        names: dict[bytes, Path] = {}
        for path in paths:
            try:
                inside = Path(os.path.realpath(path.absolute().parent), path.name).relative_to(self.top)
            except ValueError:
                continue
            names[os.fsencode(inside)] = path
        words = ("-c", f"core.excludesFile={os.devnull}", "check-ignore", "--no-index", "-z", "--stdin")
        ran = self._run(*words, given=b"\0".join(names) + b"\0", seconds=SECONDS_FOR_RULES)
        if ran.returncode not in (0, 1):
            raise InputError("git does not say what it ignores")
        return frozenset(names[name] for name in ran.stdout.split(b"\0") if name in names)

    def _run(
        self, *words: str, given: bytes | None = None, seconds: float = SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        options = [part for name, value in _OFF.items() for part in ("-c", f"{name}={value}")]
        command = [self._program, "--no-pager", *options, *words]
        try:
            return subprocess.run(
                command,
                cwd=self.top,
                env=self._environment,
                input=given or b"",
                capture_output=True,
                timeout=seconds,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:  # ValueError: a NUL in a revision
            raise InputError(f"git cannot be run: {error}") from None


def _program(top: Path) -> tuple[str, dict[str, str]]:
    """The git to call, none from the repository, and its environment: of the caller's, nothing that steers git.

    The user's own config is read: it says which folders of other owners are safe.
    """
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(part)]
    trusted = os.pathsep.join(part for part in folders if not Path(os.path.realpath(part)).is_relative_to(top))
    found = shutil.which("git", path=trusted)
    if found is None or Path(os.path.realpath(found)).is_relative_to(top):
        raise InputError("git cannot be run: it is not on the path")
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    ceiling = {"GIT_CEILING_DIRECTORIES": str(top.parent)}
    return found, {**environment, **_ENVIRONMENT, **ceiling, "PATH": trusted}
