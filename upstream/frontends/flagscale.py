"""The options of FlagScale: the changes of its patch to Megatron's parser, and the keys of its runner."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from preflight.dialects.megatron.options import Flag, table
from preflight.program.checkout.parser_options import OwnOption, own_options
from upstream.frontends.rows import row

FLAGSCALE = "flagscale/backends/Megatron-LM/megatron/training/arguments.py.patch"
"""FlagScale's changes to Megatron's parser."""
ENTRIES = ("train_llava.py", "train_llava_onevision.py", "train_qwen2_5_vl.py")
"""Its entry scripts with additional options."""
TOKENIZERS = (
    *("AquilaTokenizerFS", "HFTokenizerFS", "HFTokenizersTokenizerFS", "Llama3TokenizerFS", "QwenTokenizerFS"),
    *("Qwen2TokenizerFS", "Qwen2VLTokenizer"),
)
"""The choices that FlagScale adds to --tokenizer-type."""
RUNNER = {
    "experiment.task.entrypoint": ["entrypoint", "str", None],
    "experiment.runner.hostfile": ["hostfile", "str", None],
    "experiment.runner.nnodes": ["runner_nodes", "scalar", None],
    "experiment.runner.nproc_per_node": ["runner_processes", "int", None],
    "experiment.runner.per_node_task": ["per_node_task", "bool", None],
    "experiment.runner.type": ["runner_type", "str", None],
    "experiment.exp_dir": ["exp_dir", "str", None],
    "experiment.envs.CUDA_VISIBLE_DEVICES": ["visible_devices", "scalar", None],
    "action": ["action", "str", None],
}
"""Keys of FlagScale's runner; the others become options of Megatron."""


def flagscale(text: Callable[[str], str]) -> dict[str, Any]:
    """The options that FlagScale's patch adds to Megatron's parser or changes there, and those of its entry scripts.

    The patched commit is called 0.14.0rc1: its parser is that of 0.13 with one more option.
    """
    try:
        calls = "\n".join(_changed_calls(text(FLAGSCALE)))
    except subprocess.CalledProcessError:  # an earlier release has the whole file
        calls = text(FLAGSCALE.removesuffix(".patch"))
    entries = (text(f"flagscale/train/{entry}") for entry in ENTRIES)
    below = table("megatron", "0.13.0").options
    added = [one for code in (*entries, calls) for one in own_options(code)]
    own = {one.option: row(one) for one in added if _differs(one, below.get(one.option))}
    kind = below["--tokenizer-type"]
    own["--tokenizer-type"] = [kind.dest, kind.kind, None, None, [*(kind.choices or ()), *TOKENIZERS]]
    own["--load-main-params-from-ckpt"] = ["load_main_params_from_ckpt", "true", None]
    keys = {**RUNNER, **own}
    return {"takes megatron": True, "keys in files": True, "keys": keys, "all keys": [*below, *keys]}


def _differs(one: OwnOption, flag: Flag | None) -> bool:
    """Whether an option is missing in Megatron, or takes other values there."""
    return flag is None or (one.choices is not None and tuple(one.choices) != flag.choices)


def _changed_calls(patch: str) -> Iterator[str]:
    """The calls that add an option and of which a patch adds or changes a line."""
    for hunk in re.split(r"^@@.*$", patch, flags=re.MULTILINE)[1:]:
        lines = [line for line in hunk.splitlines() if line[:1] in (" ", "+")]
        for at, line in enumerate(lines):
            if "group.add_argument(" in line:
                call = next((lines[at:end] for end in range(at + 1, len(lines) + 1) if _whole(lines[at:end])), [])
                if any(one[0] == "+" for one in call):
                    yield "\n".join(one[1:] for one in call).strip()


def _whole(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(line[1:] for line in lines).strip())
    except SyntaxError:
        return False
    return True
