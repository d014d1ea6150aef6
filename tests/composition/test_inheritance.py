"""Configs that name their parents by paths are read as NeMo RL reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from composed import parents, plain, written

from preflight.loaders.document import Unknown

FILES = {
    "base.yaml": "policy: {batch: 8, log: '${policy.batch}', inner: {a: 1, b: 2}}\ndata: {x: 1, y: 2}\nlr: 1e-5\n",
    "child.yaml": "defaults: base.yaml\npolicy: {batch: 4, inner: {b: 3}}\n",
    "sub/grand.yaml": "defaults: ../child.yaml\ndata: {_override_: true, z: 3}\n",
    "sub/two.yaml": "defaults: [../child.yaml, other.yaml]\npolicy: {inner: null}\n",
    "sub/other.yaml": "policy: {batch: 2, inner: {_override_: true, c: 1}}\nlr: 3\n",
    "sub/deep.yaml": "defaults: two.yaml\npolicy: {inner: {d: 4}}\n",
}


def theirs(path: Path) -> object:
    """The same by OmegaConf: depth first, the later wins, marked sections replace."""
    pytest.importorskip("omegaconf", reason="omegaconf is not installed")
    from omegaconf import DictConfig, OmegaConf

    def over(base: DictConfig, own: DictConfig) -> DictConfig:
        for key in list(own.keys()):
            if isinstance(own[key], DictConfig) and own[key].get("_override_", False):
                own[key].pop("_override_")
                base.pop(key, None)
        merged = OmegaConf.merge(base, own)
        assert isinstance(merged, DictConfig)
        return merged

    def loaded(path: Path) -> DictConfig:
        config = OmegaConf.load(path)
        assert isinstance(config, DictConfig)
        if "defaults" not in config:
            return config
        names = config.pop("defaults")
        base = OmegaConf.create({})
        for name in [names] if isinstance(names, str) else names:
            base = over(base, loaded(path.parent / str(name)))
        return over(base, config)

    return OmegaConf.to_container(loaded(path), resolve=True)


@pytest.mark.parametrize("name", FILES)
def test_the_values_are_those_of_omegaconf(tmp_path: Path, name: str) -> None:
    written(tmp_path, FILES)
    found, ours = parents(tmp_path / name)
    assert not found.missing
    assert plain(ours) == theirs(tmp_path / name)


def test_a_value_of_a_parent_keeps_its_place(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    found, config = parents(tmp_path / "sub" / "grand.yaml")
    log = config.at("policy", "log")
    assert log.value == 4
    assert log.node is not None
    assert log.node.span.source.name.endswith("child.yaml")
    assert len(found.documents) == 3


def test_a_parent_that_is_missing_makes_absent_keys_unknown(tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": "defaults: gone.yaml\nx: 1\n"})
    found, config = parents(tmp_path / "a.yaml")
    assert found.missing == ("gone.yaml",)
    assert config.at("x").value == 1
    assert isinstance(config.at("y").value, Unknown)


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": "defaults: b.yaml\nx: 1\n", "b.yaml": "defaults: a.yaml\ny: 2\n"})
    found, config = parents(tmp_path / "a.yaml")
    assert (config.at("x").value, config.at("y").value) == (1, 2)
    assert found.missing


def test_the_number_of_parents_is_bounded(tmp_path: Path) -> None:
    files = {f"{i}.yaml": f"defaults: [{i + 1}.yaml, {i + 1}.yaml]\nx: {i}\n" for i in range(12)}
    written(tmp_path, {**files, "12.yaml": "x: 12\n"})
    found, _ = parents(tmp_path / "0.yaml")
    assert len(found.documents) <= 31
    assert found.missing
