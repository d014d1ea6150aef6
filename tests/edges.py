"""Runs near the conditions of rules: tests/edges/**/*.yaml, with one file per file of rules.

    table: megatron-core                  the file of tests/constraints that has the bases (and for launches of a front
                                          end their entry), or bases: of the file's own
    megatron/offload-nothing:             a rule
    - run: --fine-grained-… --x 8         words after the base (base: the first unless said); the rule speaks
      speaks:                             changes of the run with which it still speaks
      - --x 9
      silent:                             changes with which it says nothing, and is sure of it
      - ~--fine-grained-…                 the option is taken away
      - NAME=1 ~NAME devices=4 --x 8      a variable set, one taken away, the number of devices, another value
      - ~--y --x $X                       a variable that nobody sets: the run is the line of a script
      unknown:                            changes with which it cannot tell
      - --x $X
    - run: --x 8                          where the words count, too:
      says: a change and all that is said with it ("" is nothing, "?" not verified), the fix offered
      - [--x 9, 9 is too much]
      - [--x 8, 8 is too much, set it to 7]
      - [--x 7, 7 is too much, '', 'file.py:12']    and where the framework says it
      - [--x 6, 6 is too much, set it to 7 / drop it]   every fix that is offered
      - [--x 5, 5 is too much, 'at once: set it to 7']          written by fix, where `offered: ` waits for a choice

In a table of YAML configs a run is a mapping from dotted names to values, and so is a change; null takes the key away,
and the text 'null' is the null of YAML. Additional keys of a run, and things that a change changes like devices: base,
devices, device, target, entry (the script of a command); of a run also env (null: not set).
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pairs import PREFIXES, dumped, loaded, read

from preflight.source.finding import Finding
from preflight.testing import Case

HERE = Path(__file__).parent
FILES = sorted((HERE / "edges").rglob("*.yaml"))
TARGETS = {"megatron-core": "megatron@0.20.0", "megatron-training": "megatron@0.20.0", "mindspeed": "mindspeed-llm"}
TARGETS |= {"mindformers-graph": "1.5.0", "mindformers-pynative": "2.1.0"}
TARGETS |= {table: prefix.rstrip("/") for table, prefix in PREFIXES.items() if table.startswith("frontends-")}
ENTRIES = {"hybrid": "pretrain_hybrid.py", "tuning": "verl.trainer.sft_trainer"}
"""The scripts of bases that are not started by the script of their table."""
DEVICES = {"frontends-ms-swift": 8, "mindspeed": 16, "mindformers-graph": 8, "mindformers-pynative": 8}
WRITTEN = ("at once: ", "offered: ")
UNSET = re.compile(r"(?:[\w.]+=)?\$[A-Z]+")
ELSE = ("base", "devices", "device", "target", "entry")


class Edge(NamedTuple):
    """One run: the rule it is about, the result of the rule (speaks, silent, unknown, says), the change, the run, words
    and fix."""

    rule: str
    verdict: str
    change: str
    written: Callable[[], Case]
    words: str = ""
    fix: str | None = None
    upstream: str | None = None

    @property
    def case(self) -> Case:
        """The run; most tests need none."""
        return self.written()


def offered(finding: Finding, edge: Edge) -> str:
    """The fix of a finding: whether it is only offered, and every fix, if its edge has that."""
    fixes = () if finding.fix is None else (finding.fix, *finding.alternatives)
    if (edge.fix or "").startswith(WRITTEN):
        return "".join(WRITTEN[fix.offered] + fix.title for fix in fixes[:1])
    return " / ".join(fix.title for fix in (fixes if " / " in (edge.fix or "") else fixes[:1]))


def bases(table: str) -> dict[str, Any]:
    found: dict[str, Any] = read(table)["bases"]
    return found


def script(table: str) -> str:
    """What starts the runs of a table of launches: `entry:` of a front end's table."""
    if not table.startswith("frontends-"):
        return "pretrain_gpt.py"
    entry: str | None = read(table).get("entry")
    assert entry, f"tests/constraints/{table}.yaml needs `entry:`, the script or module that starts its runs"
    return entry


def edges(path: Path) -> Iterator[Edge]:
    """Every run of a file, the unchanged ones first."""
    data = loaded(path)
    table = data.pop("table", "")
    own = data.pop("bases", None) or bases(table)
    for rule, runs in data.items():
        for run in runs:
            if "says" not in run:
                yield Edge(rule, "speaks", "", partial(case, table, own, run))
            for verdict in ("speaks", "silent", "unknown"):
                for change in run.get(verdict, ()):
                    yield Edge(rule, verdict, str(change), partial(case, table, own, run, change))
            for change, words, *more in run.get("says", ()):
                yield Edge(rule, "says", str(change), partial(case, table, own, run, change), words, *more)


def case(table: str, own: dict[str, Any], run: dict[str, Any], change: Any = None) -> Case:
    """A run with a change."""
    if isinstance(next(iter(own.values())), str):
        return _command(table, own, run, shlex.split(change or ""))
    changed = {**run, **{name: value for name, value in (change or {}).items() if name in ELSE}}
    config = copy.deepcopy(own[changed.get("base") or next(iter(own))])
    for name, value in {**run["run"], **(change or {})}.items():
        if name not in ELSE:
            _set(config, name.split("."), copy.deepcopy(value))
    target = changed.get("target", TARGETS.get(table, "1.5.0"))
    target = target if table.startswith("frontends-") else f"mindformers@{target}"
    return Case(name="", text=dumped(config), devices=changed.get("devices", DEVICES.get(table)), target=target)


def _set(config: Any, path: list[str], value: Any) -> None:
    for part in path[:-1]:
        config = config.setdefault(part, {})
    if value is None:
        config.pop(path[-1], None)
    else:
        config[path[-1]] = None if value == "null" else value


def _command(table: str, own: dict[str, Any], run: dict[str, Any], change: list[str]) -> Case:
    """A command: its options by name, so that a change replaces an existing option."""
    env = {
        name: value
        for name, value in {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **run.get("env", {})}.items()
        if value is not None
    }
    around = {name: run[name] for name in ELSE if name in run}
    around |= dict(word.split("=", 1) for word in change if word.partition("=")[0] in ELSE)
    base = around.get("base") or next(iter(own))
    dotted = re.match(r"[\w.]+=", own[base]) is not None  # a base of key=value
    options: dict[str, list[str]] = {}
    last: list[str] = []
    for word in (*shlex.split(own[base]), *shlex.split(run["run"]), *change):
        if word.startswith("--"):
            last = options[word] = []
        elif dotted and "=" in word and word.partition("=")[0] not in ELSE:
            options[word.partition("=")[0]] = [word]
        elif word.startswith("~"):
            (options if word.startswith("~--") or dotted else env).pop(word[1:], None)  # type: ignore[attr-defined]
        elif (found := re.fullmatch(r"([A-Z][A-Z0-9_]*)=(.*)", word)) is not None:
            env[found[1]] = found[2]
        elif word.partition("=")[0] not in ELSE:
            last.append(word)
    words = (
        *(around.get("entry") or ENTRIES.get(base) or script(table)).split(),
        *(word for option, values in options.items() for word in ((option,) if option[:1] == "-" else ()) + (*values,)),
    )
    device = around.get("device", "h100" if table.startswith("megatron") else None)
    devices = around.get("devices", DEVICES.get(table, 1 if table.startswith(("megatron", "mind")) else None))
    made = Case(
        name="",
        command=words,
        devices=devices if devices is None else int(devices),
        device=device,
        target=around.get("target", TARGETS.get(table, "megatron@0.20.0")),
        environment=env,
    )
    return made if not any(map(UNSET.fullmatch, words)) else replace(made, command=(), text=_line(words), file="run.sh")


def _line(words: tuple[str, ...]) -> str:
    """The line of a script, in which variables stay variables."""
    start = "" if words[0] == "megatron" else "python " if words[0].endswith(".py") else "python -m "
    return start + " ".join(word if UNSET.fullmatch(word) else shlex.quote(word) for word in words) + "\n"
