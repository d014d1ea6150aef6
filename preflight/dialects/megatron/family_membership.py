"""Whether a document is a launch or a config of the Megatron family."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from preflight.dialects.megatron.framework_version import ENTRIES, FRAMEWORKS
from preflight.dialects.megatron.parser_input import MODEL_ARGS, script
from preflight.dialects.undescribed_programs import undescribed
from preflight.loaders.document import Document, Launch, Node
from preflight.loaders.entry_scripts import PYTHON_NAME, command_name
from preflight.run.request import Request
from preflight.source.lazy_regex import lazy_pattern

TELLING = frozenset(
    [
        "--num-layers",
        "--hidden-size",
        "--num-attention-heads",
        "--micro-batch-size",
        "--global-batch-size",
        "--tensor-model-parallel-size",
        "--pipeline-model-parallel-size",
        "--seq-length",
        "--train-iters",
        "--max-position-embeddings",
        "--lr-decay-style",
        "--use-distributed-optimizer",
        "--num-experts",
        "--expert-model-parallel-size",
    ]
)
"""Options that distinguish a launch of this family from others."""

MOST_OTHERS = 4
"""The maximum number of other options per distinctive one, for a script that is identified only by its name."""

UNKNOWN_ENTRY = "$"
"""The beginning of an entry script's name that only the caller knows."""

OTHER_PARSERS = lazy_pattern(
    r"(train_fsdp2|evaluation|inference|rlhf_gpt|convert_\w*|checkpoint|preprocess_\w*|merge_\w*|split_\w*|convert|"
    r"estimat\w*|report_\w+|test_\w+)\.py$"
)

CONVERTERS = "tools/checkpoint/"
"""The folder of scripts that convert checkpoints, in Megatron-LM and its forks."""
OF_THE_FAMILY = lazy_pattern(r"(?i)megatron|mindspeed|modellink|mcore")
MOST_ENTRY = 200_000
"""Characters of an entry script that are read."""


def claims(document: Document, request: Request) -> bool:
    """Whether a document is a launch or config of the Megatron family; files of other tools are left to them."""
    if request.target is not None and request.target.framework not in FRAMEWORKS:
        return False
    if document.launch is not None:
        program = undescribed(document.launch)
        if program is not None and (request.target is None or request.target.framework not in program.over):
            return False
        if request.target is None and (is_deepspeed(document.launch) or is_underscored(document.launch)):
            return False
        if is_given_a_command(document.launch):
            return False
        words = [word.text for word in document.launch.words]
        if not claims_entry(document.launch.entry.text, words, request.target is not None):
            return False
        return request.target is not None or not parses_itself(document, document.launch)
    return document.tree is not None and (is_model_args(document.tree) or is_core_config(document.tree))


def is_deepspeed(launch: Launch) -> bool:
    """Whether a launch belongs to Megatron-DeepSpeed, a fork whose scripts and options have the same names as
    Megatron's and different meanings."""
    return launch.launcher == "deepspeed" or any((word.text or "").startswith("--deepspeed") for word in launch.words)


def is_underscored(launch: Launch) -> bool:
    """Whether a launch spells every distinctive option with underscores, as a fork like Megatron-LLM does, or, with
    none of those, every option of several words; a single one is a typo, all of them mean a different parser."""
    options = {(word.text or "").partition("=")[0] for word in launch.words}
    if options & TELLING:
        return False
    apart = {option for option in options if option.startswith("--") and "_" in option}
    if len({option for option in apart if option.replace("_", "-") in TELLING}) > 2:
        return True
    return len(apart) > 2 and not any("-" in option[2:] for option in options if option.startswith("--"))


def is_given_a_command(launch: Launch) -> bool:
    """Whether an unrelated script gets a whole command such as `python3 train.py --x` as arguments, to record or run
    it: the options after it do not belong to the script."""
    if script(launch.entry.text or "").rpartition("/")[2] in ENTRIES:
        return False
    pairs = zip(launch.words, launch.words[1:], strict=False)
    return any(PYTHON_NAME.fullmatch(command_name(one)) and command_name(two).endswith(".py") for one, two in pairs)


def parses_itself(document: Document, launch: Launch) -> bool:
    """Whether the started script is available and parses its options itself, without a framework of this family."""
    if script(launch.entry.text or "").rpartition("/")[2] in ENTRIES:
        return False
    from preflight.program.launched_source import locate

    entry = locate(document, os.path.isdir).entry
    try:
        with open(entry, encoding="utf-8", errors="replace") as file:
            text = file.read(MOST_ENTRY)
    except (OSError, ValueError):
        return False
    return "ArgumentParser(" in text and ".parse_args(" in text and not OF_THE_FAMILY.search(text)


def claims_entry(entry: str | None, words: Iterable[str | None], asked: bool) -> bool:
    """Decide on a launch by the name of its entry script and by distinctive options."""
    name = (UNKNOWN_ENTRY if entry is None else script(entry)).rpartition("/")[2]
    if OTHER_PARSERS.search(name) or (entry is not None and CONVERTERS in entry):
        return False
    if name in ENTRIES:
        return True
    options = [text.partition("=")[0] for word in words if (text := word or "").startswith("--")]
    told = sum(option in TELLING for option in options)
    if not name.endswith(".py") and not name.startswith(UNKNOWN_ENTRY):
        return False
    named = re.match(r"(pretrain|posttrain|finetune|train)_", name) is not None
    return told >= (1 if asked or (named and told * MOST_OTHERS >= len(options)) else 4)


def is_model_args(tree: Node) -> bool:
    """A functional-test model_config.yaml: MODEL_ARGS maps options to values."""
    node = tree.get(MODEL_ARGS)
    return node is not None and any(isinstance(e.key.value, str) and e.key.value.startswith("--") for e in node.entries)


def is_core_config(tree: Node) -> bool:
    """The form that --yaml-cfg reads: mappings language_model and model_parallel with Megatron's own names."""
    model, parallel = tree.get("language_model"), tree.get("model_parallel")
    if model is None or parallel is None or model.kind != "mapping" or parallel.kind != "mapping":
        return False
    return parallel.get("tensor_model_parallel_size") is not None and model.get("hidden_size") is not None
