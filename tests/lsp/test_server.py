"""The language server during typing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp", reason="needs pytest-lsp and pygls")

from lsprotocol import types
from typist import EXAMPLES, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = """\
TP=3
LAYERS=32
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers $LAYERS --hidden-size 4096 --num-attention-heads 32 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --train-iters 10 \\
  --tensor-model-parallel-size $TP --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
  --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data \\
  --log-interval 1
"""


def document(uri: str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri)


def at(text: str, word: str, behind: bool = False) -> types.Position:
    """The place of a word in a text, or the one behind it."""
    offset = text.index(word) + (len(word) if behind else 0)
    return types.Position(text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1))


def edited(text: str, edits: list[types.TextEdit]) -> str:
    """A text after the edits of a code action, as an editor applies them."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        start, end = (starts[p.line] + p.character for p in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


async def test_findings_stay_while_a_key_is_half_typed(editor: Editor, tmp_path: Path) -> None:
    text = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text()
    uri = await editor.open(tmp_path / "run.yaml", text)
    before = {one.code for one in editor.found[uri]}
    found = await editor.write(uri, text.replace("runner_config:\n", "new_ke\nrunner_config:\n", 1))
    assert before <= {one.code for one in found}
    (error,) = [one for one in found if one.code is None]
    line = text[: text.index("runner_config:\n")].count("\n")
    assert error.range.start.line == line and f"missing ':' on line {line + 1}" in error.message


async def test_a_burst_of_changes_is_checked_once(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    for value in (5, 6, 7):
        editor.version += 1
        named = types.VersionedTextDocumentIdentifier(editor.version, uri)
        text = types.TextDocumentContentChangeWholeDocument(SCRIPT.replace("TP=3", f"TP={value}"))
        editor.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [text]))
    assert await editor.write(uri, SCRIPT.replace("TP=3", "TP=4")) == []


async def test_a_buffer_without_a_file_is_checked_and_fixed(editor: Editor) -> None:
    text = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text()
    uri, editor.version = "untitled:Untitled-1", editor.version + 1
    opened = types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", editor.version, text))
    found = await editor._told(uri, lambda: editor.client.text_document_did_open(opened))
    (lr,) = [one for one in found if one.code == "class-argument-refused"]
    context = types.CodeActionContext([lr])
    asked = types.CodeActionParams(document(uri), lr.range, context)
    actions = await editor.client.text_document_code_action_async(asked)
    first = actions[0]
    assert uri in first.edit.changes
    assert {"Suppress class-argument-refused here, with a reason", "Explain class-argument-refused"} <= {
        one.title for one in actions
    }


async def test_a_finding_is_suppressed_with_a_reason(
    editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits: list[types.ApplyWorkspaceEditParams] = []

    @editor.client.feature(types.WORKSPACE_APPLY_EDIT)
    def applied(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        edits.append(params)
        return types.ApplyWorkspaceEditResult(True)

    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    (found,) = editor.found[uri]
    command = types.ExecuteCommandParams("preflight.suppress", [uri, found.code, found.range.start.line + 1])
    await editor.client.workspace_execute_command_async(command)
    (edit,) = edits[0].edit.changes[uri]
    assert edit.new_text == f"# preflight: ignore[{found.code}] TODO: reason\n"
    assert await editor.write(uri, edited(SCRIPT, [edit])) == []


async def test_hover_and_completion_say_what_an_option_does(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    asked = types.HoverParams(document(uri), at(SCRIPT, "--recompute-method"))
    shown = await editor.client.text_document_hover_async(asked)
    assert "Full recomputation: uniform groups of layers" in shown.contents.value
    begun = SCRIPT.replace("--mock-data", "--sequence-par")
    await editor.write(uri, begun)
    where = types.CompletionParams(document(uri), at(begun, "--sequence-par", behind=True))
    items = (await editor.client.text_document_completion_async(where)).items
    assert any("Splits norms and dropout" in (one.detail or "") for one in items)


async def test_faults_are_told_where_they_are_and_go_when_they_are_mended(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    (found,) = editor.found[uri]
    assert (found.code, found.severity) == ("device-count", types.DiagnosticSeverity.Error)
    assert found.range.start == at(SCRIPT, "3") and found.source == "preflight"
    assert await editor.write(uri, SCRIPT.replace("TP=3", "TP=4")) == []


async def test_a_text_that_cannot_be_read_is_told_at_its_place(editor: Editor, tmp_path: Path) -> None:
    text = (EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text()
    uri = await editor.open(tmp_path / "run.yaml", text)
    broken = text.replace("lr_schedule:", "lr_schedule: [")
    (found,) = [one for one in await editor.write(uri, broken) if one.code is None]
    assert found.severity == types.DiagnosticSeverity.Error and found.range.start.line > 20
    assert len(await editor.write(uri, text)) > 1


async def test_a_file_of_others_has_no_diagnostics(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "notes.yaml", "title: no training\n")
    assert editor.found[uri] == []


async def test_a_base_config_counts_as_it_is_in_the_editor(editor: Editor, tmp_path: Path) -> None:
    base = (EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text()
    (tmp_path / "base.yaml").write_text(base)
    top = "base_config: ./base.yaml\nparallel_config:\n  pipeline_stage: 1\nrunner_config:\n  epochs: 1\n"
    (tmp_path / "run.yaml").write_text(top)
    one = await editor.open(tmp_path / "base.yaml")
    before = await editor.open(tmp_path / "run.yaml")
    assert any("learning_rate is the string" in f.message for f in editor.found[before])
    await editor.write(one, base.replace("learning_rate: 3e-4", "learning_rate: 3.0e-4"))
    assert not any("learning_rate is the string" in f.message for f in await editor.write(before, top + "# a\n"))


async def test_a_quick_fix_mends_the_finding(editor: Editor, tmp_path: Path) -> None:
    text = (EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text()
    uri = await editor.open(tmp_path / "run.yaml", text)
    finding = next(one for one in editor.found[uri] if one.code == "class-argument-refused")
    asked = types.CodeActionParams(document(uri), finding.range, types.CodeActionContext([finding]))
    first, *more = await editor.client.text_document_code_action_async(asked) or ()
    assert isinstance(first, types.CodeAction) and first.title == "Write 3.0e-4" and first.is_preferred
    assert first.edit is not None and first.edit.changes is not None
    new = edited(text, list(first.edit.changes[uri]))
    assert new == text.replace("learning_rate: 3e-4", "learning_rate: 3.0e-4")
    assert all(one.code != "class-argument-refused" for one in await editor.write(uri, new))
    assert [one.title for one in more] == [
        "Suppress class-argument-refused here, with a reason",
        "Explain class-argument-refused",
        "Fix all that preflight can fix safely",
    ]


async def test_a_finding_that_the_editor_names_has_actions_away_from_the_cursor(editor: Editor, tmp_path: Path) -> None:
    text = (EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text()
    uri = await editor.open(tmp_path / "run.yaml", text)
    finding = next(one for one in editor.found[uri] if one.code == "class-argument-refused")
    cursor = types.Position(finding.range.start.line, 0)
    asked = types.CodeActionParams(document(uri), types.Range(cursor, cursor), types.CodeActionContext([finding]))
    actions = await editor.client.text_document_code_action_async(asked) or ()
    assert actions[0].title == "Write 3.0e-4"


async def test_all_safe_fixes_at_once(editor: Editor, tmp_path: Path) -> None:
    text = (EXAMPLES / "megatron/model_config.yaml").read_text()
    uri = await editor.open(tmp_path / "model_config.yaml", text)
    whole = types.Range(types.Position(0, 0), types.Position(0, 0))
    only = types.CodeActionContext([], only=[types.CodeActionKind.SourceFixAll])
    (every,) = await editor.client.text_document_code_action_async(types.CodeActionParams(document(uri), whole, only))
    new = edited(text, list(every.edit.changes[uri]))  # type: ignore[union-attr]
    assert "--recompute-method: uniform" in new
    left = await editor.write(uri, new)
    assert "megatron/recompute-full-without-method" not in [one.code for one in left]


async def test_every_way_out_is_an_action(editor: Editor) -> None:
    uri = await editor.open(EXAMPLES / "mindspeed/pretrain_7b_2d.sh")
    finding = next(one for one in editor.found[uri] if one.code == "mindspeed/tp-2d-sequence-parallel")
    asked = types.CodeActionParams(document(uri), finding.range, types.CodeActionContext([finding]))
    titles = [one.title for one in await editor.client.text_document_code_action_async(asked) or ()]
    assert titles[:2] == ["Remove --sequence-parallel", "Go back to one-dimensional tensor parallelism"]


async def test_hover_says_the_value_its_default_and_the_rule(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    place = at(SCRIPT, "--tensor-model-parallel-size")
    found = await editor.client.text_document_hover_async(types.HoverParams(document(uri), place))
    assert found is not None and isinstance(found.contents, types.MarkupContent)
    assert "**--tensor-model-parallel-size** = `3`" in found.contents.value and "default `1`" in found.contents.value
    mended = SCRIPT.replace("TP=3", "TP=4")
    await editor.write(uri, mended)
    place = at(mended, "--micro-batch-size")
    found = await editor.client.text_document_hover_async(types.HoverParams(document(uri), place))
    assert found is not None and isinstance(found.contents, types.MarkupContent)
    assert "memory of the fullest stage" in found.contents.value and "with `2`" in found.contents.value
    nothing = types.HoverParams(document(uri), types.Position(0, 0))
    assert "device-count" not in str(await editor.client.text_document_hover_async(nothing))


async def test_a_variable_is_found_where_it_is_set(editor: Editor, tmp_path: Path) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT)
    place = at(SCRIPT, "$LAYERS")
    found = await editor.client.text_document_definition_async(types.DefinitionParams(document(uri), place))
    assert isinstance(found, types.Location) and found.uri == uri and found.range.start == at(SCRIPT, "32")


async def test_a_base_config_is_a_link(editor: Editor, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "mindformers/run_llama2_7b.yaml", tmp_path / "base.yaml")
    text = "base_config: ./base.yaml\nrunner_config:\n  epochs: 1\nparallel_config:\n  data_parallel: 1\n"
    uri = await editor.open(tmp_path / "run.yaml", text)
    links = await editor.client.text_document_document_link_async(types.DocumentLinkParams(document(uri)))
    assert [(one.target, one.range.start) for one in links or ()] == [
        ((tmp_path / "base.yaml").as_uri(), types.Position(0, 13))
    ]


async def test_the_lens_says_layout_and_memory(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text('device = "h100-80gb"\n')
    uri = await editor.open(tmp_path / "run.sh", SCRIPT.replace("TP=3", "TP=4"))
    lenses = await editor.client.text_document_code_lens_async(types.CodeLensParams(document(uri)))
    (command,) = [one.command for one in lenses or () if one.command]
    assert command.title.startswith("TP 4 · PP 1 · DP 2 · ") and command.title.endswith("GiB, fits")
    asked = types.ExecuteCommandParams(command.command, command.arguments)
    await editor.client.workspace_execute_command_async(asked)
    (told,) = editor.client.messages
    assert told.message.startswith("GiB per stage: ") and "the device has " in told.message


@pytest.mark.parametrize(
    ("old", "new", "offered", "missing"),
    [
        ("--bf16", "--recompute-gran", "--recompute-granularity", "--num-layers"),
        ("--recompute-granularity full", "--recompute-granularity ", "selective", "--num-layers"),
    ],
)
async def test_options_and_their_values_are_completed(
    editor: Editor, tmp_path: Path, old: str, new: str, offered: str, missing: str
) -> None:
    uri = await editor.open(tmp_path / "run.sh", SCRIPT.replace("TP=3", "TP=4"))
    text = SCRIPT.replace("TP=3", "TP=4").replace(old, new)
    await editor.write(uri, text)
    asked = types.CompletionParams(document(uri), at(text, new, behind=True))
    found = await editor.client.text_document_completion_async(asked)
    labels = [item.label for item in found.items]  # type: ignore[union-attr]
    assert offered in labels and missing not in labels


@pytest.mark.parametrize(
    ("behind", "typed", "offered", "missing"),
    [
        ("parallel_config:\n", "  con", "context_parallel", "data_parallel"),
        ("optimizer:\n", "  use", "use_fused", "params"),
        ("parallel_config:\n", "  vocab_emb_dp: ", "True", "context_parallel"),
        ("select_recompute:\n", "    ", "feed_forward\\.mul", "context_parallel"),
    ],
)
async def test_keys_values_and_patterns_are_completed(
    editor: Editor, tmp_path: Path, behind: str, typed: str, offered: str, missing: str
) -> None:
    text = (EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text()
    uri = await editor.open(tmp_path / "run.yaml", text)
    new = text.replace(behind, f"{behind}{typed}\n", 1)
    await editor.write(uri, new)
    asked = types.CompletionParams(document(uri), at(new, f"{behind}{typed}", behind=True))
    found = await editor.client.text_document_completion_async(asked)
    labels = [item.label for item in found.items]  # type: ignore[union-attr]
    assert offered in labels and missing not in labels


async def test_columns_are_counted_as_the_editor_counts_them(editor: Editor, tmp_path: Path) -> None:
    text = SCRIPT.replace("TP=3", "A='𝔸'; TP=3")
    uri = await editor.open(tmp_path / "run.sh", text)
    found = next(one for one in editor.found[uri] if one.code == "device-count")
    assert found.range.start == types.Position(0, len("A='__'; TP="))
