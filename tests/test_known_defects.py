"""Known defects of releases: each row is reported exactly at the affected releases, by release or by source."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from edges import ENTRIES, bases, case
from house import each
from pairs import DEFECTS, Pair, Run, defect_pairs

import preflight
from preflight import schemas
from preflight.api import check_command, installed
from preflight.checking.engine import Policy
from preflight.lint.defect_rules import CONSEQUENCE, Defect, fixed_in, stands
from preflight.plugins.manager import load
from preflight.source.finding import Severity
from upstream.defects import TABLE, as_text, described, ranges, releases
from upstream.frameworks import FRAMEWORKS, FRONT_ENDS
from upstream.repositories import Repositories, wheels

SCHEMAS = Path(schemas.__file__).parent
SOURCES = FRAMEWORKS | FRONT_ENDS
PAIRS = list(defect_pairs())
RULES = {rule.id: rule for rule in load().rules(None) if isinstance(rule, Defect)}


def check(pair: Pair, words: Run, target: str = "") -> preflight.Report:
    """The report on one side of a pair, at its release or another."""
    row = {**pair.row, **({"target": target} if target else {})}
    if pair.table not in ("megatron-training", "mindspeed"):
        made = case(pair.table, bases(pair.table), {**row, "run": words})
        with TemporaryDirectory() as folder:
            return made.check(Path(folder), installed(), Policy(chosen=lambda id, path: id == pair.rule))
    base = row.get("base", "")
    entry = row.get("entry") or ENTRIES.get(base, "pretrain_gpt.py")
    argv = [entry, *shlex.split(str(pair.base)), *shlex.split(str(words))]
    device = "h100" if pair.table.startswith("megatron") else None
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    return check_command(argv, world_size=row["devices"], env=env, device=device, target=row["target"])


@each(PAIRS, lambda pair: pair.rule)
def test_a_defect_is_told_with_its_release_and_its_way_around(pair: Pair) -> None:
    report = check(pair, pair.found)
    assert not report.crashes, report.crashes
    told = [finding for finding in report.findings if finding.rule == pair.rule]
    assert told, [f"{one.rule}: {one.message}" for one in report.findings][:6] + [
        one.because for one in report.unknown if one.rule == pair.rule
    ]
    assert "?" not in told[0].message
    assert "(fixed in " in told[0].message or "(no release has the fix)" in told[0].message


@each(PAIRS, lambda pair: pair.rule)
def test_the_neighbour_of_a_defect_is_silent(pair: Pair) -> None:
    assert pair.rule not in {finding.rule for finding in check(pair, pair.silent).findings}


@each(PAIRS, lambda pair: pair.rule)
def test_a_release_with_the_fix_is_silent(pair: Pair) -> None:
    framework, _, id = pair.rule.partition("/known-defect-")
    for release in fixed_in(framework, schemas.read(f"{framework}/defects")["defects"][id]):
        report = check(pair, pair.found, release if framework == "mindformers" else f"{framework}@{release}")
        assert pair.rule not in {finding.rule for finding in report.findings}, release


@each(list(RULES.values()), lambda rule: rule.id)
def test_a_row_says_all_that_a_rule_needs(rule: Defect) -> None:
    row = rule.row
    assert row["effect"] in CONSEQUENCE
    assert row["in"] and all(len(run) == 2 for run in row["in"])
    assert row["upstream"] and all(place.startswith("https://") for place in row["upstream"])
    assert rule.severity is not Severity.ERROR or row["effect"] in ("dies", "hangs")
    assert row["source"]["faulty"] and row["source"]["files"]


@pytest.mark.parametrize("framework", DEFECTS)
def test_the_releases_of_a_row_are_those_of_the_trees(framework: str) -> None:
    """A range that was typed, or that another pattern has made wrong, fails here."""
    repositories = Repositories()
    if "PREFLIGHT_UPSTREAM" not in os.environ or not repositories.has(SOURCES[framework]):
        pytest.skip("PREFLIGHT_UPSTREAM names no folder with the repository")
    table = described(SCHEMAS, SOURCES[framework])
    assert table["releases"] == list(releases(SOURCES[framework]))
    packed = {one.revision for one in SOURCES[framework].releases if one.revision.endswith(".whl")}
    if missing := sorted(one for one in packed if not (wheels() / one).is_file()):
        pytest.skip(f"{wheels()} lacks {', '.join(missing)}")
    found = ranges(SOURCES[framework], repositories, table["defects"])
    kept = {id: (row["in"], row.get("mended", [])) for id, row in table["defects"].items()}
    wrong = {id: (kept[id], one) for id, one in found.items() if kept[id] != (one.runs, one.mended)}
    assert not wrong, "python -m upstream defects --ranges writes them anew"


@pytest.mark.parametrize("framework", DEFECTS)
def test_a_table_is_written_as_the_tools_write_it(framework: str) -> None:
    text = (SCHEMAS / framework / TABLE).read_text(encoding="utf-8")
    assert text == as_text(described(SCHEMAS, SOURCES[framework]))


def test_a_tree_with_the_fix_does_not_have_the_defect() -> None:
    source = {"files": ["a.py", "b.py"], "faulty": r"x = 1", "fixed": r"x = 1  # mended"}
    assert stands(source, {"a.py": "x = 1\n"}.get) is True
    assert stands(source, {"b.py": "x = 1  # mended\n"}.get) is False
    assert stands(source, {"a.py": "y = 1\n"}.get) is False
    assert stands(source, {}.get) is None


FUSION = "megatron/core/fusions/fused_bias_dropout.py"
PARSER = "def parse_args():\n    parser.add_argument('--fp32-residual-connection', action='store_true')\n"
RUN = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8"
    " --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --train-iters 10"
    " --lr 1e-4 --bf16 --vocab-size 32000 --fp32-residual-connection"
)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("residual = residual if residual.dtype == x.dtype else residual.to(x.dtype)\n", True),
        ("x = x.to(residual.dtype)\n", False),
    ],
)
def test_the_source_of_the_program_overrules_its_release(code: str, told: bool, tmp_path: Path) -> None:
    """A fork that has the fix is not warned, and one that lost it is."""
    for path, text in {
        "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 16\nPATCH = 0\n",
        "megatron/core/__init__.py": "",
        "megatron/training/arguments.py": PARSER,
        FUSION: code,
        "run.sh": f"{RUN}\n",
        ".git/HEAD": "ref: refs/heads/main\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    report = preflight.check([tmp_path / "run.sh"])
    assert ("megatron/known-defect-fp32-residual-without-effect" in {f.rule for f in report.findings}) is told


@pytest.mark.parametrize(
    ("target", "told"), [("megatron@0.12.2", False), ("megatron@0.12.0", True), ("megatron@0.12", False)]
)
def test_a_patch_release_counts(target: str, told: bool) -> None:
    pair = next(pair for pair in PAIRS if pair.rule == "megatron/known-defect-shared-expert-keeps-user-buffers")
    assert (pair.rule in {finding.rule for finding in check(pair, pair.found, target).findings}) is told


def test_a_run_of_an_unstated_release_is_told_what_every_release_has() -> None:
    """If no release is stated, only faults of all possible releases are errors."""
    report = preflight.check_text(f"{RUN}\n", name="run.sh")
    assert not [finding for finding in report.findings if "known-defect" in finding.rule]
