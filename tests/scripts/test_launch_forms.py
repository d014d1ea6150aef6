"""Launches are found in every supported form; text that is not run is ignored; unsupported forms are documented. The
gate reads in the same way, and refuses the faulty ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from house import each
from launch_forms import QUIET, READ, UNSEEN

from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, judge
from preflight.loaders.document import Document
from preflight.loaders.shell import load_script
from preflight.loaders.shell_edit import splices
from preflight.plugins.manager import load
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Source, splice

pytestmark = pytest.mark.slow

OPTIONS = "--num-layers 2 --lr 1"
SIZES = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 3 --seq-length 64 --max-position-embeddings 64 "
    "--micro-batch-size 1 --lr 1e-4 --train-iters 1"
)
"""Options that Megatron refuses on any number of devices: 64 is not a multiple of 3."""
PATIENT = Policies(20.0, advice=0.0)


def filled(form: str, options: str = OPTIONS) -> str:
    entry = f"pretrain_gpt.py {options}"
    launch = f"torchrun --nproc_per_node 8 {entry}"
    return form.replace("@L", launch).replace("@E", entry).replace("@O", options)


def runs(text: str) -> list[Document]:
    return [document for document in load_script(Source(text, "run.sh")) if document.launch is not None]


def told(document: Document) -> tuple[str, list[str | None], list[object]]:
    launch = document.launch
    assert launch is not None
    counts = [getattr(count.value, "because", count.value) for count in launch.world]
    return (launch.entry.text or "").removesuffix(".py"), [word.text for word in launch.words], counts


def test_there_are_row_fourteen_and_forty_more() -> None:
    assert len(READ) > 150 and len(QUIET) > 50 and len(UNSEEN) > 20


@each(READ, str)
def test_it_is_read_as_a_run(form: str) -> None:
    found = [told(document) for document in runs(filled(form))]
    assert [(words, counts) for _, words, counts in found] == [(OPTIONS.split(), READ[form])]
    assert found[0][0].endswith("pretrain_gpt")


@each(READ, str)
def test_each_word_stands_where_it_is_typed(form: str) -> None:
    (document,) = runs(filled(form))
    assert document.launch is not None
    for word in document.launch.words:
        assert word.span.source is document.source
        assert word.span.text == word.text or not word.editable


@each([form for form in READ if not form.startswith("printf -v")], str)
def test_a_value_is_changed_where_it_is_typed(form: str) -> None:
    (document,) = runs(filled(form))
    text = splice(document.source.text, splices(document, (Edit("set", ("--num-layers",), 4),)))
    assert [told(document) for document in runs(text)] == [
        (told(document)[0], ["--num-layers", "4", "--lr", "1"], told(document)[2])
    ]
    assert len(text) == len(document.source.text)


def test_a_value_without_a_place_of_its_own_is_not_changed() -> None:
    (document,) = runs(filled("printf -v C '%s' '@L'\neval $C\n"))
    with pytest.raises(CannotEdit):
        splices(document, (Edit("set", ("--num-layers",), 4),))


def started_by_deepspeed(form: str) -> bool:
    """A launch by deepspeed is taken for one of Megatron-DeepSpeed, which the gate leaves alone."""
    return form.partition(" ")[0] in ("deepspeed", "ds") or "deepspeed.launcher" in form


@pytest.mark.parametrize("first", range(8))
def test_the_gate_refuses_it_at_its_line(first: int) -> None:
    each([form for form in READ if not started_by_deepspeed(form)][first::8], str)(refused_at_its_line)()


def refused_at_its_line(form: str) -> None:
    text = filled(form, SIZES)
    verdict = judge(Submission(text.encode()), load(), PATIENT)
    found = [finding for finding in verdict.report.findings if finding.rule == "megatron/hidden-over-heads"]
    assert verdict.word == "refuse" and len(found) == 1, verdict.as_dict()
    if not form.startswith("printf -v"):
        assert "--num-attention-heads 3" in text.splitlines()[found[0].line - 1]


@each(QUIET, str)
def test_a_text_that_nothing_runs_is_no_run(form: str) -> None:
    text = filled(form)
    assert [told(document) for document in runs(text) if document.launch and document.launch.launcher != "bash"] == []
    assert judge(Submission(text.encode()), load(), PATIENT).word == "unknown"


@each(UNSEEN, str)
def test_what_is_not_seen_is_named(form: str) -> None:
    assert judge(Submission(filled(form).encode()), load(), PATIENT).word == "unknown"
    page = (Path(__file__).parents[2] / "docs/gate.md").read_text(encoding="utf-8")
    assert UNSEEN[form] in page.partition("### What it does not cover")[2].replace("\n  ", " ")
