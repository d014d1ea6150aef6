"""New releases upstream: their names, the releases they are compared with, and the nightly report."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from preflight.run.version_ranges import NEWEST, numbers
from upstream import found
from upstream.__main__ import main
from upstream.found import Found
from upstream.frameworks import FRAMEWORKS, MEGATRON, MINDFORMERS, with_found
from upstream.news import News, news, packed, tagged
from upstream.repositories import VARIABLE, WHEELS, Repositories
from upstream.trial import Trial
from upstream.update import RELEASES, Described, NoNumpy, as_text, section, verify_numpy


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def test_a_release_is_new_where_nothing_described_has_its_name_and_something_is_older() -> None:
    offered = [("0.4.0", "core_v0.4.0"), ("0.19.0", "core_v0.19.0"), ("0.18.2", "a.whl"), ("0.21.0", "core_v0.21.0")]
    assert news(MEGATRON, [*offered, ("0.21.0", "b.whl")], ()) == [News("megatron", "0.21.0", "core_v0.21.0", "")]
    assert news(MEGATRON, offered, ["0.21.0"]) == []


def test_a_patch_release_is_one_of_the_release_below_it_or_of_the_only_one_of_its_minor() -> None:
    found = news(MEGATRON, [("0.19.7", "core_v0.19.7"), ("0.13.9", "core_v0.13.9")], ())
    assert [(one.name, one.of) for one in found] == [("0.13.9", "0.13.0"), ("0.19.7", "0.19.0")]
    assert [one.of for one in news(MINDFORMERS, [("1.3.1", "v1.3.1")], ())] == ["1.3.2"]


def test_tags_and_wheels_are_read_from_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "Megatron-LM"
    repository.mkdir()
    git(repository, "init", "--quiet")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "a")
    for tag in ("core_v0.21.0", "core_v0.21.0rc1", "v3"):
        git(repository, "tag", tag)
    for name in ("megatron_core-0.22.0-cp312-cp312-any.whl", "megatron_core-0.22.0rc1-py3-none-any.whl", "x-1.0.0.whl"):
        (tmp_path / name).touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert list(tagged(MEGATRON, Repositories())) == [("0.21.0", "core_v0.21.0")]
    assert list(packed(MEGATRON, tmp_path)) == [("0.22.0", "megatron_core-0.22.0-cp312-cp312-any.whl")]


def test_what_passed_its_trial_is_a_release_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "FILE", tmp_path / "found.json")
    row = Found("core_v0.18.5", "0" * 17, "", True, 300, 300, 0)
    patch, failed = row._replace(revision="core_v0.19.7", of="0.19.0"), row._replace(shipped=False)
    found.write({"megatron": {"0.18.5": row, "0.19.7": patch, "0.17.9": failed}})
    made = with_found(MEGATRON)
    names = [one.name for one in made.releases]
    assert names == sorted(names, key=lambda name: numbers(name) or NEWEST)
    assert "0.18.5" in names and "0.17.9" not in names
    assert ("core_v0.19.7", "0.19.0") in made.published
    assert with_found(made) == made


def test_the_table_of_releases_is_written_as_it_is() -> None:
    text = RELEASES.read_text(encoding="utf-8")
    assert as_text(json.loads(text)) == text


@pytest.mark.parametrize(
    ("rows", "false", "missed", "passes"),
    [(300, 0, 6, True), (300, 0, 7, False), (300, 1, 0, False), (80, 0, 0, False)],
)
def test_a_release_is_shipped_from_98_of_100_alike_and_no_false_alarm(
    rows: int, false: int, missed: int, passes: bool
) -> None:
    assert Trial(rows, 30, false, missed).passes is passes


def test_the_report_says_what_is_new_and_what_it_concerns() -> None:
    lines = ("option new: --a dest a", "check gone: a.py:1 f: assert a [megatron/a]")
    one = Described(News("megatron", "0.21.0", "core_v0.21.0", ""), "0.19.0", "abc", 61.0, True, Trial(300, 40), lines)
    text = "\n".join(section(one))
    assert "## megatron 0.21.0: shipped with a row of its own" in text
    assert "Of 300 fresh mutations, 40 of them refused by its source, 100.0% are judged alike" in text
    assert "option new: --a dest a" in text and "[megatron/a]" in text


def test_without_numpy_no_release_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trial would decide hardly any run, and the release would not be tried again."""
    verify_numpy()
    monkeypatch.setattr("upstream.update.find_spec", lambda name: None)
    with pytest.raises(NoNumpy, match="numpy is missing"):
        verify_numpy()


def mirrors() -> Sequence[str]:
    return [name for name, framework in FRAMEWORKS.items() if name != "mindformers" and Repositories().has(framework)]


def test_a_night_without_news_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "megatron" not in mirrors():
        pytest.skip(f"no checkout of {MEGATRON.repository}: name the folder that holds it in {VARIABLE}")
    monkeypatch.setenv(WHEELS, str(tmp_path))
    assert main(["update", "--offline", "megatron"]) == 0
    assert "0 described, 0 shipped" in capsys.readouterr().out
