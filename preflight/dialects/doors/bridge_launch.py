"""Launches of Megatron-Bridge: options of its own runner, a file of overrides, and key=value behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from preflight.dialects import Surroundings
from preflight.dialects.doors.dotted import Dotted
from preflight.loaders.composition.overrides import Override, apply, read_override
from preflight.loaders.composition.values import Composed
from preflight.loaders.composition.yaml_values import omegaconf_values
from preflight.loaders.document import Document, Node, Word
from preflight.loaders.yaml_scalars import MAX_DIGITS

RECIPES = "run_recipe.py"
"""Bridge's own runner."""
FILES = ("--config-file", "--config_file")
_KEYS = {
    ("--max_steps", "-ms"): "train.train_iters",
    ("--global_batch_size", "-gb"): "train.global_batch_size",
    ("--micro_batch_size", "-mb"): "train.micro_batch_size",
    ("--seq_length", "-sl"): "dataset.seq_length",
    ("--tensor_model_parallel_size", "-tp"): "model.tensor_model_parallel_size",
    ("--pipeline_model_parallel_size", "-pp"): "model.pipeline_model_parallel_size",
    ("--context_parallel_size", "-cp"): "model.context_parallel_size",
    ("--virtual_pipeline_model_parallel_size", "-vp"): "model.virtual_pipeline_model_parallel_size",
    ("--expert_model_parallel_size", "-ep"): "model.expert_model_parallel_size",
    ("--expert_tensor_parallel_size", "-etp"): "model.expert_tensor_parallel_size",
    ("--lr",): "optimizer.lr",
    ("--min_lr",): "optimizer.min_lr",
    ("--warmup_iters",): "scheduler.lr_warmup_iters",
    ("--save_interval",): "checkpoint.save_interval",
}
OPTIONS = {option: key for options, key in _KEYS.items() for option in options}
"""Options of the runner that stand for a key (scripts/training/run_recipe.py:116-134 of 0.6.0)."""


def launched(document: Document, surroundings: Surroundings) -> Dotted:
    """The overrides of a launch over its file; the recipe beneath is not read."""
    assert document.launch is not None
    words = document.launch.words
    file = _file(document, words, surroundings)
    own = (document.launch.entry.text or "").rpartition("/")[2] == RECIPES
    behind = [one for word in words if (one := read_override(word)) is not None and "." in one.key]
    overrides = (*(_options(words) if own else ()), *behind)
    tree = omegaconf_values(file.tree) if file is not None and file.tree is not None else _empty(document)
    tree, _ = apply(tree, overrides, complete=False)
    documents = (document,) if file is None else (document, file)
    return Dotted(Composed(tree), documents, overrides)


def _empty(document: Document) -> Node:
    return Node("mapping", (), document.start)


def _file(document: Document, words: Sequence[Word], surroundings: Surroundings) -> Document | None:
    """The file of overrides that a launch names, where it can be read."""
    texts = [word.text or "" for word in words]
    for at, text in enumerate(texts):
        option, equal, value = text.partition("=")
        if option in FILES:
            path = value if equal else "".join(texts[at + 1 : at + 2])
            found = surroundings.read(document, path) if path else None
            mapping = found is not None and found.tree is not None and found.tree.kind == "mapping"
            return found if mapping else None
    return None


def _options(words: Sequence[Word]) -> Iterator[Override]:
    """The options that stand for keys, as overrides; what is typed behind them as key=value wins."""
    for word, value in pairwise(words):
        key = OPTIONS.get(word.text or "")
        if key is not None:
            yield Override("set", key, word, word.span, Node("scalar", _number(value), value.span), value)


def _number(word: Word) -> object:
    """A value of one of these options; all of them are numbers."""
    text = word.text
    if text is None or len(text) > MAX_DIGITS:
        return word.value
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
