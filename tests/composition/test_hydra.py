"""Defaults lists and overrides give the result of Hydra, and each value has the place where it was typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from composed import hydra, overrides, plain, real_hydra, written

from preflight.loaders.composition.overrides import read_override
from preflight.loaders.document import Unknown, Word
from preflight.source.source_file import Source

FILES = {
    "trainer.yaml": """\
defaults:
  - engine: dp
  - actor@run.actor: ${engine}_actor
  - optional missing: one
  - data: small
  - _self_
run:
  n: 4
  actor: {lr: 1e-6}
trainer: {nodes: 1, gpus: 8, name: "${data.name}_x", logger: null}
""",
    "megatron_trainer.yaml": "defaults:\n  - trainer\n  - override engine: megatron\n  - _self_\ntrainer: {nodes: 2}\n",
    "engine/dp.yaml": "# @package _global_\nengine: dp\n",
    "engine/megatron.yaml": "# @package _global_\nengine: megatron\n",
    "actor/base.yaml": "tp: 1\nmini: ${oc.select:run.n,1}\nstrategy: none\n",
    "actor/dp_actor.yaml": "defaults:\n  - base\n  - _self_\nstrategy: dp\n",
    "actor/megatron_actor.yaml": (
        "defaults:\n  - ../optim@optim: adam\n  - base\n  - _self_\nstrategy: megatron\noverride: {a: null, b: flash}\n"
    ),
    "optim/adam.yaml": "lr: 1e-3\nbetas: [0.9, 0.999]\n",
    "data/small.yaml": "name: small\nfiles: [a, b]\n",
    "data/large.yaml": "# @package data\nname: large\nsize: 9\n",
    "lists.yaml": "defaults:\n  - data: [small, large]\n  - /optim/adam@here\nx: 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, FILES)


TAKEN = [
    ("trainer",),
    ("megatron_trainer",),
    ("lists",),
    ("trainer", "engine=megatron"),
    ("trainer", "data=large", "run.n=16"),
    ("trainer", "actor@run.actor=megatron_actor", "run.actor.optim.betas=[0.9,0.95]"),
    ("trainer", "~data", "trainer.name=x"),
    ("trainer", "+optim=adam"),
    ("trainer", "+optim@deep.er=adam"),
    (
        "trainer",
        "engine=megatron",
        "+run.actor.override.a=full",
        "++run.actor.override.b=auto",
        "+run.actor.override.c=1",
    ),
    ("trainer", "trainer.logger=[console,wandb]", "trainer.name='a b'", 'trainer.gpus="4"'),
    ("trainer", "trainer.logger={a:1,b:{c:[]}}", "run.actor.lr=1e-5", "trainer.nodes=null"),
    ("trainer", "+run.extra={a:1}", "+run.extra={b:2}", "trainer.name=${run.n}-${engine}"),
    ("trainer", "~trainer.gpus", "trainer.name=", "run.n=True", "data.files=['x','y z']"),
    ("trainer", "trainer.name=/a-b.c:d%e", "trainer.gpus=010", "run.n=1_000", "run.actor.lr=.5"),
    ("trainer", "trainer.logger=['a','b',3]", "trainer.name=a\\,b", "data.files=[]"),
]


@pytest.mark.filterwarnings("ignore:.*missing `_self_`")
@pytest.mark.parametrize("words", TAKEN, ids=" ".join)
def test_the_values_are_those_of_hydra(folder: Path, words: tuple[str, ...]) -> None:
    found, ours, refused = hydra(folder, *words)
    assert not refused
    assert not found.missing
    assert plain(ours) == real_hydra(folder, *words)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("trainer.gpu=3", "unknown"),
        ("run.actor.override.c=1", "unknown"),
        ("+trainer.gpus=4", "exists"),
        ("+run.actor.override.b=auto", "exists"),
        ("~trainer.gpu", "absent"),
    ],
)
def test_what_hydra_refuses_is_refused(folder: Path, word: str, kind: str) -> None:
    _, _, refused = hydra(folder, "trainer", "engine=megatron", word)
    assert [(one.kind, one.override.word.text) for one in refused] == [(kind, word)]
    with pytest.raises(Exception, match="Could not"):
        real_hydra(folder, "trainer", "engine=megatron", word)


def test_every_value_keeps_its_place(folder: Path) -> None:
    found, config, _ = hydra(folder, "trainer", "engine=megatron", "run.n=16", "trainer.nodes=3")
    name = config.at("trainer", "name")
    assert name.value == "small_x"
    strategy = config.at("run", "actor", "strategy").node
    assert strategy is not None
    assert strategy.span.source.name.endswith("actor/megatron_actor.yaml")
    nodes = config.at("trainer", "nodes")
    assert nodes.node is not None
    assert nodes.node.span.text == "3"
    mini = config.at("run", "actor", "mini")
    assert (mini.value, mini.node.span.text if mini.node else "", mini.path) == (16, "16", ("run", "n"))
    assert found.documents[0].source.name.endswith("trainer.yaml")


def test_what_is_not_there_is_listed_and_makes_absent_keys_unknown(folder: Path) -> None:
    (folder / "data" / "small.yaml").unlink()
    found, config, refused = hydra(folder, "trainer")
    assert found.missing == ("data/small",)
    assert isinstance(config.at("data", "name").value, Unknown)
    assert config.at("trainer", "gpus").value == 8
    assert not refused


def test_a_circle_of_configs_ends(tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": "defaults: [b, _self_]\nx: 1\n", "b.yaml": "defaults: [a]\ny: 2\n"})
    found, config, _ = hydra(tmp_path, "a")
    assert config.at("x").value == 1
    assert "a" in found.missing or "b" in found.missing


def test_nothing_outside_of_the_folder_is_asked_for(tmp_path: Path) -> None:
    from composed import document

    from preflight.loaders.composition.hydra import composed
    from preflight.loaders.document import Document

    written(tmp_path, {"a.yaml": "defaults: [../../etc/x, //etc/passwd, 'g/../../h']\nx: 1\n"})
    asked = []

    def opened(path: str) -> Document | None:
        asked.append(path)
        return document(tmp_path / "a.yaml") if path == "a" else None

    found = composed("a", opened)
    assert found is not None
    assert not [path for path in asked if path.startswith(("/", ".."))]
    assert len(found.missing) == 3


def test_a_value_that_the_shell_does_not_know_is_unknown() -> None:
    source = Source("a.b=$X", "run.sh")
    from preflight.source.resolved_words import Piece, word_of

    word = word_of((Piece("a.b=", source.span(0, 4)), Piece(None, source.span(4, 6), because="$X")))
    override = read_override(word)
    assert override is not None
    assert override.path == ("a", "b")
    assert override.node is not None
    assert isinstance(override.node.value, Unknown)


def test_the_place_of_an_override_is_its_value() -> None:
    (override,) = overrides("++a.b=[1,2]")
    assert (override.action, override.key_span.text) == ("force", "a.b")
    assert override.node is not None
    assert override.node.span.text == "[1,2]"


@pytest.mark.parametrize("word", ["--nodes=2", "train.py", "=3", "a b=3"])
def test_other_words_are_no_overrides(word: str) -> None:
    assert read_override(Word(word, Source(word, "x").span(0))) is None
