"""The real parser and validators of one checkout of Megatron-LM as a judge: cases as JSON lines in, verdicts out.

python -m upstream.inside.validator ROOT < CASES > VERDICTS

These parts run: the parser, `validate_args`, the model configuration, the calculator of micro-batches, with simulated
devices, processes and packages. These do not: process groups, optimizer, scheduler, the model.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import io
import json
import logging
import os
import sys
import traceback
from typing import Any

from upstream.inside.megatron_parser import OWN, STANDINS, arguments_in
from upstream.inside.standins import install, load

BATCHES = ("megatron.core.num_microbatches_calculator", "megatron.training.microbatches", "megatron.microbatches")
"""The name of the module in newer and older releases."""
TOKENIZER = {"tokenizer_type": "GPT2BPETokenizer"}
VOCABULARY = 50304
"""Rows of the embedding if a case does not state them, because tokenizer files are not available."""
FUSED = (
    (
        "megatron.core.models.common.embeddings.rope_utils",
        ("fused_apply_rotary_pos_emb", "fused_apply_rotary_pos_emb_thd"),
    ),
    (
        "megatron.core.transformer.moe.moe_utils",
        (
            "fused_permute",
            "fused_permute_with_probs",
            "fused_sort_chunks_by_index",
            "fused_sort_chunks_by_index_with_probs",
            "fused_unpermute",
            "fused_permute_and_pad_with_probs",
            "fused_topk_with_score_function",
        ),
    ),
    (
        "megatron.core.extensions.transformer_engine",
        ("fused_permute", "fused_permute_with_probs", "fused_sort_chunks_by_index", "fused_unpermute"),
    ),
)
"""Kernels that a validator requires, and that a training machine has."""
THERE = ("HAVE_APPLY_ROPE_FUSION",)
"""The names under which releases up to 0.10 record that such kernels are available."""


class Judge:
    """The validators of one checkout, imported once."""

    def __init__(self, root: str) -> None:
        self.root = root
        sys.path.insert(0, root)
        sys.argv = ["pretrain_gpt.py"]
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
        finder = install([name for name in STANDINS if name != "modelopt" and importlib.util.find_spec(name) is None])
        self.arguments = load(arguments_in(root), OWN, finder)
        _machine()
        for module, names in FUSED:
            with contextlib.suppress(Exception):
                loaded = importlib.import_module(module)
                for name in names:
                    setattr(loaded, name, getattr(loaded, name, None) or _nothing)
                for name in THERE:
                    if hasattr(loaded, name):
                        setattr(loaded, name, True)
        _build_once(self.arguments)
        self.batches: Any = None
        for name in BATCHES:
            with contextlib.suppress(ImportError):
                self.batches = self.batches or importlib.import_module(name)
        logging.disable(logging.CRITICAL)
        self.environment = dict(os.environ)

    def __call__(self, case: dict[str, Any]) -> dict[str, Any]:
        """The verdict on a case: accepted, or the stage and place of the refusal."""
        os.environ.clear()
        given = {name: str(value) for name, value in (case.get("env") or {}).items()}
        os.environ.update({**self.environment, **given, "WORLD_SIZE": str(case["world_size"]), "RANK": "0"})
        sys.argv = ["pretrain_gpt.py", *case["args"]]
        stage, said = "parse", io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                for stage, _ in self._stages():  # noqa: B007
                    pass
            return {"id": case["id"], "accept": True}
        except BaseException as error:
            where = "argparse" if stage == "parse" and isinstance(error, SystemExit) else self._where(error)
            return {
                "id": case["id"],
                "accept": False,
                "stage": stage,
                "where": where,
                "exception": type(error).__name__,
            }

    def _stages(self) -> Any:
        """Run one stage after another, recording its name before it begins."""
        yield "parse", None
        if hasattr(self.arguments, "validate_args"):
            args = copy.deepcopy(self.arguments.parse_args())
            yield "validate", None
            args = self.arguments.validate_args(args, dict(TOKENIZER)) or args
        else:  # releases before 3.0 parse and check at once
            args = self.arguments.parse_args(defaults=dict(TOKENIZER))
        args.padded_vocab_size = getattr(args, "padded_vocab_size", None) or VOCABULARY
        if hasattr(self.arguments, "core_transformer_config_from_args"):
            yield "config", None
            self.arguments.core_transformer_config_from_args(args)
        yield "microbatches", None
        if self.batches is not None:
            self._calculate(args)

    def _calculate(self, args: Any) -> None:
        self.batches._GLOBAL_NUM_MICROBATCHES_CALCULATOR = None
        build = (
            getattr(self.batches, "_build_num_microbatches_calculator", None)
            or self.batches.build_num_microbatches_calculator
        )
        known = {"rank": 0, "args": args}
        build(**{name: known.get(name, getattr(args, name, None)) for name in inspect.signature(build).parameters})

    def _where(self, error: BaseException) -> str | None:
        """The last place in the checkout that an exception passed through."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(self.root)]
        return f"{os.path.relpath(frames[-1].filename, self.root)}:{frames[-1].lineno}" if frames else None


def _build_once(arguments: Any) -> None:
    """Make a release build its parser only once, because that is the slowest part."""
    build = getattr(arguments, "add_megatron_arguments", None)
    if build is not None:
        built: list[Any] = []

        def once(parser: Any) -> Any:
            built[:] = built or [build(parser)]
            return built[0]

        arguments.add_megatron_arguments = once


def _nothing(*arguments: Any, **named: Any) -> None:
    """A stand-in for a kernel."""


class _Device:
    """The GPU of the cases."""

    major, minor, name, total_memory, multi_processor_count = 9, 0, "H100", 80 << 30, 132


def _machine() -> None:
    """A node with eight GPUs and the packages of a training container."""
    cuda: Any = importlib.import_module("torch").cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 8
    cuda.current_device = lambda: 0
    cuda.get_device_capability = lambda *given: (9, 0)
    cuda.get_device_properties = lambda *given: _Device
    with contextlib.suppress(ImportError):
        from packaging.version import Version

        utils: Any = importlib.import_module("megatron.core.utils")
        utils._te_version, utils._fa_version = Version("2.17.1"), Version("2.8.1")


def main(root: str) -> None:
    """Judge each case on stdin."""
    out, sys.stdout = sys.stdout, sys.stderr
    cases = sys.stdin.readlines()
    judge = Judge(root)
    for line in cases:
        print(json.dumps(judge(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
