"""From a document to the words for the parser, the environment of the job, and the keys of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from preflight.loaders.document import Document, Entry, Node, Unknown, Word
from preflight.run.value import BY_CALLER, Origin, Value
from preflight.source.finding import Key
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import dataclass, field
from preflight.source.source_file import Span

WHOLE = frozenset(["--num-layers", "--hidden-size", "--num-attention-heads"])
"""Keys that mark a file as a complete description of a run: the sizes of the model."""

ELSEWHERE = frozenset(["--use-checkpoint-args", "--yaml-cfg"])
"""Options that mean that the sizes are in a checkpoint or in another file."""

MODEL_ARGS, ENV_VARS = "MODEL_ARGS", "ENV_VARS"
RUNNER_ENVIRONMENT = {"NCCL_PROTO": "simple", "NCCL_ALGO": "Ring", "NCCL_COLLNET_ENABLE": "0", "NCCL_NVLS_ENABLE": "0"}
"""Values that Megatron's own test runner sets if a model_config.yaml does not."""

OTHER_FAMILIES = frozenset(["bert", "t5", "mimo", "multimodal-llava", "nemo", "ray"])
"""Folders of functional tests whose entry scripts have additional options."""

_GENERATES = frozenset("eval evaluate evaluation generate generation infer inference".split())
"""Words in the names of scripts that generate text or evaluate: tools/run_text_generation_server.py (Megatron-LM
core_v0.16.0), evaluation.py (MindSpeed-LLM v2.3.0)."""
_ALSO_TRAINS = frozenset("train training pretrain posttrain finetune sft rl rlhf grpo ppo dpo".split())
_MODULE = lazy_pattern(r"examples(\.\w+)+")
_VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)\}?")


@dataclass(frozen=True)
class Spelled:
    """The words of a run. key: the key of a setting from its option. closed: no other environment variable is set.

    plain: a YAML file of a pretraining run, whose entry script adds no options.
    given: words that callers of the script may replace with options.
    """

    words: tuple[Word, ...]
    key: Callable[[str], Key]
    environment: Mapping[str, Value] = field(default_factory=dict)
    entry: str = ""
    open: bool = False
    closed: bool = False
    yaml: bool = False
    plain: bool = True
    given: tuple[Word, ...] = ()


class Inherited(Mapping[str, Value]):
    """The environment of a job that inherits variables from its caller: unset variables are unknown, not absent."""

    def __init__(self, known: Mapping[str, Value]) -> None:
        self.known = known

    def __getitem__(self, name: str) -> Value:
        found = self.known.get(name)
        return found if found is not None else Value(Unknown(f"${name} may be set by the caller"), Origin.UNKNOWN)

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


def spell(document: Document, stated: Mapping[str, str], *, old_runner: bool = False, foreign: bool = False) -> Spelled:
    """The words of a command, a script's launch or a functional-test YAML.

    stated: the environment given by the caller. old_runner: values are split at every space, as in Megatron's test
    runner before 0.13. foreign: a third-party runner omits false values, passes the rest to a shell, and adds options.
    """
    known = spell_environment(stated)
    if document.launch is not None:
        launch = document.launch
        known.update(
            {
                name: Value(word.value, Origin.UNKNOWN if word.text is None else Origin.WRITTEN)
                for name, word in launch.environment.items()
            }
        )
        entry = entry_path(document).rpartition("/")[2]
        closed = document.kind == "command"
        return Spelled(launch.words, lambda option: (option,), known, entry, launch.open, closed, given=launch.assumed)
    assert document.tree is not None
    for name, text in RUNNER_ENVIRONMENT.items():
        known.setdefault(name, Value(text))
    variables = document.tree.get(ENV_VARS)
    for entry_ in _live(variables):
        value = _text(entry_.value, stated)
        known[str(entry_.key.value)] = Value(
            value if value is not None else Unknown(entry_.value.span.text), Origin.WRITTEN
        )
    entries = [
        one
        for one in _live(document.tree.get(MODEL_ARGS))
        if not foreign or one.value.span.text.strip("\"'") != "false"
    ]
    words = tuple(word for entry_ in entries for word in _entry_words(entry_, stated, old_runner))
    words = tuple(map(_unquoted, words)) if foreign else words
    mode = _mode(document)
    open_ = foreign or _partial(document, words)
    return Spelled(words, lambda option: (MODEL_ARGS, option), known, mode, open=open_, yaml=True, plain=mode == "")


def entry_path(document: Document) -> str:
    """The path of the entry script as far as it is known: the part after an unknown folder."""
    if document.launch is None:
        return ""
    word = document.launch.entry
    if word.text is not None:
        return script(word.text)
    last = word.pieces[-1].text if word.pieces else None
    return last.partition("/")[2] if last is not None and last.startswith("/") else ""


def script(entry: str) -> str:
    """The path of an entry script; Megatron's examples are also started as modules (-m examples.mimo.pretrain_mimo)."""
    return entry.replace(".", "/") + ".py" if _MODULE.fullmatch(entry) and not entry.endswith(".py") else entry


def not_only_generates(entry: str) -> bool:
    """Whether an entry script may train: False for the names of scripts that generate text or evaluate."""
    words = frozenset(entry.removesuffix(".py").lower().replace("-", "_").split("_"))
    return words.isdisjoint(_GENERATES) or not words.isdisjoint(_ALSO_TRAINS)


def _unquoted(word: Word) -> Word:
    """A word after shell expansion."""
    text = word.text or ""
    if not re.search(r"[\\\s\"'$`]", text):
        return word
    inner = re.fullmatch(r"'([^']*)'|\"([^\"$`\\]*)\"", text)
    if inner is None:
        return word._replace(text=None, because=f"a shell reads {text}", editable=False)
    return word._replace(text=inner[1] if inner[1] is not None else inner[2], editable=False)


def spell_environment(stated: Mapping[str, str]) -> dict[str, Value]:
    """Environment variables that the caller stated, as values."""
    return {name: Value(text, Origin.STATED, note=BY_CALLER) for name, text in stated.items()}


def _mode(document: Document) -> str:
    """The kind of a functional test: "inference", "rl", the folder of another family; "" for GPT pretraining."""
    mode = document.tree.get("MODE") if document.tree is not None else None
    if mode is not None and mode.value != "pretraining":
        return str(mode.value)
    folders = document.source.path.parts[-3:-2] if document.source.path is not None else ()
    return next((folder for folder in folders if folder in OTHER_FAMILIES), "")


def _partial(document: Document, words: Iterable[Word]) -> bool:
    """Whether a file is one part of a test: its name is not that of a whole config, and required keys are missing."""
    name = document.source.path.name if document.source.path is not None else ""
    part = not {word.text for word in words} >= WHOLE | {"--micro-batch-size"}
    return part and name not in ("", "model_config.yaml", "model_config.yml")


def has_sizes(words: Iterable[Word]) -> bool:
    """Whether a command states the sizes of the model, or where they are; otherwise they come from added options."""
    texts = {(word.text or "").partition("=")[0].replace("--encoder-num", "--num") for word in words}
    return texts >= WHOLE or not texts.isdisjoint(ELSEWHERE)


def _live(node: Node | None) -> list[Entry]:
    return [entry for entry in node.entries if not entry.shadowed] if node is not None else []


def _text(node: Node, stated: Mapping[str, str]) -> str | None:
    """The text that the test runner reads from a YAML scalar; None if it contains an unknown variable."""
    text = node.span.text if node.style == "" else str(node.value)
    if node.kind != "scalar":
        text = node.span.text
    if not all(match[1] in stated for match in _VARIABLE.finditer(text)):
        return None
    return _VARIABLE.sub(lambda match: stated[match[1]], text).strip()


def _entry_words(entry: Entry, stated: Mapping[str, str], old_runner: bool) -> Iterator[Word]:
    """The words of one "--option: value" entry: true is a bare option, "[a b]" several words, "" nothing at all."""
    flag = Word(str(entry.key.value), entry.key.span)
    span = entry.value.span
    text = _text(entry.value, stated)
    if text is None:
        yield from (flag, Word(None, span, because=span.text.strip("\"'"), editable=False))
    elif "\\" in text:
        yield from (
            flag,
            Word(None, span, because="releases of the test runner read backslashes in different ways", editable=False),
        )
    elif text == "true":
        yield flag
    elif text != "":
        yield flag
        yield from _values(text, span, entry.value.style == "", old_runner)


def _values(text: str, span: Span, plain: bool, old_runner: bool) -> Iterator[Word]:
    """The words of one value: several if it is a bracketed list, or if an old runner splits it at spaces."""
    if old_runner and len(text.split()) > 1:
        yield from (Word(part, span, editable=False) for part in text.split())
    elif not old_runner and re.fullmatch(r"\[[^\]]+\]", text):
        yield from (Word(part, span, editable=False) for part in text[1:-1].split())
    else:
        yield Word(text, span, editable=plain)


def split_by_old_runners(tree: Node) -> dict[int, str]:
    """Options of a test with several values in one text: older runners split them into words."""
    node = tree.get(MODEL_ARGS)
    because = "releases of the test runner before 0.13 split it into several words"
    spaced = [
        entry
        for entry in (node.entries if node is not None else ())
        if isinstance(entry.value.value, str) and len(entry.value.value.split()) > 1
    ]
    return {node.span.start: because for entry in spaced for node in (entry.key, entry.value)}
