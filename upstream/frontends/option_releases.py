"""Writes the options of other releases of a front end:

python -m upstream.frontends.option_releases NAME CLONE [WHEELS [MEGATRON]]

Each gets a file in schemas/frontends/contracts with the options that differ from the release of its table, those that
it lacks, and the checks that it does not make, from syntax trees: nothing is imported or run. A release without a tag
in the clone is read from its wheel in the folder WHEELS; without one, its file is left unchanged. MEGATRON: the clone
of Megatron-LM, if a table is read from it.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end import data
from preflight.lint.constraint import Constraint
from preflight.rules.frontends.flagscale import FLAGSCALE
from preflight.rules.frontends.flagscale_runs import FLAGSCALE as FLAGSCALE_RUNS
from preflight.rules.frontends.mcore_adapter import MCORE_ADAPTER
from preflight.rules.frontends.megatron_bridge import BRIDGE
from preflight.rules.frontends.megatron_bridge_stages import BRIDGE as BRIDGE_STAGES
from preflight.rules.frontends.mindspeed_fsdp2 import FSDP2
from preflight.rules.frontends.mindspeed_rl import MINDSPEED_RL
from preflight.rules.frontends.ms_swift import MS_SWIFT
from preflight.rules.frontends.nemo_rl import NEMO_RL
from preflight.rules.frontends.nemo_rl_roles import NEMO_RL as NEMO_RL_ROLES
from preflight.rules.frontends.slime import SLIME
from preflight.rules.frontends.verl import VERL
from preflight.rules.frontends.verl_roles import VERL as VERL_ROLES
from preflight.run.version_ranges import numbers
from upstream.frontends.flagscale import flagscale
from upstream.frontends.mcore_adapter import mcore_adapter
from upstream.frontends.megatron_bridge import CORE, bridge
from upstream.frontends.mindspeed_fsdp2 import mindspeed_fsdp2
from upstream.frontends.mindspeed_rl import mindspeed_rl
from upstream.frontends.ms_swift import ms_swift
from upstream.frontends.rows import SCHEMAS, value_lines
from upstream.frontends.slime import slime
from upstream.wheel import Wheel

Text = Callable[[str], str]
PARTS = ("keys", "export")
"""Parts of a table that list options by their spelling."""


class Described(NamedTuple):
    """The reader of a front end's options, from its files and those of Megatron-LM, and the location of its checks.
    core: the underlying release of Megatron-LM, if its files are read; cores: those of other releases. on: the releases
    of the framework that it starts instead of Megatron-LM. whole: parts of the table that each release has
    separately."""

    extract: Callable[[Text, Text], dict[str, Any]]
    folder: str
    core: str = ""
    cores: Mapping[str, str] = {}
    on: Mapping[str, str] = {}
    whole: tuple[str, ...] = ()


def _alone(extract: Callable[[Text], dict[str, Any]]) -> Callable[[Text, Text], dict[str, Any]]:
    return lambda text, _: extract(text)


READ: dict[str, Described] = {
    "ms-swift": Described(_alone(ms_swift), "swift/megatron/"),
    "slime": Described(_alone(slime), "slime/"),
    "flagscale": Described(_alone(flagscale), "flagscale/"),
    "mindspeed-rl": Described(
        _alone(mindspeed_rl),
        "mindspeed_rl/",
        "",
        {"2.2.0": "0.8.0", "2.1.0": "0.8.0"},
        {"2.2.0": "2.1.0", "2.1.0": "2.1.0"},
    ),
    "megatron-bridge": Described(
        bridge,
        "src/megatron/bridge/",
        CORE.removeprefix("core_v"),
        {"0.5.1": "0.18.0", "0.4.2": "0.17.0", "0.3.1": "0.16.0"},
        whole=("sections", "container"),
    ),
    "mcore-adapter": Described(_alone(mcore_adapter), "mcore_adapter/", whole=("strategy", "training")),
    "mindspeed-llm-fsdp2": Described(_alone(mindspeed_fsdp2), "mindspeed_llm/"),
}
"""Every front end whose other releases are described in this way."""
LACKING = {"verl": "verl/", "nemo-rl": "nemo_rl/"}
"""Front ends whose contracts upstream/frontends/contracts.py writes: the location of their checks."""
SETS = (
    *(MS_SWIFT, SLIME, FLAGSCALE, FLAGSCALE_RUNS, MINDSPEED_RL, BRIDGE, BRIDGE_STAGES, MCORE_ADAPTER, FSDP2),
    *(VERL, VERL_ROLES, NEMO_RL, NEMO_RL_ROLES),
)
CHECKS: dict[str, dict[str, str]] = {}
"""Front end → its rules, each with the place of its check in the release of the table."""
for _rules in SETS:
    _places = {one.id: str(one.upstream) for one in _rules.rules if isinstance(one, Constraint)}
    CHECKS[_rules.framework] = {**CHECKS.get(_rules.framework, {}), **_places}


REWORDED = {
    "megatron-bridge/two-lengths-of-training": ("assert not (has_train_iters and has_train_samples)",),
    "megatron-bridge/background-checkpoint-format": ("assert checkpoint.ckpt_format == 'torch_dist'",),
}
"""Conditions with which other releases refuse the same as a rule; each was read by a person."""


SOURCE = "src/"
"""The folder of a repository that its wheel does not have."""


class Clone:
    """The files of a repository at its tags, or branches of that name, otherwise of wheels of a front end in a
    folder."""

    def __init__(self, place: Path, front_end: str = "", packed: Path | None = None) -> None:
        self.place, self.front_end, self.packed = place, front_end, packed

    @cache  # noqa: B019 - one object per run of the command
    def git(self, *words: str) -> str:
        """The output of git."""
        return subprocess.run(["git", "-C", str(self.place), *words], capture_output=True, text=True, check=True).stdout

    @cache  # noqa: B019
    def revision(self, release: str) -> str:
        """The commit of a release, "" if it has no tag or branch."""
        for name in (f"v{release}", f"core_v{release}", release):
            try:
                return self.git("rev-parse", "--verify", "-q", f"{name}^{{commit}}").strip()
            except subprocess.CalledProcessError:
                continue
        return ""

    @cache  # noqa: B019
    def wheel(self, release: str) -> Wheel | None:
        """The wheel of a release that the repository lacks."""
        if self.packed is None or self.revision(release):
            return None
        found = sorted(self.packed.glob(f"{self.front_end.replace('-', '_')}-{release}-*.whl"))
        return Wheel(found[0]) if found else None

    def has(self, release: str) -> bool:
        """Whether the files of a release are available."""
        return bool(self.revision(release)) or self.wheel(release) is not None

    def commit(self, release: str) -> str:
        """The identity of a release: the commit of its tag, or the hash of its wheel."""
        wheel = self.wheel(release)
        return wheel.commit[:17] if wheel is not None else self.revision(release)[:7]

    def text(self, release: str, path: str) -> str:
        """A file, or the names of all for "". Raises subprocess.CalledProcessError if a repository lacks it."""
        if (wheel := self.wheel(release)) is not None:
            above = SOURCE if self.front_end in READ and READ[self.front_end].folder.startswith(SOURCE) else ""
            inside = path.removeprefix(above)
            return (
                wheel.texts([inside]).get(inside, "") if path else "\n".join(above + one for one in sorted(wheel.paths))
            )
        at = self.revision(release)
        return self.git("show", f"{at}:{path}") if path else self.git("ls-tree", "-r", "--name-only", at)

    @cache  # noqa: B019
    def refusals(self, release: str, folder: str) -> frozenset[str]:
        """The conditions of every refusal below a folder."""
        paths = [one for one in self.text(release, "").split("\n") if one.startswith(folder) and one.endswith(".py")]
        return frozenset(test for path in paths for test, _, _ in refusals(self.text(release, path)))


def refusals(code: str) -> Iterator[tuple[str, int, int]]:
    """Each condition under which a module raises or asserts, with its first and last line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assert):
            yield f"assert {_condition(node.test)}", node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.If) and any(isinstance(one, ast.Raise) for one in node.body):
            yield f"if {_condition(node.test)}", node.lineno, node.body[-1].end_lineno or node.lineno


def _condition(test: ast.expr) -> str:
    return re.sub(r"\bcfg\b", "config", re.sub(r"\b(?:self|args)\.", "", ast.unparse(test)))


def lacking(front_end: str, clone: Clone, release: str) -> list[str]:
    """The rules whose check a release does not make, because none of its refusals has the condition."""
    folder = LACKING[front_end] if front_end in LACKING else READ[front_end].folder
    base = data(front_end)["release"]
    found = []
    for rule, place in CHECKS[front_end].items():
        path, _, line = place.partition(":")
        if not (path.startswith(folder.split("/")[0] + "/") and path.endswith(".py") and line.isdigit()):
            continue
        own = [
            (last - first, test) for test, first, last in refusals(clone.text(base, path)) if first <= int(line) <= last
        ]
        said = {min(own)[1], *REWORDED.get(rule, ())} if own else frozenset()
        if own and said.isdisjoint(clone.refusals(release, folder)):
            found.append(rule)
    return found


def difference(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The options of another release that differ from those of the table."""
    plain = json.loads(json.dumps(other))
    return {
        "changed": {key: row for key, row in plain.items() if base.get(key) != row},
        "without": sorted(set(base) - set(plain)),
    }


def contract_text(clone: Clone, release: str, megatron: Clone | None = None) -> str:
    """The file of a release."""
    front_end = clone.front_end
    described, base = READ[front_end], data(front_end)
    core = described.cores.get(release, "")

    def beneath(path: str) -> str:
        assert megatron is not None, "the clone of Megatron-LM is needed"
        return megatron.text(core or described.core, path)

    found = described.extract(lambda path: clone.text(release, path), beneath)
    parts: dict[str, Any] = {part: difference(base[part], found[part]) for part in PARTS if part in base}
    whole = {"release": release, "commit": clone.commit(release), "lacks": lacking(front_end, clone, release)}
    whole |= {"core": core} if core else {}
    whole |= {"on": described.on[release]} if release in described.on else {}
    whole |= parts | {part: found[part] for part in described.whole if found[part] != base[part]}
    lines = (f"  {json.dumps(key)}: {value_lines(value)}" for key, value in whole.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(clone: Clone, megatron: Clone | None = None) -> list[Path]:
    """Rewrite the files of a front end, for the described releases whose files are available."""
    out = list[Path]()
    for release in filter(clone.has, contracts(clone.front_end)):
        path = SCHEMAS / "contracts" / f"{clone.front_end}-{release}.json"
        path.write_text(contract_text(clone, release, megatron), encoding="utf-8")
        out.append(path)
    return out


LACKS = SCHEMAS / "contracts" / "lacks.json"
"""The rules that older releases lack, of all front ends in LACKING."""


def lacks_text(clone: Clone) -> str:
    """The content of LACKS with the rows of a front end's older releases whose files are available."""
    base = numbers(data(clone.front_end)["release"])
    found = json.loads(LACKS.read_text(encoding="utf-8")) if LACKS.exists() else {}
    older = [one for one in contracts(clone.front_end) if numbers(one) < base and clone.has(one)]
    found[clone.front_end] = {release: lacking(clone.front_end, clone, release) for release in older}
    lines = (f"  {json.dumps(name)}: {value_lines(found[name])}" for name in sorted(found))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_lacks(clone: Clone) -> list[Path]:
    """Write the rules that older releases of a front end lack."""
    LACKS.write_text(lacks_text(clone), encoding="utf-8")
    return [LACKS]


def main(words: Sequence[str]) -> int:
    """NAME of a front end, the clone of its repository, the folder with the wheels of releases without a tag, and the
    clone of Megatron-LM."""
    name, place, *more = words
    clone = Clone(Path(place), name, Path(more[0]) if more else None)
    megatron = Clone(Path(more[1])) if len(more) > 1 else None
    print(*(write_lacks(clone) if name in LACKING else write(clone, megatron)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
