"""Scripts that bash refuses are reported once, at the line; scripts that it accepts are not. Nothing is executed."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clock import takes_at_most
from hypothesis import given, settings
from hypothesis import strategies as st

import preflight
from preflight.loaders.shell import load_script
from preflight.loaders.shell.syntax_errors import EARLY, SYNTAX, refusal
from preflight.source.source_file import Source

SIZES = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 64 --max-position-embeddings 64 "
    "--micro-batch-size 1 --train-iters 10 --lr 1e-4"
)
RUN = f"torchrun --nproc_per_node 8 pretrain_gpt.py {SIZES}\n"
REFUSED = {
    "cat <<A > \ntext\nA\n": (1, "no file follows `>`"),
    "if a; then\n  b\n": (2, "the `if` on line 1 has no `fi`"),
    "for i in 1; do\nif a; then\nb\ndone\n": (4, "this `done` comes before the `fi` of the `if` on line 2"),
    "if a\nb\nfi\n": (3, "this `fi` comes before the `then` of the `if` on line 1"),
    "a\nfi\n": (2, "this `fi` has no matching `if`"),
    "for i in 1 2\necho $i\ndone\n": (2, "unexpected `echo`: the `for` on line 1 expects `do`"),
    "case $x in\na) b ;;\n": (2, "the `case` on line 1 has no `esac`"),
    "a;;\n": (1, "this `;;` has no matching `case`"),
    "f() {\n  a\n": (2, "the `{` on line 1 has no `}`"),
    "(a\n": (1, "the `(` on line 1 has no `)`"),
    "x=$(a\nb\n": (2, "the `$(` on line 1 has no `)`"),
    "x=$(if a)\n": (1, "this `)` comes before the `then` of the `if` on line 1"),
    "x=$((1 + 2)\n": (1, "this `(` is never closed"),
    "echo ${x\n": (1, "this `{` is never closed"),
    "echo `a\n": (1, "this ``` is never closed"),
    'A="\n--x 1\nB="\n--y\n"\nC="x"\n': (6, 'this `"` is never closed, and the one on line 1 is closed only on line 3'),
    "echo 'a\nb\n": (1, "this `'` is never closed"),
    "a=(1 2\nb\n": (1, "this `(` is never closed"),
    "a=(1 (2))\n": (1, "`(` must be quoted in an array"),
    "echo a (b)\n": (1, "`(` must be quoted in a command"),
    "echo (b)\n": (1, "`(` must be quoted in a command"),
    "a\n| b\n": (2, "no command before this `|`"),
    "a && ; b\n": (1, "no command before this `;`"),
    "a |\n": (1, "the script ends where a command should follow"),
    "a >\nb\n": (1, "no file follows `>`"),
    "if a; then\nfi\n": (2, "no command before this `fi`"),
    "for ((i = 0; i < 3)); do a; done\n": (1, "takes three parts"),
    "if a; then\n  b \\\n    --c \\\nfi\nd\n": (4, "the backslash on line 3 makes this `fi` a word of the command"),
    "A=<Specify path>\nb\n": (1, "<Specify path> is not filled in"),
    "cat <<EOF\n`\nEOF\nfi\n": (4, "this `fi` has no matching `if`"),
}
ENDS_EARLY = {
    "if [[ $a == b ]; then\n  c\nfi\n": 1,
    "[[ $a b ]]\nc\n": 1,
    "a\n[[ -n ]]\nc\n": 2,
    "for ((i = 0; i < 3; i++); do\n  a\ndone\n": 1,
}
ACCEPTED = (
    RUN,
    '# don\'t\nA="--x 8"\n',
    "cat <<EOF\nit's a 5\" disk\nEOF\n",
    'NAME="$(basename "$0")"\n',
    "echo 'it'\\''s'\n",
    "if [ $1 = \"x\" ]; then echo $'it\\'s'; fi\n",
    "a \\",
    "echo if then fi do done esac } in\n",
    "cat <<EOF\nnever ended\n",
    "x=$(cat <<EOF\na ( '\nEOF\n)\n",
    "case x in (a|b) c;; esac\ncase x in esac\n",
    "((a = (1 + 2) * 3)) && ((b); c)\n",
    "a=(1 'b c' [3]=d $(e) # f (\n g)\ndeclare -A m=([a]=1)\n",
    "[[ $a =~ ^(x|y)$ && ! ( -f b || c < d ) ]]\n",
    "shopt -s extglob\nrm !(keep|*.log)\n",
    "`if`\n",
    "time\n! \ntime -p a | b\n",
    "coproc X { a; }\nfunction f { a; } >b\n",
    "a 2>&1 >>b <<<c {fd}>d >&- &>e <(f) &\n",
    "a\nexit 0\nnot (a script\n",
    "exec a b\n}\n",
    "#!/usr/bin/env zsh\nfor i (1 2) { echo $i }\n",
    "#!/usr/bin/fish\nif a\n  b\nend\n",
    "a\n{% if x %}\n  b {%- if (c) -%} d {%- endif %}\n{% endif %}\ne --f {{ g(1) }}\n",
    "a\n\0fi\n",
    "$( " * 400,
    "{ " * 400,
    'echo "${a:-' * 400,
)


def script(text: str) -> Source:
    return Source(text, "run.sh")


@pytest.mark.parametrize(("text", "expected"), REFUSED.items())
def test_a_script_that_bash_refuses_is_told_at_its_line(text: str, expected: tuple[int, str]) -> None:
    found = refusal(script(text))
    assert found is not None and found.rule == SYNTAX
    assert (script(text).position(found.start).line, expected[1] in found.message) == (expected[0], True), found


@pytest.mark.parametrize(("text", "line"), ENDS_EARLY.items())
def test_a_wrong_condition_ends_the_script_without_an_error_code(text: str, line: int) -> None:
    found = refusal(script(text))
    assert found is not None and (found.rule, script(text).position(found.start).line) == (EARLY, line)


@pytest.mark.parametrize("text", ACCEPTED)
def test_nothing_else_is_called_refused(text: str) -> None:
    assert refusal(script(text)) is None


def test_carriage_returns_are_told_as_such_alone() -> None:
    text = f"if a; then\n  b\nfi\n{RUN}".replace("\n", "\r\n")
    assert {"carriage-return"} == {
        f.rule for f in preflight.check_text(text, name="run.sh").findings if f.severity.value == "error"
    }


def test_carriage_returns_that_hide_the_run_are_told() -> None:
    """The first word of a list of options is a carriage return, which torchrun takes for the script."""
    lists = 'D="\n  --nproc_per_node 8\n"\nA="\n  --num-layers 2\n"\n'
    for launch in ("torchrun $D pretrain_gpt.py $A\n", "torchrun $D pretrain_gpt.py \\\n  $A \\\n  | tee log\n"):
        report = preflight.check_text((lists + launch).replace("\n", "\r\n"), name="run.sh")
        assert [f.rule for f in report.findings] == ["carriage-return"], launch
    listing = "for f in *; do\n  ls $f\ndone\n".replace("\n", "\r\n")
    assert [f.rule for f in preflight.check_text(listing, name="run.sh").findings] == ["carriage-return"]
    assert not preflight.check_text("ls\r\n", name="run.sh").findings


BLOCKS = "if then else elif fi for while do done case esac in function time { } ( ) [[ ]]"
WORDS = [*BLOCKS.split(), *"` ' \" ; ;; & && | || < > << >& ! $( ${ = \\ # a=( [ ] =~ == -f $' <( EOF".split()]
WORDS += ["<<EOF", "'EOF'", "\n", "\\\n"]
PIECES = [
    "if a; then b; elif c; then d; else e; fi",
    "for i in 1 2; do echo $i; done",
    "for x in a b\n{ echo; }",
    "while read -r l; do echo; done < <(ls)",
    "case $x in a|b) echo;; (c) ls ;& *) ;; esac",
    "f() { echo; } > out",
    "function h\n{ ls; }",
    "a=(1 2 \"x y\" [3]=z $(ls) `ls` # comment (\n 'b)' )",
    'export A=1 B=$(ls) C="x" d=(1)',
    "[[ -f $a && ( $b == c* || ! -n $d ) ]] && echo",
    "[[ $a =~ ^([a-z]|b)+$ ]]",
    "cat <<EOF | grep x\nit's $(ls) \"\nEOF",
    "cat <<-'E O F' <<B\n\ttext ` $(\n\tE O F\nbb\nB",
    "x=$(cat <<EOF\na ( ' \"\nEOF\n)",
    'echo "a $(echo "b $(ls \'c\')") ${x:-"d e"} `ls`" \'q\' $\'r\\\'s\' $"t"',
    "echo ${a[@]:1} ${#b} ${c/x/y} ${d:-$(ls)} $((1+(2*3))) $[1+2]",
    "( (ls); (ls) )",
    "{ ls; ls; } 2>&1 | tee x >& y &> z &>> w",
    'ls 2>/dev/null >&2 <&- {fd}>x <<<"$x" 3<>y >|z',
    "! time -p ls | wc",
    "coproc X { ls; }",
    "ls \\\n  --a=b \\\n  -c # comment",
    "x=$(case a in b) ls;; esac)",
    "cd x && ( ls; false ) || true",
    RUN.rstrip(),
]
SIGNS = re.compile(r"\s+|\w+|<<-?|&&|\|\||;;|\$\(\(?|\$\{|.", re.DOTALL)


def slipped(text: str, draw: random.Random) -> str:
    """The text with one token lost, doubled, added or put instead of another."""
    tokens = SIGNS.findall(text)
    at = draw.randrange(len(tokens))
    how = draw.random()
    tokens[at] = "" if how < 0.5 else tokens[at] * 2 if how < 0.6 else f"{tokens[at]} {draw.choice(WORDS)} "
    return "".join(tokens)


def bash_version() -> tuple[int, ...]:
    if shutil.which("bash") is None:
        return ()
    said = subprocess.run(["bash", "-c", "echo ${BASH_VERSINFO[@]:0:2}"], capture_output=True, text=True, check=True)
    return tuple(map(int, said.stdout.split()))


@pytest.mark.skipif(bash_version() != (5, 2), reason="needs bash 5.2, whose reading this is")
@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), st.integers(0, 2**32))
def test_bash_and_this_reading_agree(pieces: list[str], seed: int) -> None:
    text = slipped("\n".join(pieces), random.Random(seed)) + "\n"
    ran = subprocess.run(
        ["bash", "-n"], input=text, capture_output=True, text=True, errors="replace", cwd="/", env={"LC_ALL": "C.UTF-8"}
    )
    found = refusal(script(text))
    if found is None or found.rule == SYNTAX:
        assert (ran.returncode != 0) == (found is not None), (text, ran.stderr, found)
    if found is not None and ran.returncode:
        lines, place = [int(line) for line in re.findall(r"line (\d+)", ran.stderr)], script(text).position(found.start)
        quoted = f"`{text.splitlines()[place.line - 1]}'" in ran.stderr  # behind its here-documents
        assert quoted or any(abs(place.line - line) <= 3 for line in lines), (text, lines, found)


@pytest.mark.parametrize(
    "text",
    [
        "a " * 60_000,
        "((a) " * 30_000,
        "cat <<A <<B\nx\nA\n" * 8_000,
        'x="$(a "${b}")"\n' * 10_000,
        "a=(b c)\n" * 20_000,
        "case x in a) b;; esac\n" * 8_000,
        "if a; then b; fi\n" * 8_000,
        '"a\\\n' * 30_000,
        "[[ a == b ]] && c\n" * 8_000,
        "<a b> " * 20_000,
        "f() { a; }\n" * 15_000,
    ],
)
def test_long_scripts_take_time_in_proportion(text: str) -> None:
    with takes_at_most(20):
        refusal(script(text))


def ran(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "preflight", *arguments], cwd=folder, capture_output=True, text=True)


def test_a_named_script_is_told_and_fails_though_no_launch_is_left(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"if [ -n $X ]; then\n{RUN}")
    done = ran("check", "run.sh", "-f", "json", folder=tmp_path)
    findings = json.loads(done.stdout)["findings"]
    assert (done.returncode, [(f["rule"], f["line"]) for f in findings]) == (1, [("shell-syntax", 2)])


def test_in_a_folder_only_launches_are_told(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(f'ARGS="\n--num-layers 8 --hidden-size 64 --seq-length 8\n{RUN}')
    (tmp_path / "block.sh").write_text(f"main() {{\n{RUN}")
    (tmp_path / "other.sh").write_text('echo "begin\n')
    done = ran("check", ".", "-f", "json", folder=tmp_path)
    told = {(Path(f["path"]).name, f["rule"], f["line"]) for f in json.loads(done.stdout)["findings"]}
    assert told == {("train.sh", "shell-syntax", 1), ("block.sh", "shell-syntax", 2)}
    assert done.returncode == 1


def test_what_runs_before_bash_stops_is_checked_and_has_no_verdict() -> None:
    report = preflight.check_text(f"{RUN.rstrip()} --global-batch-size 15\nfi\n", name="run.sh", device="H100-80GB")
    assert {"shell-syntax", "batch-not-divisible"} <= {f.rule for f in report.findings}
    assert report.jobs[0].memory.verdict == "unknown"
    assert preflight.estimate_step_time(report.jobs[0]).seconds is None


def test_what_bash_never_reads_makes_no_findings() -> None:
    report = preflight.check_text(f"{RUN}\nfi\n{RUN.rstrip()} --global-batch-size 15\n", name="run.sh")
    assert [f.rule for f in report.findings if f.severity.value == "error"] == ["shell-syntax"]


def test_fix_leaves_a_script_alone_that_bash_refuses(tmp_path: Path) -> None:
    text = f"{RUN.rstrip()} --global-batch-size 15\nfi\n"
    (tmp_path / "run.sh").write_text(text)
    done = ran("fix", "--unsafe", "run.sh", folder=tmp_path)
    assert (tmp_path / "run.sh").read_text() == text
    assert "bash refuses this script, so nothing is written to it" in done.stdout + done.stderr


def test_the_gate_refuses_the_job(tmp_path: Path) -> None:
    text = f"#!/bin/bash\n#SBATCH --nodes=1\nmain() {{\n{RUN}"
    command = [sys.executable, "-m", "preflight", "gate"]
    done = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["verdict"]) == (1, "refuse")
    assert [(f["rule"], f["line"]) for f in verdict["findings"]] == [("shell-syntax", 4)]


def test_the_editor_underlines_the_place(tmp_path: Path) -> None:
    from preflight.lsp.buffers import Buffers

    buffer = Buffers().update((tmp_path / "run.sh").as_uri(), f"main() {{\n{RUN}")
    assert buffer is not None and [(f.rule, f.line) for f in buffer.report.findings] == [("shell-syntax", 2)]


def test_a_script_that_another_one_runs_is_told_as_well(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=1\nbash inner.sh\n" + RUN)
    (tmp_path / "inner.sh").write_text("if a; then\n  b\n")
    done = ran("check", "job.sh", "-f", "json", folder=tmp_path)
    assert ("inner.sh", "shell-syntax") in {(f["path"], f["rule"]) for f in json.loads(done.stdout)["findings"]}


def test_a_block_of_a_guide_is_no_script_that_has_to_be_whole() -> None:
    text = f"# Train\n```bash\n{RUN.rstrip()} --save <path>\nif a; then\n```\n"
    found = preflight.check_text(text, name="guide.md")
    assert found.jobs and not [f for f in found.findings if f.rule == "shell-syntax"]


def test_a_variable_assigned_with_blanks_is_no_slip_of_another() -> None:
    text = (
        "LOG_INTERVAL = 1\nEVAL_INTERVAL=4000\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 "
        "--log-interval $LOG_INTERVAL --eval-interval $EVAL_INTERVAL\n"
    )
    kinds = [problem.kind for document in load_script(Source(text, "run.sh")) for problem in document.problems]
    assert "blanks-at-equals" in kinds
    assert "misspelt-variable" not in kinds
