"""Writes the checkpoints of `megatron-X.tar.xz` and the verdicts on loading them, with Megatron-LM's own code.

    python write_saved.py CHECKOUT RUNS.json OUT.json

CHECKOUT is a tree of Megatron-LM at the release's tag; torch for CPU, numpy, pyyaml, psutil, regex, six, packaging and
einops are needed. RUNS.json is a list of {"do": "save" or "load", "folder": …, "words": [options]}, OUT.json gets the
same with "died", "" for a run that saved or loaded. Tests do not need this program: they read its output.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import traceback
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

ABSENT = ("triton", "wandb", "one_logger_utils", "datasets")
"""Packages that are imported and not needed here."""
FILLED = ("tensor", "empty", "zeros", "ones", "rand", "randn", "full", "arange")


class Empty(types.ModuleType):
    """A module with whatever is asked of it: classes, and functions that do nothing."""

    __path__ = ()
    __version__ = "9.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__init__": lambda *a, **k: None}) if name[:1].isupper() else MagicMock(name=name)
        setattr(self, name, made)
        return made


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for packages imported at the top and never used."""

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def on_the_cpu(torch: Any) -> None:
    """Stand-ins for code that needs a device."""
    cuda = torch.cuda
    for name in ("set_device", "synchronize", "manual_seed", "set_rng_state"):
        setattr(cuda, name, lambda *a, **k: None)
    cuda.current_device, cuda.device_count, cuda.is_available = (lambda: "cpu"), (lambda: 8), (lambda: False)
    cuda.get_rng_state = lambda *a: torch.get_rng_state()
    cuda.get_device_capability = lambda *a: (9, 0)
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *a, **k: self
    for name in FILLED:
        setattr(torch, name, _placed(getattr(torch, name)))
    move = torch.Tensor.to
    torch.Tensor.to = lambda self, *a, **k: move(
        self, *("cpu" if isinstance(one, str) and one.startswith("cuda") else one for one in a), **k
    )


def _placed(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*given: Any, **named: Any) -> Any:
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = "cpu"
        return make(*given, **named)

    return made


def prepare(torch: Any, release: str) -> None:
    """One process, its groups, and names that newer releases of torch have changed."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29611"))
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    import megatron.core.utils as core_utils
    from megatron.core import parallel_state, rerun_state_machine
    from megatron.core.dist_checkpointing.strategies import filesystem_async
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from packaging.version import Version
    from torch.distributed.checkpoint import filesystem

    core_utils._te_version = Version("1.0")
    parallel_state.initialize_model_parallel(1, 1)
    model_parallel_cuda_manual_seed(1)
    rerun_state_machine.initialize_rerun_state_machine()
    if release.startswith("0.12"):
        write, form = filesystem._write_item, filesystem.SerializationFormat.TORCH_SAVE
        filesystem_async._write_item = lambda *a, **k: write(*a, **k, serialization_format=form)


def network(args: Any, release: str) -> Any:
    """The network that options describe, of Megatron's local layers."""
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.training.arguments import core_transformer_config_from_args

    config = core_transformer_config_from_args(args)
    config.use_cpu_initialization, config.gradient_accumulation_fusion = True, False
    norm = {"normalization": args.normalization}
    spec = get_gpt_layer_local_spec(args.num_experts, args.moe_grouped_gemm, args.qk_layernorm, **norm)
    if args.num_experts:
        spec = get_gpt_decoder_block_spec(config, use_transformer_engine=False, **norm)
    made = GPTModel(
        config,
        spec,
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        rotary_percent=args.rotary_percent,
    )
    for parameter in made.parameters():
        parameter.data.zero_()
    return made


def sharded(made: Any) -> None:
    """Parameters as torch's sharded tensors, as Megatron FSDP has them, on a mesh of one process."""
    import torch
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (1,))
    for module in made.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, torch.nn.Parameter(distribute_tensor(parameter.data, mesh, [Shard(0)])))


def run(one: dict[str, Any], release: str) -> None:
    """Save or load, as `pretrain_gpt.py` with these options does."""
    from megatron.training import arguments, checkpointing, global_vars

    form = one["words"][one["words"].index("--ckpt-format") + 1]
    words = [
        "torch_dist" if word in ("torch_dcp", "zarr", "fsdp_dtensor") else word for word in one["words"]
    ]  # else only with FSDP
    sys.argv = ["pretrain_gpt.py", *words]
    global_vars._GLOBAL_ARGS = None
    args = arguments.parse_args()
    args.world_size, args.rank, args.local_rank = 1, 0, 0
    arguments.validate_args(args)
    args.ckpt_format = "torch_dist" if form == "zarr" else form
    if form == "zarr":  # since 0.11 `save_checkpoint` ends at an assertion: only callers of the core library write it
        from megatron.core.dist_checkpointing.serialization import get_default_save_sharded_strategy

        checkpointing.get_default_save_sharded_strategy = lambda *a: get_default_save_sharded_strategy("zarr", 1)
    global_vars.set_args(args)
    more = int(tuple(map(int, release.split(".")[:2])) < (0, 17))  # NullTokenizer had one more
    multiple = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    args.padded_vocab_size = -(-(args.vocab_size + more) // multiple) * multiple
    made = network(args, release)
    if form == "fsdp_dtensor":
        sharded(made)
    if one["do"] == "save":
        Path(one["folder"]).mkdir(parents=True)
        args.save, args.consumed_train_samples = one["folder"], 100 * args.global_batch_size
        checkpointing.save_checkpoint(100, [made], None, None, 0)
    else:
        args.load, args.consumed_train_samples = one["folder"], 0
        checkpointing.update_num_microbatches = lambda *a, **k: None
        checkpointing.load_checkpoint([made], None, None)


def main(checkout: str, runs: str, out: str) -> None:
    sys.meta_path.insert(0, Absent())
    sys.path.insert(0, checkout)
    if not hasattr(typing, "override"):
        typing.override = lambda method: method  # type: ignore[attr-defined]
    import torch

    on_the_cpu(torch)
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    from megatron.core import package_info

    release = package_info.__version__
    prepare(torch, release)
    found = []
    for one in json.loads(Path(runs).read_text()):
        died = ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run(one, release)
        except BaseException as error:
            died = "".join(traceback.format_exception_only(error)).strip()[:300]
        found.append({**one, "died": died})
    Path(out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
