"""Every option has a term, widens the range by name, or is known to cost nothing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from test_step_time import SMALL, step

import preflight
from preflight import schemas
from preflight.dialects.megatron.run_plan import UNTIMED
from preflight.steptime.error_ranges import FACTORS, untimed

UPSTREAM = Path(os.environ.get("PREFLIGHT_UPSTREAM", "/nowhere")) / "NVIDIA+Megatron-LM" / "repo"
DIALECT = Path(__file__).parents[2] / "preflight" / "dialects" / "megatron"
READ = (
    "plan_network",
    "plan_training",
    "run_plan",
    "network_extensions",
    "network_sizes",
    "unmodelled_memory",
    "layout",
    "batch",
    "pipeline",
    "mindspeed_derivations",
    "silent_changes",
)
FRAMEWORKS = ("megatron", "mindspeed", "mindspeed-llm")
HARMLESS = (Path(__file__).parent / "harmless_options.txt").read_text(encoding="utf-8").split()
"""First words of options that do not, or hardly, affect the time of a training step."""


LAUNCH = f"posttrain_gpt.py {SMALL} --micro-batch-size 1 --global-batch-size 64 --use-mcore-models"


def options(framework: str) -> set[str]:
    """The names of the options of every described release in a program."""
    table = schemas.read(f"{framework}/options")["options"]
    return {period[2][0] for periods in table.values() for period in periods if period[2]}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_option_of_every_release_has_a_term_or_widens_the_range_or_is_harmless(framework: str):
    read = set(re.findall(r"\w+", " ".join((DIALECT / f"{name}.py").read_text(encoding="utf-8") for name in READ)))
    widening = {name.removeprefix("no_") for row in UNTIMED for name in row.options}
    left = {name for name in options(framework) if name not in read and name.removeprefix("no_") not in widening}
    asked = sorted(name for name in left if not name.startswith(tuple(HARMLESS)))
    assert not asked, f"say in untimed.py or harmless_options.txt what these cost: {asked}"


def test_what_widens_a_range_is_an_option():
    known = {name.removeprefix("no_") for framework in FRAMEWORKS for name in options(framework)}
    assert not [name for row in UNTIMED for name in row.options if name.removeprefix("no_") not in known]


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the source of Megatron-LM is not here")
def test_nothing_reads_the_switch_of_scattered_pipeline_exchange_in_described_releases():
    """Releases up to v2.6 sent a share of the activations from each tensor-parallel rank and gathered them; from core
    0.6 on the option is parsed, and nothing reads it. With sequence parallelism each rank has its share anyway."""
    name = "scatter_gather_tensors_in_pipeline"
    for release in schemas.read("megatron/releases")["releases"].values():
        git = ["git", f"--git-dir={UPSTREAM}", "grep", "-l", name, release["revision"], "--", "megatron"]
        files = subprocess.run(git, capture_output=True, text=True).stdout.split()
        assert all(file.endswith("arguments.py") for file in files), files


def test_every_feature_has_a_factor_that_holds_the_estimate():
    assert {row.feature for row in UNTIMED} <= FACTORS.keys()
    assert all(low <= 1.0 <= high and high / low > 1.03 for low, high in FACTORS.values())


@pytest.mark.parametrize(
    ("options", "said", "end"),
    [
        (("--sft",), "several samples in one sequence", "low"),
        (("--optimizer-cpu-offload", "--optimizer-offload-fraction", "0.5"), "optimizer states with the host", "high"),
        (("--rerun-mode", "validate_results"), "recomputed for comparison", "high"),
        (("--deterministic-mode",), "deterministic", "high"),
        (("--no-bias-swiglu-fusion",), "not fused", "high"),
        (("--save", "x", "--save-interval", "10"), "checkpoints at short intervals", "high"),
    ],
)
def test_an_option_without_a_term_is_named_and_widens_the_range(options: tuple[str, ...], said: str, end: str):
    plain, more = step(), step(*options)
    assert any(said in words for words in more.assumed), more.assumed
    away = [abs(getattr(found, end) / found.seconds - 1) for found in (plain, more)]
    assert away[1] > away[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--context-parallel-kv-cache-policy full", "communication"),
        ("--use-ascend-coc --coc-parallel-num 4", "communication"),
        ("--attn-logit-softcapping 30.0", "variants of attention"),
        ("", "not fused"),
    ],
)
def test_options_of_mindspeed_are_named_too(options: str, said: str):
    fused = "--use-fused-rmsnorm --use-fused-swiglu --use-fused-rotary-pos-emb" if options else ""
    argv = [*LAUNCH.split(), *fused.split(), *options.split(), "--use-flash-attn"]
    report = preflight.check_command(argv, world_size=16, device="910B1", target="mindspeed-llm@2.3.0")
    found = untimed(report.jobs[0].plan)
    assert [str(feature) for feature in found if said in str(feature)], found
    assert ("not fused" in " ".join(map(str, found))) is (not options)


def test_samples_of_any_length_take_any_time_below_the_limit():
    argv = [*LAUNCH.split(), "--no-pad-to-seq-lengths", "--stage", "sft"]
    report = preflight.check_command(argv, world_size=16, device="910B1", target="mindspeed-llm@2.3.0")
    found = preflight.estimate_step_time(report.jobs[0])
    assert found.seconds is not None, found.unknown
    assert found.low < 0.2 * found.seconds and any("any length" in words for words in found.assumed)


@pytest.mark.parametrize("options", [("--rerun-mode", "disabled"), ("--save", "x", "--save-interval", "1000"), ()])
def test_what_is_off_says_nothing(options: tuple[str, ...]):
    assert step(*options).assumed == ()
