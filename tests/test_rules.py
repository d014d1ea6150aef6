"""Every rule against its fixtures, tests/rules/**/*.yaml: the file mirrors the rule's module,
or is named after the rule or its function."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from house import each
from one_rule import WANTED

import preflight.rules
from preflight import Finding, Message, Report, collect
from preflight.lint.constraint import Constraint
from preflight.lint.defect_rules import Defect
from preflight.lint.rule import Checkable, Rule
from preflight.lint.upstream_evidence import found_places
from preflight.plugins.manager import load as load_plugins
from preflight.report.upstream_check_coverage import text_of
from preflight.run.version_ranges import matches
from preflight.source.finding import placeholders
from preflight.testing import Case, load

FOLDER = Path(__file__).parent / "rules"
FILES = sorted(FOLDER.rglob("*.yaml"))


@lru_cache
def by_file() -> dict[Path, list[Case]]:
    """The cases of each fixture file."""
    return {path: load(path) for path in FILES}


@lru_cache(maxsize=1)
def registered() -> frozenset[str]:
    return frozenset(rule.id for rule in load_plugins().rules(None))


@lru_cache
def under_test(path: Path) -> tuple[str, ...]:
    """Rule ids that a fixture file is about: from its path as an id, its name as an id,
    or the rules module of that path."""
    relative = path.relative_to(FOLDER).with_suffix("")
    for name in (relative.as_posix(), relative.name):
        if (id := name.replace("_", "-")) in registered():
            return (id,)
    module = "preflight.rules." + ".".join(relative.parts)
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if found:
        return tuple(rule.id for rule in collect(import_module(module)))
    package = module.rpartition(".")[0]
    named = (rule for rule in FUNCTIONS if rule.name == relative.name)
    return tuple(rule.id for rule in named if rule.function.__module__.rpartition(".")[0] == package)


BY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())


@pytest.fixture
def template_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finding of a case, also of other rules, is made of a template."""

    def check(case: Case, *where: Any) -> Report:
        report = checked(case, *where)
        for finding in report.findings:
            made_of_its_template(finding)
        return report

    checked = Case.check
    monkeypatch.setattr(Case, "check", check)


@pytest.mark.usefixtures("template_checks")
@BY_FILE
def test_fixtures(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One case in two of a file; of rules that are asked for, every case."""
    judge(path, load(path)[:: 1 if request.config.stash[WANTED] else 2], tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("template_checks")
@BY_FILE
def test_the_other_fixtures(path: Path, tmp_path: Path) -> None:
    judge(path, load(path)[1::2], tmp_path)


def judge(path: Path, cases: list[Case], folder: Path) -> None:
    """Raises AssertionError if a case is not found as it is written."""
    wrong = []
    for number, case in enumerate(cases):
        place = folder / str(number)
        (place / ".git").mkdir(parents=True)  # neither the folders above nor those beside are of interest
        try:
            verify(path, case, place)
        except AssertionError as error:
            wrong.append(f"{case.name}: {error}")
    assert not wrong, "\n".join(wrong)


def made_of_its_template(finding: Finding) -> None:
    """The template with the values filled in is the message again, and the values are plain data."""
    assert Message(finding.template, **finding.values) == finding.message
    assert placeholders(finding.template) <= finding.values.keys()
    plain = (str, int, float, bool, tuple, list, dict, type(None))
    assert all(isinstance(value, plain) for value in finding.values.values()), finding.template


def verify(path: Path, case: Case, folder: Path) -> None:
    """Raise AssertionError if a case of a fixture file does not match the results of the rules."""
    rules = case.rules or under_test(path)
    assert rules, f"{path.name} is named after no rule and no module below rules/; give the case `rules: [id, ...]`"
    unheard = [id for id in rules if id not in registered() and id != "unused-suppression"]
    assert not unheard, f"there is no rule {', '.join(unheard)}"
    case.verify(folder, rules)


def test_names_of_cases_are_unique_in_a_file() -> None:
    for path, cases in by_file().items():
        names = [case.name for case in cases]
        assert len(names) == len(set(names)), path.name


NUMBERS = {"": 83, "megatron": 796, "mindspeed": 470, "mindformers": 433, "frontends": 372}
"""Folder below rules/ → the number of its rules; whoever adds or drops one changes this on purpose."""


def test_no_rule_is_lost() -> None:
    packs = zip(("", *preflight.rules.FRAMEWORKS), preflight.rules.packs(), strict=True)
    found = {folder: len(pack.load()) for folder, pack in packs}
    assert found == NUMBERS, "if the difference is intended, change NUMBERS in tests/test_rules.py"


def test_every_framework_of_a_rule_loads_a_folder_of_rules() -> None:
    """A run loads the folders of its frameworks: rules of a framework without a folder would never run."""
    names = {name for pack in preflight.rules.packs() for rule in pack.load() for name in rule.frameworks}
    never = names - {name for listed in preflight.rules.FRAMEWORKS.values() for name in listed}
    assert not never, f"add {', '.join(sorted(never))} to FRAMEWORKS in rules/__init__.py"


def test_the_table_has_the_rules_of_the_modules() -> None:
    for pack in preflight.rules.packs():
        assert pack.deferred is not None
        assert [rule.id for rule in pack.deferred()] == [rule.id for rule in pack.load()]


HEADINGS = ("## What it does", "## Why is this bad?", "## Example", "## Fix safety", "## References")
RULES = load_plugins().rules(None)
FUNCTIONS = [rule for rule in RULES if isinstance(rule, Rule)]


@each(RULES, lambda rule: rule.id)
def test_page(rule: Checkable) -> None:
    page = rule.page
    have = [heading for heading in HEADINGS if f"\n{heading}\n" in page]
    assert [line for line in page.splitlines() if line.startswith("## ") and line in HEADINGS] == have, (
        "headings are out of order"
    )
    wanted = (
        set(HEADINGS) - {"## Fix safety"}
        if isinstance(rule, Rule)
        else {"## What it does", "## Why is this bad?", "## References"}
    )
    assert not wanted - set(have), f"{rule.id} lacks {', '.join(sorted(wanted - set(have)))}"
    assert rule.summary and not rule.summary.startswith("#")
    assert re.fullmatch(r"([a-z0-9]+(-[a-z0-9]+)*/)?[a-z0-9]+(-[a-z0-9]+)*", rule.id)


@each(FUNCTIONS, lambda rule: rule.id)
def test_a_rule_function_has_a_failing_a_silent_and_an_unknown_case(rule: Rule) -> None:
    """`unknown: ""` is no unknown case: a rule that can lack a value has a run in which it does."""
    cases = [c for path, some in by_file().items() for c in some if rule.id in (c.rules or under_test(path))]
    assert any(f"[{rule.id}]" in case.found for case in cases), f"{rule.id} has no case that it finds"
    assert any(f"[{rule.id}]" not in case.found and not case.unknown for case in cases), f"{rule.id} has no silent case"
    if "Unverified" in text_of(rule):
        assert any(f"[{rule.id}]" in (case.unknown or "") for case in cases), (
            f"{rule.id} has no case in which a value is unknown"
        )


def owned(rule: Checkable) -> set[str]:
    """The places that a rule owns at the versions to which it applies;
    a line of one version is not the same line of another."""
    upstream = getattr(rule, "upstream", ())
    holds = getattr(rule, "versions", "")
    if isinstance(upstream, dict):
        live = {
            f"{place}@{version}"
            for version, place in upstream.items()
            if not version[0].isdigit() or matches(version, holds)
        }
        return live | set(getattr(rule, "also", ()))
    if not upstream and isinstance(rule, Constraint):
        return {f"{place}@{release}" for place, release in found_places(rule.framework, rule.id).items()}
    version = "0.12.1" if holds.startswith("<") else "0.20.0"
    return {f"{place}@{version}" for place in rule.owned}


# fmt: off
SHARED = {
    ("megatron/expert-ffn-over-tensor", "megatron/ffn-over-tensor", "megatron/shared-expert-ffn-over-tensor"):
        "one line of a parallel layer "
    "divides whatever size it is built with; the three sizes are three settings",
    ("megatron/expert-size-zero", "megatron/expert-tensor-size-zero"):
        "core 0.12 divides by the product of both; newer releases by one at a time",
    ("megatron/mock-data-with-paths", "megatron/two-data-sources"):
        "one sum of three sources since 0.7; 0.6 refuses only two lists of paths",
    ("megatron/deterministic-with-fused-loss", "megatron/nondeterministic-features"):
        "since 0.19 one assertion over a table of switches; before, "
    "one of them only",
    ("megatron/mtp-with-context-parallel", "mindspeed-llm/mtp-context-parallel"):
        "MindSpeed-LLM hides the setting from the check, but not before 26.0",
    ("megatron-bridge/model-layers-over-stages", "ms-swift/published-layers-over-stages"):
        "two front ends build the same network; a run goes through one of them",
    ("mindformers/run-mode", "mindformers/run-mode-missing"):
        "one comparison refuses a mode that does not exist and none at all",
    ("mindformers/auto-trans-without-checkpoint", "mindformers/resume-name-without-checkpoint"):
        "one condition covers two switches that want a checkpoint; with both on only the first speaks",
    ("mindformers/group-routing-experts", "mindformers/group-routing-without-experts", "pynative/router-groups"):
        "one division, of a number that does "
    "not divide and of none, for graph-mode and pynative networks",
    ("mindformers/interleave-without-scheduler", "mindformers/optimizer-level-and-shard",
        "mindformers/scheduler-without-interleave"): "one call hands "
    "every setting of parallel to MindSpore",
    ("mindformers/mcore-mode", "mindformers/serving-devices"):
        "one product fills the devices; a run that trains has reset it before, one that serves has not",
    ("pynative/architecture", "pynative/model-type"):
        "one look into the register, for the class of the config and for that of the network",
    ("mindformers/run-mode", "mindformers/run-mode-export"):
        "one list of choices, which shrank with the releases; the two refuse different words",
    ("mindformers/run-mode", "mindformers/run-mode-export", "mindformers/run-mode-missing", "mindformers/run-mode-new"):
        "the same at the launcher, for no "
    "mode and for one that came later",
    ("mindformers/parallel-mode", "mindformers/parallel-mode-new"): "one list of choices, which grew in 1.6",
    ("megatron/a2a-groups-over-context", "megatron/a2a-heads-over-context"):
        "one line looks at the heads of queries and of keys; two settings",
    ("megatron/interleaved-group-out-of-range", "megatron/interleaved-micro-batches-below-stages"):
        "one bound on a number that is either typed or the "
    "number of stages; what mends it differs",
    ("megatron/ends-hold-more-than-the-model", "megatron/layers-over-interleaved-stages"):
        "one division of what the ends leave over; where that is "
    "negative it works out, and another model is trained",
    ("megatron/layers-over-virtual-stages", "megatron/virtual-stages-not-positive"):
        "one division, by a number that does not divide and by none",
    ("megatron/interleaved-group-left-over", "megatron/interleaved-micro-batches-left-over"):
        "the same for what the groups leave over",
    ("mindspeed/buffer-pad", "mindspeed/buffer-pad-zero"):
        "one comparison, of a number that is refused and of one that only pads nothing",
    ("mindspeed/fb-overlap-expert-parallel", "mindspeed/fb-overlap-expert-tensor"):
        "one condition on two layout options; what mends it differs",
    ("mindspeed/tp-extend-ep-async", "mindspeed/tp-extend-ep-grouped-gemm"): "one condition wants two switches",
    ("mindspeed/ema-decay", "mindspeed/ema-decay-negative"):
        "one condition with two bounds, of which one is refused for every optimizer",
    ("mindspeed/dualpipev-micro-batches", "mindspeed/dualpipev-micro-batches-edge"):
        "one bound, and the one more that the documents ask for",
    ("mindspeed/recompute-in-bubble-layers", "mindspeed/recompute-in-bubble-layers-per-rank"):
        "one comparison with either of two numbers",
    ("mindspeed/mc2-sequence-parallel", "mindspeed/mc2-tensor-parallel", "mindspeed/tp-2d-mc2"):
        "one condition on two options; beside tp-2d neither helps",
    ("mindspeed-llm/layer-list-noop", "mindspeed-llm/layer-list-virtual-stages"):
        "one condition of 2.0 and 2.1 on two options",
}
# fmt: on
"""Rules that name the same line upstream, and why they are not one."""
SHARED |= {
    (
        f"mindformers/{graph}",
        f"pynative/{pynative}",
    ): "one transformer config refuses it for graph-mode and for pynative networks; a run has one of them"
    for graph, pynative in (
        ("bias-with-experts", "mixture-bias"),
        ("chunked-loss", "chunked-loss"),
        ("expert-bias-score", "expert-bias-score"),
        ("group-routing-chosen", "router-group-topk"),
        ("group-routing-top", "router-group-choice"),
        ("mask-compression-flash", "mask-without-flash"),
        ("mtp-layers", "mtp-layers"),
        ("clamp-without-experts", "clamp-without-experts"),
        ("hash-layers", "hash-layers"),
        ("hash-without-experts", "hash-without-experts"),
        ("hyper-epsilon", "hyper-epsilon"),
        ("hyper-gate", "hyper-gate"),
        ("hyper-head", "hyper-head"),
        ("hyper-rounds", "hyper-rounds"),
        ("sparse-hybrid-entries", "hybrid-entries"),
        ("hyper-streams", "hyper-streams"),
        ("plain-layer-interval", "plain-layer-interval"),
        ("sparse-flash", "sparse-flash"),
        ("sparse-latent", "sparse-latent"),
        ("sparse-share-count", "sparse-share-count"),
        ("sparse-share-first", "sparse-share-first"),
        ("sparse-share-groups", "sparse-share-groups"),
        ("sparse-share-layers", "sparse-share-layers"),
        ("sparse-share-layout", "sparse-share-layout"),
        ("sparse-share-loss", "sparse-share-loss"),
        ("sparse-sharing-elsewhere", "sparse-sharing-elsewhere"),
        ("sparse-sizes", "sparse-sizes"),
        ("sparse-warm-up", "sparse-warm-up"),
        ("sparse-warm-up-elsewhere", "sparse-warm-up-elsewhere"),
        ("encoder-decoder-sum", "encoder-decoder-sum"),
        ("sparse-hybrid-length", "hybrid-length"),
    )
}
SHARED |= {
    (
        "mindformers/hyper-rounds",
        "mindformers/hyper-rounds-none",
        "pynative/hyper-rounds",
        "pynative/hyper-rounds-none",
    ): "2.0 asks for an integer and for more than 0 at once; 2.1 takes 0",
    (
        "pynative/optimizer-type",
        "pynative/rate-in-optimizer",
    ): "one call builds the optimizer of its type and hands it what is typed",
    ("verl/no-critic-micro-batch", "verl/two-critic-micro-batches"): "one check refuses none and two",
    (
        "verl/critic-without-bridge",
        "verl/no-bridge",
        "verl/reference-without-bridge",
    ): "one check of three roles, by their own keys",
    ("nemo-rl/teacher-with-two-backends", "nemo-rl/two-backends"): "one check of two roles, by their own keys",
    ("nemo-rl/distilled-over-batch", "nemo-rl/rollouts-over-batch"): "one check of two algorithms, by their own keys",
    ("nemo-rl/batch-over-ranks", "nemo-rl/validation-over-ranks"): "one function spreads batches of both kinds",
}
SHARED |= {
    tuple(ids.split()): "Megatron's schedule, which each of these programs makes of settings with names of its own"
    for ids in (
        "megatron/min-lr-negative nemo-rl/minimum-below-zero verl/minimum-below-zero",
        "ms-swift/minimum-above-rate nemo-rl/minimum-above-rate verl/minimum-above-rate",
        "megatron/warmup-start-above-lr nemo-rl/warm-up-start-above-rate verl/warm-up-start-above-rate",
        "megatron/warmup-over-decay ms-swift/warm-up-whole-run verl/warm-up-over-decay verl/warm-up-whole-run",
        "mindspeed-llm/lora-scaled-by-zero ms-swift/adapters-scaled-by-zero",
        "megatron/wsd-without-decay-length verl/decay-without-length",
    )
}


def test_an_upstream_check_is_owned_by_one_rule() -> None:
    owners: dict[str, list[str]] = {}
    for rule in RULES:
        for place in owned(rule) if not isinstance(rule, Defect) else ():  # of one commit several defects may be mended
            owners.setdefault(place, []).append(rule.id)
    twice = {place: tuple(sorted(ids)) for place, ids in owners.items() if len(ids) > 1 and ":" in place}
    assert set(twice.values()) <= set(SHARED), "\n".join(
        f"{place}: {', '.join(ids)}" for place, ids in sorted(twice.items()) if ids not in SHARED
    )
    assert set(SHARED) <= set(twice.values()), "no longer shared"
