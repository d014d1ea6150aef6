"""Compares the resolver with bash."""

from __future__ import annotations

from pathlib import Path

import pytest
from idioms import IDIOMS
from random_scripts import script
from recorder import commands

from preflight.loaders.document import Document
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source


def resolved(documents: tuple[Document, ...]) -> list[list[str | None]]:
    """The command lines of the documents; None for an unknown word."""
    found = []
    for document in documents:
        launch = document.launch
        if launch is not None:
            words = [*launch.launcher_words, launch.entry, *launch.words]
            texts = [word.text for word in words]
            found.append([texts[0].rpartition("/")[2] if texts[0] else None, *texts[1:]])
    return found


def same(found: list[str | None], real: list[str]) -> bool:
    """Word by word; an unknown word may be any single word."""
    return len(found) == len(real) and all(one is None or one == other for one, other in zip(found, real, strict=True))


@pytest.mark.parametrize("name", IDIOMS)
def test_bash_starts_what_is_found(name: str, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(IDIOMS[name], encoding="utf-8")
    found = resolved(load_script(Source.read(script)))
    real = commands(script, tmp_path)
    assert real, "bash starts nothing"
    assert len(found) == len(real) and all(same(f, r) for f, r in zip(found, real, strict=False)), (
        f"\nfound {found}\nbash  {real}"
    )
    if name != "unknown word":
        assert all(word is not None for words in found for word in words)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_silently_wrong_in_random_scripts(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(script(seed), encoding="utf-8")
    documents = load_script(Source.read(path))
    for found, real, document in zip(resolved(documents), commands(path, tmp_path), documents, strict=True):
        unsure = document.launch is not None and (
            document.launch.open or any(word.maybe for word in document.launch.words)
        )
        assert unsure or same(found, real), f"\n{path.read_text()}\nfound {found}\nbash  {real}"
