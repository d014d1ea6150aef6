"""New releases of programs that start a framework, and the report about them."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from preflight.frontends.described_releases import contracts
from upstream import front_end_news
from upstream.frameworks import FRONT_ENDS, MEGATRON
from upstream.front_end_news import Offered, Seen, describe, described, offered, section
from upstream.frontends.contracts import CONTRACTS
from upstream.places import PROGRAMS, all_rules, places
from upstream.repositories import VARIABLE, WHEELS, Repositories
from upstream.wheel import Wheel

ARGUMENTS = """
class MegatronArguments:
    tensor_model_parallel_size: int = 1
    brand_new: int = 3
"""


def packed(folder: Path, name: str) -> Path:
    """A wheel of ms-swift with one file."""
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("swift/megatron/arguments/megatron_args.py", ARGUMENTS)
    return path


@pytest.fixture
def mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository of ms-swift with a tag, and a folder for wheels."""
    repository = tmp_path / "ms-swift"
    repository.mkdir()
    git = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "a"], ["tag", "v4.6.0"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv(WHEELS, str(tmp_path))
    return tmp_path


def test_what_is_newer_than_all_that_is_described_is_new(mirrors: Path) -> None:
    newest, front_end = packed(mirrors, "ms_swift-99.1.0-py3-none-any.whl"), FRONT_ENDS["ms-swift"]
    packed(mirrors, "ms_swift-4.5.3-py3-none-any.whl")
    assert offered(front_end, Repositories(), print, offline=True) == [Offered("99.1.0", "", newest)]


def test_a_wheel_is_described_by_what_it_takes(mirrors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, front_end = packed(mirrors, "ms_swift-99.1.0-py3-none-any.whl"), FRONT_ENDS["ms-swift"]
    monkeypatch.setattr(front_end_news.contracts, "CONTRACTS", tmp_path)
    monkeypatch.setattr(front_end_news.option_releases, "lacking", lambda *_: [])
    seen = describe(front_end, Repositories(), Offered("99.1.0", "", wheel))
    assert seen.written and not seen.refused
    written = json.loads((tmp_path / "ms-swift-99.1.0.json").read_text(encoding="utf-8"))
    assert written["keys"]["changed"]["--brand_new"] == ["brand_new", "int", 3]
    assert written["commit"].startswith("sha256:")
    text = "\n".join(section("ms-swift", seen))
    assert "## ms-swift 99.1.0: described" in text and "--brand_new" in text


def test_a_release_that_takes_and_refuses_the_same_is_a_patch(
    mirrors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, front_end, table = front_end_news.option_releases, FRONT_ENDS["ms-swift"], tmp_path / "releases.json"
    wheel = packed(mirrors, "ms_swift-99.1.0-py3-none-any.whl")
    table.write_bytes(front_end_news.RELEASES.read_bytes())
    monkeypatch.setattr(front_end_news, "RELEASES", table)
    monkeypatch.setattr(own, "lacking", lambda *_: [])
    for module in (own, front_end_news):
        monkeypatch.setattr(
            module, "data", lambda _: {"release": "4.5.2", **own.ms_swift(lambda path: own_text(wheel, path))}
        )
    seen = describe(front_end, Repositories(), Offered("99.1.0", "", wheel))
    assert json.loads(table.read_text(encoding="utf-8"))["patches"]["ms-swift"] == {"99.1.0": {"of": "4.5.2"}}
    assert "the same as 4.5.2" in "\n".join(section("ms-swift", seen))


def own_text(wheel: Path, path: str) -> str:
    return Wheel(wheel).texts([path]).get(path, "")


def test_a_wheel_of_a_program_whose_repository_has_a_source_folder_is_read(tmp_path: Path) -> None:
    path = tmp_path / "megatron_bridge-99.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("megatron/bridge/training/config.py", "assert args.a > 1")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    clone = front_end_news.option_releases.Clone(tmp_path, "megatron-bridge", tmp_path)
    assert clone.text("99.1.0", "src/megatron/bridge/training/config.py") == "assert args.a > 1"
    assert clone.refusals("99.1.0", "src/megatron/bridge/") == {"assert a > 1"}


def test_the_report_says_which_published_runs_are_refused() -> None:
    lines = list(section("verl", Seen("9.9.9", "0.9.1", False, ("gone: a",), 12, ("examples/a.sh: no key b",))))
    assert "## verl 9.9.9: not described" in lines
    assert "Of 12 scripts that it publishes, 1 are refused and were not at 0.9.1." in lines


def test_every_contract_is_a_release_that_is_described() -> None:
    for path in CONTRACTS.glob("*-[0-9]*.json"):
        front_end, _, release = path.stem.rpartition("-")
        assert release in described(front_end) and release in contracts(front_end)


def test_a_patch_release_of_a_program_is_known() -> None:
    assert "0.6.2" in described("megatron-bridge")


def test_rules_of_programs_are_none_of_a_framework_s_evidence() -> None:
    named = {place.rule.partition("/")[0] for place in places(all_rules(), MEGATRON)}
    assert named and not named & PROGRAMS
