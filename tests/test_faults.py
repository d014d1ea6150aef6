"""Faults put into published training configs: found, fixed, and nothing else changed.

The configs are read from a folder next to the project if it exists; otherwise these tests are skipped.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sampled import one_in

from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.fix.edit_integrity import _comments
from preflight.fix.fixer import Fixed, fix
from preflight.fix.interactive_fixes import fix_by_choice
from preflight.layouts.layout_fixes import suggest
from preflight.loaders import load
from preflight.run.request import Request, Target
from preflight.source.finding import Finding
from preflight.source.source_file import Source

DATA = Path(__file__).resolve().parents[2] / "shared/data"
CORPUS = DATA / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the published configs are not here")


class Config(NamedTuple):
    """A published config, the devices of its own layout, and its version."""

    path: Path
    world: int
    target: str

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode("utf-8-sig")


class Fault(NamedTuple):
    """How a fault is put into a text (None: not possible there), the rules that see it, the keys a fix may touch.

    chosen: the file does not show the intention, so the fix is only offered; the first fix is chosen.
    """

    name: str
    inject: Callable[[str], str | None]
    rules: tuple[str, ...]
    keys: str
    chosen: bool = False


def swap(pattern: str, replacement: str, *, unless: str = "") -> Callable[[str], str | None]:
    """Replace the first match; None when there is none."""

    def inject(text: str) -> str | None:
        if unless and re.search(unless, text, re.M):
            return None
        new, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
        return new if count else None

    return inject


PARALLEL = r"^use_parallel: *True"
OTHERS = r"ChatGLM|GLM4|glm4|Mixtral|mixtral"
MINDFORMERS = (
    Fault("misspelt True", swap(r"^( +enable_parallel_optimizer: *)True\b", r"\1Ture"),
        ("misspelt-boolean", "wrong-type"), "enable_parallel_optimizer"),
    Fault("misspelt False", swap(r"^( +gradients_mean: *)False\b", r"\1Flase"), ("misspelt-boolean", "wrong-type"),
        "gradients_mean"),
    Fault(
        "wrong data parallel", swap(r"^( +data_parallel: *(?:&\S+ +)?)(\d+)", r"\g<1>97"), ("device-count",),
        "data_parallel|micro_batch_num|gradient_accumulation_steps", chosen=True,
    ),
    Fault("misspelt strict key", swap(r"^( +)(micro_batch_num)(: *)", r"\1micro_bacth_num\3"), ("unknown-key",),
        "micro_batch_num|micro_bacth_num"),
    Fault("duplicated key", swap(r"^( +)(pipeline_stage: *(?:&\S+ +)?)(\d+)(.*)$", r"\1\2\3\4\n\1pipeline_stage: \3"),
        ("duplicate-key",), "pipeline_stage"),
    Fault(
        "micro-batches below stages", swap(r"^( +micro_batch_num: *(?:&\S+ +)?)([2-9]|\d\d+)\b", r"\g<1>1",
            unless=r"^ +pipeline_stage: *(?:&\S+ +)?1\b"),
        ("too-few-micro-batches",), "micro_batch_num", chosen=True,
    ),
    Fault("offset that does not sum", swap(r"^( +offset: *)(\d+|\[[^\]\n]*\]) *(#.*)?$", r"\g<1>[7, 5] \3",
        unless=r"^ +pipeline_stage: *(?:&\S+ +)?1\b"), ("bad-offset", "mindformers/bad-offset"),
        "offset|pp_interleave_num|pipeline_config", chosen=True),
    Fault("tensor parallel that does not divide heads", swap(r"^( +model_parallel: *(?:&\S+ +)?)(\d+)", r"\g<1>7"),
        ("heads-not-divisible", "device-count"), ".*", chosen=True),
    Fault(
        "unescaped dot in a pattern", swap(r"^( +select_recompute: *)(True|False)\b", r"\1['feed_forward.mul']",
            unless=OTHERS), ("select-recompute-no-match",),
        "select_recompute",
    ),
    Fault(
        "wrong case in a pattern", swap(r"^( +select_recompute: *)(True|False)\b", r"\1['Feed_Forward\\.Mul']",
            unless=OTHERS),
        ("select-recompute-no-match",), "select_recompute",
    ),
)  # fmt: skip
LAST_FLAG = r"(?P<all>(?:.|\n)*MODEL_ARGS:\n)"
TWO_D = r"  --tp-2d: true\n  --tp-x: 2\n  --tp-y: 2\n"
MEGATRON = (
    Fault("2-D tensor parallel beside sequence parallel", swap(LAST_FLAG,
        rf"\g<all>{TWO_D}  --sequence-parallel: true\n", unless="--sequence-parallel"), ("tp-2d-sequence-parallel",),
        "--sequence-parallel|--tp-2d|--tp-x|--tp-y", chosen=True),
    Fault("two exclusive overlaps", swap(LAST_FLAG,
        rf"\g<all>{TWO_D}  --enable-overlap-ag-with-matmul: true\n  --enable-overlap-matmul-with-rs: true\n",
        unless="--sequence-parallel"), ("overlap-flags-exclusive",), "--enable-overlap.*|--tp-2d|--tp-x|--tp-y"),
    Fault("x times y is not tensor parallel", swap(LAST_FLAG, r"\g<all>  --tp-2d: true\n  --tp-x: 3\n  --tp-y: 5\n"),
        ("tp-2d-sizes",), "--tp-.*|--sequence-parallel"),
)  # fmt: skip


def mindformers_configs() -> Iterator[Config]:
    rows = (
        [json.loads(line) for line in (DATA / "oracle/mindformers-published.jsonl").read_text().splitlines()]
        if CORPUS.exists()
        else []
    )
    for row in rows:
        path = CORPUS / "mindformers" / row["tag"] / row["path"]
        if row["accept"] and path.exists():
            yield Config(path, row["world"], f"mindformers@{row['tag'].lstrip('v')}")


def megatron_configs() -> Iterator[Config]:
    for path in sorted((CORPUS / "megatron").rglob("model_config.yaml")) if CORPUS.exists() else []:
        text = path.read_text()
        if (
            re.search(r"^  --tensor-model-parallel-size: *4", text, re.M)
            and "--num-layers" in text
            and "--num-experts" not in text
        ):
            yield Config(path, 8, "mindspeed")


def check_fixed(config: Config, fault: Fault) -> str:
    """Inject, fix, compare. "" on success, "-" if the fault does not apply, otherwise the problem."""
    broken = fault.inject(config.text)
    if broken is None or broken == config.text:
        return "-"
    request = Request(world_size=config.world, target=Target.parse(config.target))

    def workspace(text: str) -> Workspace:
        return Workspace([Source(text, str(config.path.name), path=config.path)], installed(), request)

    before = workspace(broken).check()
    rules = [rule.rpartition("/")[2] for rule in fault.rules]
    if any(f.rule.rpartition("/")[2] in rules for f in workspace(config.text).check().findings):
        return "-"  # the published file has this fault already
    seen = [f for f in before.findings if f.rule.rpartition("/")[2] in rules]
    if not seen:
        return "not found" if before.jobs and not silent(config, fault) else "-"
    result = mended(workspace(broken), seen, fault)
    if any(f.message in [s.message for s in seen] for f in result.report.findings):
        return f"not fixed: {[(o.finding.rule, o.state, o.detail) for o in result.outcomes]}"
    fixed = result.edited[config.path.name].text
    again = mended(workspace(fixed), seen, fault).edited
    return compare(broken, fixed, fault) or ("a second run changes it" if again else "")


def mended(workspace: Workspace, seen: list[Finding], fault: Fault) -> Fixed:
    """The fixes of the findings, or the first offered fix of each."""
    rules = {finding.rule for finding in seen}
    if fault.chosen:
        return fix_by_choice(workspace, lambda f, ways, now: 0 if f.rule in rules else None, suggest=suggest)
    return fix(workspace, unsafe=True, wanted=lambda finding: finding.rule in rules, suggest=suggest)


def silent(config: Config, fault: Fault) -> bool:
    """Whether the rule has a reason to be silent on this config: no parallelism, an unknown family,
    a prediction run."""
    text = config.text
    if "MODEL_ARGS" in text:
        return False
    quiet = not re.search(PARALLEL, text, re.M) or re.search(
        r"^run_mode: *['\"]?(predict|eval)|^ +parallel_mode: *[02]", text, re.M
    )
    return bool(quiet) or fault.rules[0] in ("select-recompute-no-match", "heads-not-divisible", "bad-offset")


def compare(broken: str, fixed: str, fault: Fault) -> str:
    """Only lines of the keys that may change differ, and every comment is there."""
    if _comments(broken) != _comments(fixed):
        return "a comment changed"
    lines = [line[2:] for line in difflib.ndiff(broken.splitlines(), fixed.splitlines()) if line[:2] in ("- ", "+ ")]
    keys = re.compile(rf"\s*['\"]?(?:{fault.keys}|sequence_parallel|use_seq_parallel)['\"]?\s*:|\s*-|\s*#")
    strange = [line for line in lines if not keys.match(line)]
    return f"lines that should not change: {strange[:3]}" if strange else ""


@pytest.mark.halved
@pytest.mark.parametrize("fault", MINDFORMERS, ids=lambda fault: fault.name)
def test_mindformers(fault: Fault) -> None:
    judge(list(mindformers_configs())[::40], fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", MINDFORMERS, ids=lambda fault: fault.name)
def test_many_configs_of_mindformers(fault: Fault) -> None:
    judge(one_in(4, mindformers_configs(), 1), fault)


@pytest.mark.parametrize("fault", MEGATRON, ids=lambda fault: fault.name)
def test_megatron(fault: Fault) -> None:
    judge(list(megatron_configs())[::3], fault)


def judge(configs: list[Config], fault: Fault) -> None:
    verdicts = {str(config.path.relative_to(CORPUS)): check_fixed(config, fault) for config in configs}
    wrong = {path: why for path, why in verdicts.items() if why not in ("", "-")}
    done = sum(why == "" for why in verdicts.values())
    assert not wrong, f"{len(wrong)} of {len(wrong) + done}: {dict(list(wrong.items())[:5])}"
    assert done, "the fault applies to no config"


@pytest.mark.slow
def test_every_config_of_the_corpus_is_read_without_a_crash() -> None:
    for path in sorted(CORPUS.rglob("*.yaml")):
        report = Workspace([Source.read(path)], installed(), Request()).check()
        assert not report.crashes, f"{path}: {report.crashes[0].trace}"
        assert load(report.jobs[0].documents[0].source) if report.jobs else True
