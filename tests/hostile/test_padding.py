"""A script is checked regardless of any amount of comments and blanks."""

from __future__ import annotations

import pytest
from bounded import COMMAND
from clock import takes_at_most

from preflight.api import check_text
from preflight.checking.engine import Report
from preflight.loaders import load
from preflight.loaders.shell.bash_parser import without_padding
from preflight.loaders.text_limits import MAX_PADDED, MAX_SCRIPT
from preflight.source.source_file import InputError, Source

pytestmark = pytest.mark.slow

FAULTY = f"{COMMAND} --tensor-model-parallel-size 3\n"
PADDING = {
    "comments": "# a comment of a length that is usual\n" * 40_000,
    "quotes in comments": "# it's `a` \"b $(c\n" * 80_000,
    "short comments": "#\n" * 600_000,
    "one comment": "# " + "x" * 1_200_000 + "\n",
    "blank lines": "\n" * 1_200_000,
    "lines of blanks": "  \n" * 400_000,
    "comments and blank lines": "# a\n\n" * 240_000,
    "marks": "# preflight: ignore[no-such-rule] why\n" * 30_000,
}


def check(text: str) -> Report:
    report = check_text(text, name="run.sh", world_size=8)
    assert not report.crashes, report.crashes[0].trace
    return report


def found(text: str) -> list[tuple[str, str, int]]:
    return [
        (finding.rule, finding.message, finding.line)
        for finding in check(text).findings
        if finding.rule != "unknown-rule"
    ]


@pytest.mark.parametrize("name", PADDING)
def test_padding_hides_no_finding_and_moves_no_line(name: str) -> None:
    padding = PADDING[name]
    lines = padding.count("\n")
    usual = found(FAULTY)
    assert any(rule == "device-count" for rule, _, _ in usual)
    with takes_at_most(20):
        assert found(FAULTY + padding)[: len(usual)] == usual
        assert found("true\n" + padding + FAULTY)[-len(usual) :] == [
            (rule, message, line + 1 + lines) for rule, message, line in usual
        ]


@pytest.mark.parametrize(
    "text",
    [
        f"A='\n# not a comment\n'\n{FAULTY}",
        f'A="\n# not \\" a comment\n"\n{FAULTY}',
        f"cat <<EOF\n# it's no comment\nEOF\n{FAULTY}",
        f"cat <<-'A B'\n\t# it's no comment\n\tA B\n{FAULTY}",
        f"B=$((1<<2)) # a comment\n{FAULTY}",
        f"A=$'\\'\n# x\n'\n{FAULTY}",
        f"A=(\n  --bf16  # why\n  # and why not\n  --fp16\n)\n{FAULTY.strip()} ${{A[@]}}\n",
        f"echo ${{#A}} $# a#b \\# # it's a comment\n{FAULTY}",
        FAULTY.replace(" --tensor", " \\\n# lost\n  --tensor"),
    ],
)
def test_what_is_in_quotations_stays(text: str) -> None:
    bare = without_padding(text, MAX_SCRIPT)
    assert bare is not None and len(bare) == len(text)
    assert found(text + PADDING["comments"])[:1] == found(text)[:1]
    assert [document.launch for document in load(Source(bare, "run.sh"))] != [None]
    assert ("not" in bare) == ("not" in text.replace("# and why not", "")) and ("it's no" in bare) == (
        "it's no" in text
    )


def test_a_suppression_between_the_padding_counts() -> None:
    quiet = f"# preflight: ignore[device-count] a test\n{FAULTY}"
    assert "device-count" in {rule for rule, _, _ in found(PADDING["comments"] + FAULTY)}
    assert "device-count" not in {rule for rule, _, _ in found(PADDING["comments"] + quiet)}


@pytest.mark.parametrize(
    "text", ["true\n" * 50_000, "echo '" + "x" * MAX_SCRIPT + "'\n", ": <<EOF\n" + "# a\n" * 60_000 + "EOF\n"]
)
def test_what_is_no_padding_counts(text: str) -> None:
    with pytest.raises(InputError, match="more than 200,000 characters, the limit for a script"):
        load(Source(text + FAULTY, "run.sh"))


def test_padding_beyond_what_slurm_takes_is_refused() -> None:
    with pytest.raises(InputError, match="characters; a config or script may have"):
        load(Source(FAULTY + "#" * MAX_PADDED, "run.sh"))


@pytest.mark.parametrize("unit", ["(", "((a", "<< ", "<<'", "<<a\n", "<<<", "$'", '"\\', " #", "`#", "<<-\t", "'\n#"])
def test_the_search_for_padding_ends_in_time(unit: str) -> None:
    text = unit * (MAX_PADDED // len(unit))
    with takes_at_most(10):
        without_padding(text, MAX_SCRIPT)
