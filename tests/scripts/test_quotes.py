"""A quote that nobody closes is told at its place; quotes that only look so are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from preflight.loaders import load
from preflight.source.text import InputError, Source

RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n"
UNCLOSED = {
    'A=1\nARGS="\n  --num-layers 8 \\\n  --bf16\n': (2, 6),
    "A=1\nARGS='--num-layers 8\n": (2, 6),
    'echo "begin\n': (1, 6),
}
CLOSED = (
    'ARGS="--num-layers 8"\n',
    '# don\'t\nARGS="--num-layers 8"\n',
    "cat <<EOF\nit's a 5\" disk\nEOF\n",
    'NAME="$(basename "$0")"\n',
    "echo 'it'\\''s'\n",
    'echo "a \\" b"\n',
    'echo "a\nb\nc"\n',
    "if [ $1 = \"x\" ]; then echo $'it\\'s'; fi\n",
)


@pytest.mark.parametrize(("text", "place"), UNCLOSED.items())
def test_a_quote_that_nobody_closes_is_refused_where_it_opens(text, place):
    with pytest.raises(InputError, match="never closed") as refused:
        load(Source(f"{text}{RUN}", "run.sh"))
    assert (refused.value.line, refused.value.column) == place


@pytest.mark.parametrize("text", CLOSED)
def test_quotes_that_are_closed_are_read(text):
    assert load(Source(f"{text}{RUN}", "run.sh"))[-1].launch is not None


def test_a_backslash_at_the_end_is_no_open_quote():
    assert load(Source(f'ARGS="--bf16"\n{RUN.rstrip()} \\\n', "run.sh"))[-1].launch is not None


def test_in_a_folder_only_launches_are_told(tmp_path):
    (tmp_path / "train.sh").write_text(f'ARGS="\n--num-layers 8 --hidden-size 64 --seq-length 8\n{RUN}')
    (tmp_path / "other.sh").write_text('echo "begin\n')
    ran = subprocess.run(
        [sys.executable, "-m", "preflight", "check", "."], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.stderr.startswith("preflight: train.sh:1:6: is no shell script")
    assert "other.sh" not in ran.stderr
    assert ran.returncode == 2
