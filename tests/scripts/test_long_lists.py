"""Long lists of data files built line by line: the launch after them is read."""

from __future__ import annotations

from pathlib import Path

import preflight

SIZES = (
    "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024"
    " --micro-batch-size 1 --train-iters 9 --lr 1e-4 --tokenizer-type NullTokenizer --vocab-size 100"
)


def script(files: int, more: str = "") -> str:
    appended = "".join(
        f'DATA="${{DATA}} {1000 + at} ${{DIR}}/train/part_{at:04}_text_document"\n' for at in range(files)
    )
    before = 'DIR=/home/shared/corpus/v3.0.0/training_tokenized\nDATA=""\n'
    return f"{before}{appended}torchrun pretrain_gpt.py {SIZES} {more}\n"


def test_a_launch_behind_hundreds_of_data_files_is_read(tmp_path: Path) -> None:
    run = tmp_path / "run.sh"
    run.write_text(script(300, "--data-path ${DATA} --split 1,0,0"), encoding="utf-8")
    report = preflight.check(run)
    assert not report.skipped
    found = report.jobs[0].arguments.get("data_path").raw
    assert found[:2] == ["1000", "/home/shared/corpus/v3.0.0/training_tokenized/train/part_0000_text_document"]
    assert len(found) == 600


def test_options_that_are_put_together_keep_their_places(tmp_path: Path) -> None:
    words = SIZES.split()
    lines = "".join(f'ARGS="${{ARGS}} {a} {b}"\n' for a, b in zip(words[::2], words[1::2], strict=True))
    run = tmp_path / "run.sh"
    text = f'ARGS=""\n{lines * 3}torchrun pretrain_gpt.py $ARGS --mock-data --tensor-model-parallel-size 3\n'
    run.write_text(text, encoding="utf-8")
    places = {f.span.line for f in preflight.check(run).findings if f.rule == "repeated-flag"}
    assert all(line <= text.count("\n") for line in places)
    value = preflight.check(run).jobs[0].arguments.get("num_layers")
    assert value.setting is not None
    assert value.setting.span.text == "4"
