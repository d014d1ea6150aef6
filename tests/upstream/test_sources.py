"""A revision of a repository and a wheel are read alike."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from upstream.checkout import Checkout, NoRevision
from upstream.frameworks import MEGATRON
from upstream.repositories import VARIABLE, NoRepository, Repositories
from upstream.wheel import Wheel

FILES = {"toy/a.py": "A = 1\n", "toy/deep/b.py": "B = 2\n", "other/c.py": "C = 3\n", "toy/page.md": "# Page\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"], ["tag", "v1"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return path


def test_both_have_the_same_files_texts_and_objects(repository: Path, wheel: Path, tmp_path: Path) -> None:
    one, other = Checkout(repository, "v1"), Wheel(wheel)
    assert one.paths == other.paths == set(FILES)
    assert one.texts(["toy"]) == other.texts(["toy"]) == {"toy/a.py": "A = 1\n", "toy/deep/b.py": "B = 2\n"}
    assert one.blobs(["toy/a.py", "gone.py"]) == other.blobs(["toy/a.py", "gone.py"])
    one.extract(tmp_path / "one", ["toy/deep", "gone"])
    other.extract(tmp_path / "other", ["toy/deep", "gone"])
    for folder in ("one", "other"):
        assert [path.name for path in (tmp_path / folder).rglob("*.py")] == ["b.py"]


def test_a_revision_that_is_not_there_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(NoRevision, match="v9"):
        _ = Checkout(repository, "v9").commit
    with pytest.raises(NoRevision, match=r"pip download toy==2\.0"):
        Wheel(tmp_path / "toy-2.0-py3-none-any.whl")


def test_a_repository_is_given_or_found_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(NoRepository, match=VARIABLE):
        Repositories().path(MEGATRON)
    (tmp_path / "Megatron-LM.git").mkdir()
    assert Repositories().path(MEGATRON) == tmp_path / "Megatron-LM.git"
    assert Repositories(["megatron=/x"]).path(MEGATRON) == Path("/x")
    assert Repositories(["/y"], "megatron").path(MEGATRON) == Path("/y")
