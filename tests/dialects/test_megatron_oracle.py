"""Derived values against those of the real frameworks, and every published config reads.
Skipped if the data is absent."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flag_tables import FILES
from flag_tables import rows as of_the_parser

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import MegatronDialect
from preflight.dialects.megatron.options import Flag, table
from preflight.loaders import load
from preflight.loaders.command_line import load_command
from preflight.run.cluster import Device
from preflight.run.request import Request, Target
from preflight.source.source_file import Source

DATA = Path(__file__).parents[3] / "shared" / "data"
NAMES = {"vpp": "virtual_pipeline_model_parallel_size"}
TOKENIZER = "padded_vocab_size"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded verdicts are not part of the project")


def read(
    argv: list[str], world_size: int | None, target: str, environment: dict[str, str], architecture: int = 9
) -> Reading:
    request = Request(world_size=world_size, device="any", target=Target.parse(target), environment=environment)
    surroundings = Surroundings(
        request, lambda document, name: None, lambda name: Device(name, 80e9, architecture=architecture)
    )
    return MegatronDialect().read(load_command(argv), surroundings)


def rows(name: str) -> list[dict[str, Any]]:
    with (DATA / "oracle" / f"{name}.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def differing(reading: Reading, expected: dict[str, Any]) -> list[str]:
    """Names with an unexpected derived value;
    the size of a vocabulary in a tokenizer's file may be unknown."""
    wrong = []
    for name, want in expected.items():
        value = reading.arguments.get(NAMES.get(name, name))
        got = (
            [count for chunk in value.raw for count in chunk]
            if name == "layers_per_chunk" and value.known
            else value.raw
        )
        if (name == "layers_per_chunk" and want == []) or (name == TOKENIZER and (not value.known or want is None)):
            continue
        if not value.known or got != want:
            wrong.append(name)
    return wrong


@needs_data
def test_megatron_derives_as_upstream() -> None:
    wrong: Counter[str] = Counter()
    accepted = [row for row in rows("megatron") if row["accept"]]
    for row in accepted:
        entry = "pretrain_hybrid.py" if row["entry"] == "hybrid" else "pretrain_gpt.py"
        reading = read([entry, *row["args"]], row["world_size"], "megatron@0.20.0", row["env"], row["arch"])
        wrong.update(differing(reading, row["resolved"]))
    assert sum(wrong.values()) <= 0.001 * len(accepted) * len(accepted[0]["resolved"]), wrong


@pytest.mark.slow
@needs_data
def test_parse_faults_are_found_and_nothing_else() -> None:
    for row in rows("megatron"):
        problems = read(
            ["pretrain_gpt.py", *row["args"]], row["world_size"], "megatron@0.20.0", row["env"]
        ).arguments.problems
        refused = row["stage"] == "parse" and "yaml" not in row["where"]
        assert bool(problems) is refused, (row["id"], problems)


@needs_data
def test_mindspeed_derives_as_upstream() -> None:
    for row in rows("mindspeed-launches"):
        if row["status"] == "accept":
            reading = read([row["entry"], *row["argv"]], row["world_size"], "mindspeed-llm", row["env"])
            assert differing(reading, row["derived"]) == [], row["id"]
            assert reading.arguments.problems == (), row["id"]


@needs_data
def test_every_published_config_reads() -> None:
    dialect = MegatronDialect()
    paths = sorted((DATA / "corpus" / "megatron").rglob("*.yaml"))
    for path in paths:
        (document,) = load(Source.read(path))
        if dialect.claims(document, Request()):
            dialect.read(document, Surroundings(Request(), lambda document, name: None, lambda name: None))
    assert len(paths) > 300


SPELT_OTHERWISE = {
    "--non-persistent-ckpt-type": "None is a choice, and no text",
    "--reasoning-effort": "None is a choice, and no text",
    "--persistent-save-interval": "another spelling of --save-interval",
    "--save-interval": "with its other spelling",
    "--prompt-type-path": "with the folder in which the default lies",
}


@needs_data
@pytest.mark.parametrize(("framework", "version"), FILES)
def test_options_are_those_of_the_real_parser(framework: str, version: str) -> None:
    known = {option: row(flag) for option, flag in table(framework, version).options.items()}
    real = of_the_parser(DATA / "catalog", framework, version)
    assert {option for option, said in real.items() if known.get(option) != said} <= SPELT_OTHERWISE.keys()


def row(flag: Flag) -> list[Any]:
    """An option as a row, without the nulls at its end."""
    choices = None if flag.choices is None else list(flag.choices)
    made = [flag.dest, flag.kind, flag.default, flag.nargs, choices, list(flag.also) or None]
    while made[-1] is None:
        made.pop()
    return made
