"""Files and folders that are only checked for existence, and the folder that a run saves to."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from preflight.job import NamedPath, SaveFolder
from preflight.site.isolated_file_reading import DEEP, Eyes, Unread
from preflight.site.path_resolution import candidates, find

OF_TOKENIZERS = re.compile(
    r"token|vocab|dict|spiece|sentencepiece|bpe|merges|tekken|\.(?:model|tiktoken|vocab|codes|py)$", re.IGNORECASE
)
"""Names of files that a tokenizer may consist of, those of tokenizers with their own code included."""


def read_path(
    eyes: Eyes, name: str, argument: str, folders: Sequence[str], wanted: Sequence[str] = (), remote: bool = False
) -> NamedPath:
    """The kind of a path. wanted: files of which a folder needs one. remote: a relative name may be a repository on a
    hub."""
    found = NamedPath(name, argument)
    try:
        if remote and not os.path.isabs(name) and not name.startswith("."):
            there = [path for path in candidates(name, folders) if eyes.status(path) is not None]
            if not there:
                raise Unread(f"{name} may be a name on a hub")
            found = found._replace(path=there[0])
        else:
            place = find(eyes, name, folders)
            found = found._replace(path=place.path)
            if not place.there:
                return found._replace(fault="missing")
        if wanted and eyes.is_folder(found.path):
            some = any(eyes.is_file(os.path.join(found.path, file)) for file in wanted)
            some = some or any(OF_TOKENIZERS.search(file) for file in eyes.listed(found.path))
            return found if some else found._replace(fault="no-files")
        return found
    except Unread as error:
        return found._replace(fault="unread", because=str(error))


def read_save_folder(eyes: Eyes, name: str, argument: str, folders: Sequence[str]) -> SaveFolder:
    """Whether a folder can be written or created, and its free space. Nothing is written."""
    found = SaveFolder(name, argument)
    try:
        paths = candidates(name, folders)
        path = next((path for path in paths if eyes.status(path) is not None), paths[0] if os.path.isabs(name) else "")
        if not path:
            raise Unread(f"{name} does not exist here, and the folder in which the job starts is unknown")
        while not eyes.is_folder(path):
            if eyes.status(path) is not None:
                return found._replace(path=path, fault="no-folder")
            path = os.path.dirname(path)
        if len([part for part in path.split("/") if part]) < DEEP:
            raise Unread(f"neither {name} nor the folders above it exist here, so this may not be where the job runs")
        found = found._replace(path=path)
        state = os.statvfs(path)
        if not os.access(path, os.W_OK | os.X_OK):
            if state.f_flag & os.ST_RDONLY:
                raise Unread(f"{path} is mounted read-only here: on the job's nodes, it may be mounted otherwise")
            if eyes.is_empty(path):
                raise Unread(f"{path} is empty here: on the job's nodes, a file system may be mounted there")
            return found._replace(fault="no-right")
        return found._replace(free=state.f_bavail * state.f_frsize)
    except (Unread, OSError) as error:
        return found._replace(fault="unread", because=str(error))
