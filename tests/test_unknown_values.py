"""An unknown value causes no error: a finding about it holds for every possible value.

Every check has a pair of runs, one refused and one accepted. A script that may be either, for all that can be known
before it runs, has no error: options of only one of them are on a branch, and the caller gives the values that differ.
"""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pairs import loaded
from sampled import one_in

import preflight
from preflight import Severity
from preflight.api import installed

HERE = Path(__file__).parent
ORACLE = HERE.parent.parent / "shared" / "data" / "oracle"
needs_rows = pytest.mark.skipif(not ORACLE.is_dir(), reason="the recorded verdicts are not part of the project")
AFTER = {rule.id: frozenset(getattr(rule, "after", ())) for rule in installed().rules()}
"""Rules, each with the rules that report the same mistake."""
BRANCH = 'if [ "$MODE" = "$(hostname)" ]; then {name}=({words}); fi'
Options = dict[str, list[str]]


def pairs(name: str) -> list[dict[str, Any]]:
    table = loaded(HERE / "constraints" / f"{name}.yaml")
    return [
        {**case, "base": table["bases"][case.get("base", "dense")], "hybrid": case.get("base") == "hybrid"}
        for case in table["cases"]
    ]


def options(words: list[str]) -> Options:
    """The last values of each option."""
    found: Options = {}
    last: list[str] = []
    for word in words:
        if word.startswith("--"):
            last = found[word.partition("=")[0]] = [word.partition("=")[2]] if "=" in word else []
        else:
            last.append(word)
    return found


def either(one: Options, other: Options) -> str:
    """A script with options that may be those of one run or of another."""
    branches, words = [], []
    for name in {**one, **other}:
        here, there = one.get(name), other.get(name)
        if here == there and here is not None:
            words += [name, *map(shlex.quote, here)]
        elif here and there:
            words += [name, *(f'"${at}"' for at in range(1, 1 + max(len(here), len(there))))]
        else:
            said = shlex.join([name, *(here or there or ())])
            branches.append(BRANCH.format(name=f"SOME{len(branches)}", words=said))
            words.append(f'"${{SOME{len(branches) - 1}[@]}}"')
    return "\n".join([*branches, f"torchrun {{entry}} {' '.join(words)}", ""])


def errors(text: str, **facts: Any) -> dict[str, str]:
    report = preflight.check_text(text, name="run.sh", **facts)
    assert not report.crashes, report.crashes
    assert not any(job.arguments.open for job in report.jobs), (
        "nothing could be found of a script that may have any options"
    )
    assert report.jobs
    return {f.rule: f.message for f in report.findings if f.severity is Severity.ERROR}


def facts(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "world_size": case.get("devices", 1),
        "device": case.get("device", "h100"),
        "target": str(case.get("target", "megatron@0.20.0")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["megatron-training", "megatron-core"])
def test_a_script_that_may_be_refused_or_accepted_has_no_error(name: str) -> None:
    wrong = {}
    for number, case in enumerate(pairs(name)):
        base = shlex.split(case["base"])
        text = either(*(options([*base, *shlex.split(case[side])]) for side in ("rejected", "accepted")))
        text = text.replace("{entry}", "pretrain_hybrid.py" if case["hybrid"] else "pretrain_gpt.py")
        text = (
            text
            if case.get("unset") or case.get("env") or case.get("accepted_env")
            else f"export CUDA_DEVICE_MAX_CONNECTIONS=1\n{text}"
        )
        if found := errors(text, **facts(case)):
            wrong[f"{number}-{case['rule']}"] = found
    assert not wrong


@pytest.mark.slow
def test_a_script_of_mindspeed_that_may_be_refused_or_accepted_is_not_refused() -> None:
    wrong = {}
    for number, case in enumerate(pairs("mindspeed")):
        base = shlex.split(case["base"])
        text = either(*(options([*base, *shlex.split(case[side])]) for side in ("speaks", "silent"))).replace(
            "{entry}", "pretrain_gpt.py"
        )
        found = errors(
            f"export CUDA_DEVICE_MAX_CONNECTIONS=1\n{text}", world_size=16, target=case.get("target", "mindspeed-llm")
        )
        if case["rule"] in found:
            wrong[f"{number}-{case['rule']}"] = found
    assert not wrong


EXCUSES = (
    *(
        "--use-checkpoint-args",
        "--skip-train",
        "--perform-rl-step",
        "--decrease-batch-size-if-needed",
        "--layerwise-disaggregated-training",
    ),
    *("--tp-2d", "--automated-pipeline", "--unaligned-linear", "--multi-latent-attention"),
)
"""Switches that change the meaning of other options."""


def refused() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Runs that are refused, some of each table."""
    for name, side, every in (
        ("megatron-training", "rejected", 4),
        ("megatron-core", "rejected", 9),
        ("mindspeed", "speaks", 5),
    ):
        for case in pairs(name)[::every]:
            entry = "pretrain_hybrid.py" if case["hybrid"] else "pretrain_gpt.py"
            more = (
                {"world_size": 16, "target": case.get("target", "mindspeed-llm")}
                if name == "mindspeed"
                else facts(case)
            )
            yield case["rule"], f"torchrun {entry} {case['base']} {case[side]}", more


@pytest.mark.slow
def test_what_a_switch_would_excuse_is_no_error_where_it_may_be_on() -> None:
    wrong = {}
    for rule, text, more in one_in(3, refused()):
        without = errors(f"{text}\n", **more).keys()
        for switch in EXCUSES:
            found = errors(f'{BRANCH.format(name="SOME", words=switch)}\n{text} "${{SOME[@]}}"\n', **more).keys()
            on = errors(f"{text} {switch}\n", **more).keys() if found else found
            more_than = {one for one in found - on if one not in AFTER or not AFTER[one] & on}
            if on <= without and more_than:
                wrong[rule, switch] = more_than
    assert not wrong


def flat(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by dotted name."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


@pytest.mark.slow
def test_a_launch_of_mindformers_that_may_be_refused_or_accepted_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table, wrong = loaded(HERE / "constraints" / "mindformers-graph.yaml"), {}
    for case in table["cases"]:
        sides = [dict(flat(case[side])) for side in ("rejected", "accepted")]
        if case.get("base") == "pynative" or None in [*sides[0].values(), *sides[1].values()]:
            continue  # not started this way; keys that are taken away
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(table["bases"][case.get("base", "llama")]), encoding="utf-8")
        launch = either(*({f"--{name}": [str(value)] for name, value in side.items()} for side in sides))
        text = launch.replace("{entry}", "run_mindformer.py --config run.yaml").replace("torchrun", "msrun")
        (tmp_path / "run.sh").write_text(text, encoding="utf-8")
        report = preflight.check(
            "run.sh", world_size=case.get("devices", 8), target=f"mindformers@{case.get('target', '1.5.0')}"
        )
        assert not report.crashes, report.crashes
        if f"mindformers/{case['rule']}" in (said := {f.rule for f in report.findings if f.severity is Severity.ERROR}):
            wrong[case["rule"]] = said
    assert not wrong


def runs() -> Iterator[tuple[str, str, list[str], dict[str, Any], dict[str, str]]]:
    """Recorded runs that the frameworks accept."""
    for name, target in (("megatron", "megatron@0.20.0"), ("mindspeed-launches", "mindspeed-llm")):
        for line in (ORACLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("accept") or row.get("status") == "accept":
                entry = "pretrain_hybrid.py" if row["entry"] == "hybrid" else "pretrain_gpt.py"
                words = [str(word) for word in row.get("args") or row["argv"]]
                device = {7: "v100", 9: "h100", 10: "gb200"}.get(row.get("arch"))  # type: ignore[arg-type]
                yield (
                    row["id"],
                    entry,
                    words,
                    {"world_size": row["world_size"], "device": device, "target": target},
                    row["env"] or {},
                )


@needs_rows
@pytest.mark.slow
def test_recorded_runs_whose_options_are_not_all_known_have_no_error() -> None:
    chance = random.Random(4)
    wrong = {}
    for number, (id, entry, words, said, environment) in enumerate(runs()):
        if number % 6:
            continue
        exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in environment.items())
        given = options(words)
        known = errors(exports + either(given, given).replace("{entry}", entry), **said)
        hidden = chance.sample(sorted(given), chance.choice([1, 3, len(given) // 2, len(given)]) or 1)
        other = {
            name: (["?"] * len(values) if values and chance.random() < 0.6 else None) if name in hidden else values
            for name, values in given.items()
        }
        found = errors(
            exports + either(given, {k: v for k, v in other.items() if v is not None}).replace("{entry}", entry), **said
        )
        if not known and found:
            wrong[id] = (sorted(hidden), found)
    assert not wrong
