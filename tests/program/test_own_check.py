"""The program's own source takes precedence over tables; here a stand-in reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from checkouts import INFO, PARSER, SIZES, write

import preflight
from preflight.checking import program_findings
from preflight.program.verdict import Machine, Place, Program, Refusal, Remark, Rewrite, Verdict
from preflight.source.finding import Severity

ARGUMENTS = "megatron/training/arguments.py"
CHECKS = """
def validate_args(args):
    if args.use_legacy_models and not args.own_switch:
        raise ValueError("legacy models need the switch")
    assert args.own_size % 2 == 0
    if not args.own_switch:
        assert args.num_layers % 4 == 0, "layers do not divide"
    assert args.rotary_base in [10000]
    assert args.num_layers > 1, "few layers"
"""
TREE = {"megatron/core/package_info.py": INFO, ARGUMENTS: PARSER.replace("return parser", '''group.add_argument(
        "--own-switch", action="store_true")
    return parser''') + CHECKS, "pretrain_gpt.py": ""}  # fmt: skip
Judge = Callable[..., list[tuple[Program, Sequence[str], dict[str, Any]]]]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Makes the interpreter give a verdict, and accept once a word is in the command; the list records the queries."""

    def give(verdict: Verdict, cure: str = "") -> list[tuple[Program, Sequence[str], dict[str, Any]]]:
        asked: list[tuple[Program, Sequence[str], dict[str, Any]]] = []

        def judge(program: Program, argv: Sequence[str], **said: Any) -> Verdict:
            asked.append((program, argv, said))
            if cure in argv:
                return Verdict("accepts", files=(ARGUMENTS,), stages=("parse", "validate"))
            return verdict._replace(files=verdict.files or (ARGUMENTS,), stages=("parse", "validate"))

        monkeypatch.setattr("preflight.program.judge.judge", judge)
        program_findings._verdict.cache_clear()
        return asked

    return give


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(TREE[ARGUMENTS].split("\n"), 1) if text in line)


def refusal(text: str, message: str = "", *reads: str, **more: Any) -> Refusal:
    line = line_of(text)
    return Refusal(Place(ARGUMENTS, line, line, "validate_args"), "AssertionError", message, reads, **more)


def check(folder: Path, more: str, **said: Any) -> preflight.Report:
    write(folder, {**TREE, "run.sh": f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"})
    return preflight.check(folder / "run.sh", **said)


def own(report: preflight.Report) -> list[preflight.Finding]:
    return [finding for finding in report.findings if finding.rule == "own-check"]


def test_a_refusal_that_no_rule_knows_is_told_at_the_option_in_the_words_of_the_program(
    tmp_path: Path, says: Judge
) -> None:
    says(Verdict("refuses", (refusal("own_size % 2", "own size must be even", "own_size"),)))
    report = check(tmp_path, "--own-size 3")
    (found,) = own(report)
    place = f"{ARGUMENTS}:{line_of('own_size % 2')}"
    assert (found.severity, found.upstream, found.key) == (Severity.ERROR, place, ("--own-size",))
    assert found.message == f"{place} rejects the run: own size must be even; here --own-size 3"
    assert found.span.text == "3"
    assert not report.accepted
    assert not report.undecided


def test_a_refusal_without_words_is_told_by_its_condition(tmp_path: Path, says: Judge) -> None:
    says(Verdict("refuses", (refusal("own_size % 2", "", "own_size"),)))
    assert "0 != own_size % 2" in own(check(tmp_path, "--own-size 3"))[0].message


def test_what_another_thing_needs_is_switched_on(tmp_path: Path, says: Judge) -> None:
    place = refusal("legacy models need", "legacy models need the switch", "use_legacy_models", "own_switch")
    says(Verdict("refuses", (place,)), "--own-switch")
    fix = own(check(tmp_path, "--use-legacy-models"))[0].fix
    assert fix is not None
    assert (fix.title, str(fix.safety)) == ("add --own-switch", "unsafe")


def test_a_switch_that_lifts_a_check_of_sizes_is_not_written(tmp_path: Path, says: Judge) -> None:
    place = refusal("layers do not divide", "layers do not divide", "num_layers", "own_switch")
    says(Verdict("refuses", (place,)), "--own-switch")
    fix = own(check(tmp_path, "--num-layers 6"))[0].fix
    assert fix is None or fix.offered


def test_the_only_value_that_is_taken_is_offered(tmp_path: Path, says: Judge) -> None:
    says(Verdict("refuses", (refusal("in [10000]", "base", "rotary_base"),)), "10000")
    fix = own(check(tmp_path, "--rotary-base 7"))[0].fix
    assert fix is not None
    assert fix.title == "set --rotary-base 10000"


def test_a_shape_with_several_ways_out_has_no_fix(tmp_path: Path, says: Judge) -> None:
    says(Verdict("refuses", (refusal("few layers", "few layers", "num_layers"),)))
    assert own(check(tmp_path, ""))[0].fix is None


def test_the_parser_refuses_in_its_own_words(tmp_path: Path, says: Judge) -> None:
    said = Refusal(Place(ARGUMENTS, 1, 1), "argparse", "argument --own-size: invalid int value: 'many'", ("own_size",))
    says(Verdict("refuses", (said,)))
    (found,) = own(check(tmp_path, "--own-size many", select=["own-check"]))
    assert (found.upstream, found.span.text) == ("argparse", "many")


def test_the_parser_at_hand_decides_whatever_its_release(tmp_path: Path, says: Judge) -> None:
    said = Refusal(Place(ARGUMENTS, 1, 1), "argparse", "argument --own-size: invalid int value: 'many'", ("own_size",))
    says(Verdict("refuses", (said,)))
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --own-size many\n"
    old = INFO.replace("MINOR = 14", "MINOR = 4")
    write(tmp_path, {**TREE, "megatron/core/package_info.py": old, "run.sh": script})
    (found,) = own(preflight.check(tmp_path / "run.sh", select=["own-check"]))
    assert (found.severity, found.message.count("not a known release")) == (Severity.ERROR, 0)


def test_a_rule_that_knows_the_statement_tells_it_in_its_words_and_once(tmp_path: Path, says: Judge) -> None:
    said = Refusal(Place(ARGUMENTS, 1, 1), "argparse", "argument --own-size: invalid int value: 'many'", ("own_size",))
    says(Verdict("refuses", (said,)))
    assert [f.rule for f in check(tmp_path, "--own-size many").findings if f.severity is Severity.ERROR] == [
        "bad-value"
    ]


def test_what_depends_on_the_machine_is_no_error_and_says_what_would_decide_it(tmp_path: Path, says: Judge) -> None:
    unless = ("Transformer Engine >= 2.1",)
    says(Verdict("may refuse", (refusal("own_size % 2", "too old", "own_size", certain=False, unless=unless),)))
    report = check(tmp_path, "--own-size 3")
    assert report.undecided
    assert not own(report)
    assert any(u.because.startswith("rejected unless Transformer Engine >= 2.1: too old") for u in report.unknown)


def test_a_source_that_cannot_be_read_leaves_everything_as_the_tables_have_it(tmp_path: Path, says: Judge) -> None:
    says(Verdict("unread", why="over the budget"))
    report = check(tmp_path, "--own-size many")
    assert report.undecided
    assert any("over the budget" in u.because for u in report.unknown)
    assert [f.rule for f in report.findings if f.severity is Severity.ERROR] == ["bad-value"]


def test_where_the_program_accepts_errors_of_tables_go(tmp_path: Path, says: Judge) -> None:
    says(Verdict("accepts"))
    report = check(tmp_path, "--own-size many --not-an-option")
    assert report.accepted
    assert not {"bad-value", "unknown-flag"} & {f.rule for f in report.findings}


def test_an_interpreter_that_fails_leaves_the_run_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **said: object) -> Verdict:
        raise RecursionError("too deep")

    monkeypatch.setattr("preflight.program.judge.judge", fails)
    report = check(tmp_path, "--own-size 2")
    assert report.undecided
    assert any("RecursionError: too deep" in u.because for u in report.unknown)


def test_a_silent_change_that_the_program_does_not_make_is_not_told(tmp_path: Path, says: Judge) -> None:
    says(Verdict("accepts"))
    quiet = check(tmp_path / "a", "--sequence-parallel")
    change = Rewrite("sequence_parallel", True, False, Place(ARGUMENTS, 3, 3))
    says(Verdict("accepts", rewrites=(change,)))
    told = check(tmp_path / "b", "--sequence-parallel")
    assert "changed-silently" not in {f.rule for f in quiet.findings}
    assert "changed-silently" in {f.rule for f in told.findings}


def test_harm_and_memory_stay_whatever_the_program_accepts(tmp_path: Path, says: Judge) -> None:
    says(Verdict("accepts"))
    report = check(tmp_path, "--num-layers 96 --hidden-size 12288 --num-attention-heads 96", device="h100")
    assert "predicted-oom" in {f.rule for f in report.findings}


def test_the_interpreter_is_asked_with_the_words_the_environment_and_the_machine(tmp_path: Path, says: Judge) -> None:
    asked = says(Verdict("accepts"))
    write(tmp_path, TREE)
    words = ["torchrun", "--nproc-per-node", "8", "pretrain_gpt.py", *SIZES.split(), "--own-size", "2"]
    versions = {"torch": "2.8.0", "transformer-engine": "2.17"}
    preflight.check_command(
        words, env={"A": "1"}, program=tmp_path, machine=versions, select=["own-check"], world_size=16, device="h100"
    )
    ((program, argv, said),) = asked
    assert program == Program("megatron", (str(tmp_path),), str(tmp_path / "pretrain_gpt.py"))
    assert argv[-2:] == ("--own-size", "2")
    unset = {"CUDA_DEVICE_MAX_CONNECTIONS": None}  # the caller of a command also sets its environment
    assert (said["world_size"], said["env"]) == (16, {"A": "1", **unset})
    assert said["machine"] == Machine(versions, (9, 0), 8)


def test_only_the_selected_rule_runs(tmp_path: Path, says: Judge) -> None:
    says(Verdict("refuses", (refusal("few layers", "few layers", "num_layers"),)))
    report = check(tmp_path, "--bf16 --fp16", select=["own-check"])
    assert {f.rule for f in report.findings} == {"own-check"}


@pytest.mark.parametrize(("stage", "entry"), [("scheduler", "generate()"), ("layers", "pretrain(x)")])
def test_what_the_run_does_not_reach_refuses_nothing(tmp_path: Path, says: Judge, stage: str, entry: str) -> None:
    """A script without a training loop has no schedule; layers are laid out once there are process groups."""
    says(Verdict("refuses", (refusal("few layers", "few layers", certain=True, stage=stage),)))
    write(tmp_path, {**TREE, "pretrain_gpt.py": entry, "run.sh": f"torchrun pretrain_gpt.py {SIZES}\n"})
    report = preflight.check(tmp_path / "run.sh")
    assert not own(report)
    assert not report.undecided


def test_without_source_nothing_is_asked(tmp_path: Path, says: Judge) -> None:
    asked = says(Verdict("refuses"))
    write(tmp_path, {"run.sh": f"torchrun pretrain_gpt.py {SIZES}\n"})
    report = preflight.check(tmp_path / "run.sh")
    assert not asked
    assert not report.undecided


def test_an_isolated_check_reads_no_source(tmp_path: Path, says: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.cli import run

    asked = says(Verdict("accepts"))
    write(tmp_path, {**TREE, "jobs/run.sh": f"torchrun ../pretrain_gpt.py {SIZES}\n"})
    monkeypatch.chdir(tmp_path / "jobs")
    run(["check", "run.sh", "--isolated"])
    assert not asked
    run(["check", "run.sh"])
    assert asked


@pytest.mark.parametrize(
    ("reads", "decided"),
    [(("own_size",), True), (("own_size", "world_size"), True), (("own_size", "kv_channels"), False)],
)
def test_where_options_may_be_added_a_refusal_rests_on_those_that_are_typed(
    tmp_path: Path, says: Judge, reads: tuple[str, ...], decided: bool
) -> None:
    says(Verdict("refuses", (refusal("own_size % 2", "own size must be even", *reads),)))
    write(tmp_path, {**TREE, "run.sh": "torchrun --nproc-per-node 8 pretrain_gpt.py $SIZES --own-size 3\n"})
    report = preflight.check(tmp_path / "run.sh", select=["own-check"])
    assert bool(own(report)) is decided
    assert report.undecided is not decided
    added = "may be rejected, depending on options that are added when the job starts: own size must be even"
    assert any(u.because.startswith(added) for u in report.unknown) is not decided


def test_several_things_that_decide_are_named_without_a_direction(tmp_path: Path, says: Judge) -> None:
    unless = ("device capability < 10", "environment variable MODE == 1")
    says(Verdict("may refuse", (refusal("own_size % 2", "odd", "own_size", certain=False, unless=unless),)))
    told = "may be rejected, depending on device capability and environment variable MODE: odd"
    assert any(u.because.startswith(told) for u in check(tmp_path, "--own-size 3").unknown)


@pytest.mark.parametrize(
    ("beside", "asked"),
    [
        ({}, False),
        ({"Megatron-LM": "14"}, False),
        ({"Megatron-LM": "12", "MindSpeed": ""}, True),
        ({"Megatron-LM": "14", "MindSpeed": ""}, False),
        ({"Megatron-LM": "12", "Megatron-copy": "12", "MindSpeed": ""}, False),
    ],
    ids=["alone", "half", "all", "another release", "two of them"],
)
def test_a_stack_is_asked_only_where_all_of_it_lies_there(
    tmp_path: Path, says: Judge, beside: dict[str, str], asked: bool
) -> None:
    heard = says(Verdict("accepts"))
    write(
        tmp_path / "MindSpeed-LLM",
        {"mindspeed_llm/__init__.py": "", "mindspeed_llm/training/arguments.py": "", "pretrain_gpt.py": ""},
    )
    for name, minor in beside.items():
        megatron = {**TREE, "megatron/core/package_info.py": INFO.replace("14", minor)}
        write(
            tmp_path / name, megatron if minor else {"mindspeed/__init__.py": "", "mindspeed/megatron_adaptor.py": ""}
        )
    write(tmp_path / "MindSpeed-LLM", {"run.sh": f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES}\n"})
    said = {"program": tmp_path / "MindSpeed-LLM", "target": "mindspeed-llm@2.2.0", "select": ["own-check"]}
    report = preflight.check(tmp_path / "MindSpeed-LLM/run.sh", **said)  # type: ignore[arg-type]
    assert bool(heard) is asked
    assert report.undecided is not asked


def test_what_the_program_replaces_is_noted_at_the_option(tmp_path: Path, says: Judge) -> None:
    changes = (
        Rewrite("own_size", 4, 8, Place(ARGUMENTS, 3, 3)),
        Rewrite("rotary_base", 10000, 10000.0, Place(ARGUMENTS, 4, 4)),  # written in another way
        Rewrite("kv_channels", None, 64, Place(ARGUMENTS, 5, 5)),  # not typed
    )
    says(Verdict("accepts", rewrites=changes))
    (found,) = own(check(tmp_path, "--own-size 4 --rotary-base 10000", select=["own-check"]))
    assert (found.severity, found.span.text, found.upstream) == (Severity.NOTE, "4", f"{ARGUMENTS}:3")
    assert found.message == f"the program sets --own-size to 8 ({ARGUMENTS}:3)"


def test_what_the_program_warns_of_is_noted_at_the_option_it_names(tmp_path: Path, says: Judge) -> None:
    remarks = (
        Remark("WARNING: own_size is slow", Place(ARGUMENTS, 3, 3)),
        Remark("warning: the sky is grey", Place(ARGUMENTS, 4, 4)),  # names no option
        Remark("warning: --kv-channels is odd", Place(ARGUMENTS, 5, 5)),  # not typed
        Remark("Overriding default arguments for own_size:2 with own_size:4", Place(ARGUMENTS, 6, 6)),  # as is meant
    )
    says(Verdict("accepts", remarks=remarks))
    (found,) = own(check(tmp_path, "--own-size 4", select=["own-check"]))
    assert (found.severity, found.span.text, found.upstream) == (Severity.NOTE, "4", f"{ARGUMENTS}:3")
    assert found.message == "the program warns: own_size is slow"


def test_the_script_is_looked_for_in_a_stated_program(tmp_path: Path, says: Judge) -> None:
    """It is started on the job's machine; its own options are read from it, and from no other script."""
    asked = says(Verdict("refuses", (Refusal(Place(ARGUMENTS, 1, 1), "argparse", "unrecognized arguments: --late 3"),)))
    write(tmp_path, {**TREE, "examples/own/train.py": "", "other.py": "parser.add_argument('--late')\n"})
    words = [*SIZES.split(), "--late", "3"]
    said: dict[str, Any] = {"program": tmp_path, "select": ["own-check"]}
    report = preflight.check_command(["/workspace/Megatron-LM/examples/own/train.py", *words], **said)
    assert asked[0][0].entry == str(tmp_path / "examples/own/train.py")
    assert len(own(report)) == 1 and not report.undecided
    assert preflight.check_command(["elsewhere.py", *words], **said).undecided


def test_sizes_that_the_program_reduces_are_not_judged_as_written(tmp_path: Path, says: Judge) -> None:
    """As validate_args of Megatron before 0.9 does."""
    sizes = ("tensor_model_parallel_size", 2, 1), ("pipeline_model_parallel_size", 4, 1)
    typed = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"
    says(Verdict("accepts", rewrites=tuple(Rewrite(*one, Place(ARGUMENTS, 3, 3)) for one in sizes)))
    reduced = check(tmp_path, typed, world_size=1)
    assert not [found for found in reduced.findings if found.severity is Severity.ERROR]
    says(Verdict("may refuse"))
    told = {found.rule for found in check(tmp_path, typed, world_size=1).findings}
    assert not told.isdisjoint(("device-count", "expert-grid"))
