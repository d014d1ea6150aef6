"""The files of front ends compared with their repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from upstream import front_end_files
from upstream.frameworks import COMPARED, FRONT_ENDS
from upstream.front_end_files import stale
from upstream.frontends import option_refusals
from upstream.frontends.contracts import CONTRACTS
from upstream.frontends.rows import SCHEMAS
from upstream.repositories import VARIABLE, WHEELS, Repositories

EVERY = (*FRONT_ENDS.values(), *COMPARED)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv(WHEELS, str(tmp_path))


def test_every_front_end_with_a_table_or_a_contract_is_compared() -> None:
    names = {one.name for one in EVERY}
    beside = {"moved", "lacks"}
    tables = {path.stem for path in SCHEMAS.glob("*.json")} - beside
    contracts = {path.stem.rpartition("-")[0] for path in CONTRACTS.glob("*-[0-9]*.json")}
    missing = (tables | contracts) - names
    assert not missing, f"add a row to COMPARED in upstream/frameworks.py for {', '.join(sorted(missing))}"


def test_without_repositories_nothing_is_compared_and_each_is_said() -> None:
    said: list[str] = []
    assert list(stale(Repositories(), said.append)) == []
    assert said == [f"no repository of {one.repository}" for one in EVERY]


def test_a_table_that_would_be_written_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    path = SCHEMAS / "slime.json"
    monkeypatch.setattr(Repositories, "has", lambda self, framework: framework.name == "slime")
    for name in ("_contracts", "_patches", "_beside"):
        monkeypatch.setattr(front_end_files, name, lambda *_: iter(()))
    monkeypatch.setattr(front_end_files, "_tables", lambda *_: {path: path.read_text(encoding="utf-8")})
    assert list(stale(Repositories(), lambda text: None)) == []
    monkeypatch.setattr(front_end_files, "_tables", lambda *_: {path: "{}"})
    assert list(stale(Repositories(), lambda text: None)) == ["frontends/slime.json"]


def test_the_files_beside_a_table_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slime = FRONT_ENDS["slime"]
    monkeypatch.setattr(Repositories, "path", lambda self, framework: tmp_path)
    written = {option_refusals.path_of("slime"): "", SCHEMAS.parent / "slime" / "defects.json": ""}
    for path in written:
        written[path] = path.read_text(encoding="utf-8")
    refusals, defects = written.values()
    monkeypatch.setattr(front_end_files.option_refusals, "table_text", lambda *_: refusals)
    monkeypatch.setattr(front_end_files, "written", lambda *_: defects)
    assert list(front_end_files._beside(slime, Repositories())) == []
    monkeypatch.setattr(front_end_files.option_refusals, "table_text", lambda *_: "{}")
    monkeypatch.setattr(front_end_files, "written", lambda *_: "{}")
    assert list(front_end_files._beside(slime, Repositories())) == [
        "frontends/refusals/slime.json",
        "slime/defects.json",
    ]


def test_every_table_of_refusals_is_compared() -> None:
    tables = {path.stem for path in (SCHEMAS / "refusals").glob("*.json")}
    assert tables == set(option_refusals.PLACES)
