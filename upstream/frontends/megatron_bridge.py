"""Writes the table of Megatron-Bridge, schemas/frontends/megatron-bridge.json:

python -m upstream.frontends.megatron_bridge BRIDGE MEGATRON

Reads the dataclasses of its configuration, and of the underlying Megatron-LM, from their syntax trees: nothing is
imported.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflight.dialects.megatron.options import table
from preflight.loaders.recipes.recipe_assignments import Effects
from upstream.frontends.rows import SCHEMAS, Row, value_lines

TAG, CORE = "v0.6.0", "core_v0.19.0"
OTHERS = (("v0.5.0", "core_v0.18.0"), ("v0.4.0", "core_v0.16.0"))
"""Other releases whose keys are not reported, with their underlying release of Megatron-LM."""
CONFIG = "src/megatron/bridge/training/config.py"
BELOW = (
    *("megatron/training/config/training_config.py", "megatron/training/config/common_config.py"),
    *("megatron/training/config/resilience_config.py", "megatron/core/optimizer/optimizer_config.py"),
    "megatron/core/distributed/distributed_data_parallel_config.py",
)
NETWORK = {
    "megatron/core/transformer/transformer_config.py": ("TransformerConfig",),
    "megatron/core/model_parallel_config.py": ("ModelParallelConfig",),
}
SECTIONS = {
    **{"train": "TrainingConfig", "validation": "ValidationConfig", "scheduler": "SchedulerConfig"},
    **{"optimizer": "OptimizerConfig", "ddp": "DistributedDataParallelConfig", "checkpoint": "CheckpointConfig"},
    **{"dist": "DistributedInitConfig", "rng": "RNGConfig", "logger": "LoggerConfig", "profiling": "ProfilingConfig"},
    **{"rerun_state_machine": "RerunStateMachineConfig", "straggler": "StragglerDetectionConfig"},
}
"""Sections that always have the same class: only there can a key be unknown."""
RENAMED = {
    **{"model.num_moe_experts": "num_experts", "model.layernorm_epsilon": "norm_epsilon"},
    "model.virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "model.num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "model.num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "ddp.grad_reduce_in_fp32": "accumulate_allreduce_grads_in_fp32",
}
APART = ("cuda_graph", "attention_backend", "fp8", "fp4", "params_dtype", "transformer_impl", "inference_")
"""Fields of the network that other parts of a recipe set, or that have other values than Megatron's options."""
OWN = {
    **{"model.seq_length": ("seq_length", "int"), "model.hf_model_id": ("hf_model_id", "str")},
    **{f"model.cpu_offloading{part}": (f"cpu_offloading{part}", "bool") for part in ("", "_activations", "_weights")},
    **{"dataset.seq_length": ("dataset_seq_length", "int"), "dataset.sequence_length": ("sequence_length", "int")},
    **{f"dataset.{name}": (name, "bool") for name in ("enable_in_batch_packing", "enable_offline_packing")},
    **{"dataset.micro_batch_size": ("dataset_micro_batch_size", "int"), "dataset._target_": ("dataset_target", "str")},
    **{name: (name, "any") for name in ("mixed_precision", "comm_overlap", "peft")},
    **{f"dataset.{name}": (name, "any") for name in ("data_path", "per_dataset_sequences_path")},
    **{f"ft.{name}": (name, "bool") for name in ("enable_ft_package", "calc_ft_timeouts")},
}
LISTS = frozenset(
    [
        *("cp_comm_type", "recompute_modules", "offload_modules"),
        *("hierarchical_context_parallel_sizes", "rampup_batch_size"),
    ]
)
"""Megatron's arguments that are also lists here."""
FIRST = ("cfg", "config", "model_cfg", "model_config", "model", "provider", "recipe_cfg")
"""Names of an argument that is a configuration or a part of one."""
KINDS = {"true": "bool", "false": "bool", "pair": "bool"}


def bridge(text: Callable[[str], str], core: Callable[[str], str]) -> dict[str, Any]:
    """The keys of a configuration: fields of its sections, with Megatron's argument if one has the same name."""
    found: dict[str, ast.ClassDef] = {}
    above: dict[str, ast.ClassDef] = {}
    for path in BELOW:
        found |= _classes(core, path)
    above |= _classes(text, CONFIG)
    names = {section: sorted(set(_fields(above, found, of))) for section, of in SECTIONS.items()}
    network = {name for path, of in NETWORK.items() for one in of for name in _own(_classes(core, path)[one])}
    keys = dict(_rows(names, {name for name in network if not name.startswith(APART)}))
    container = sorted(name for name in _own(above["ConfigContainer"]) if not name.startswith("_"))
    return {"keys": keys, "sections": names, "container": container}


def _rows(names: Mapping[str, Sequence[str]], network: set[str]) -> Iterator[tuple[str, Row]]:
    """A row for each field for which Megatron has an option; the first section with the field counts."""
    below = {flag.dest: flag for flag in table("megatron", "0.19.0").options.values()}
    taken = set(RENAMED.values()) | {dest for dest, _ in OWN.values()}
    for section, fields in {"model": sorted(network), **names}.items():
        for name in fields:
            key = f"{section}.{name}"
            dest = RENAMED.get(key, name)
            flag = below.get(dest)
            if flag is None and section in ("model", "logger", "straggler", "profiling"):
                continue
            if flag is None or (key not in RENAMED and dest in taken):
                yield key, [f"{section}_{name}", "any", None]
                continue
            taken.add(dest)
            listed = [flag.nargs] if flag.nargs is not None and dest in LISTS else []
            yield key, [dest, KINDS.get(flag.kind, flag.kind), None, *listed]
    for key, (dest, kind) in OWN.items():
        yield key, [dest, kind, None]


def _classes(text: Callable[[str], str], path: str) -> dict[str, ast.ClassDef]:
    try:
        tree = ast.parse(text(path))
    except subprocess.CalledProcessError:  # not in this release
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _own(of: ast.ClassDef) -> Iterator[str]:
    """Fields and settable properties."""
    for node in of.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.FunctionDef) and any("setter" in ast.unparse(one) for one in node.decorator_list):
            yield node.name


def _fields(above: Mapping[str, ast.ClassDef], below: Mapping[str, ast.ClassDef], name: str) -> Iterator[str]:
    """The fields of a class of Bridge and of its bases."""
    yield from (one for of in (above.get(name), below.get(name)) if of is not None for one in _own(of))
    if name == "OptimizerConfig":
        yield from (one for key, of in below.items() if key.endswith(name) for one in _own(of))


def helpers(show: Callable[..., str]) -> dict[str, list[str] | None]:
    """The functions to which recipes pass their configuration, and the keys that each may set; None if any may be
    set."""
    functions: dict[str, ast.FunctionDef] = {}
    twice: set[str] = set()
    for path in show("ls-tree", "-r", "--name-only", TAG, "src/megatron/bridge").splitlines():
        if path.endswith(".py"):
            for node in ast.parse(show("show", f"{TAG}:{path}")).body:
                if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg in FIRST:
                    known = functions.setdefault(node.name, node)
                    twice |= {node.name} if ast.dump(known) != ast.dump(node) else set()
    effects = Effects(functions, {})
    made = {name: effects.of(name) for name in sorted(functions) if name not in twice}
    return {name: sorted(map(".".join, found)) for name, found in made.items() if found is not None}


PROVIDERS = ("v0.3.1", "v0.4.2", "v0.5.1", TAG)
"""Releases whose providers of models are read."""


def providers(show: Callable[..., str]) -> set[str]:
    """The fields of the classes that provide models, each a network of Megatron with further fields."""
    found: set[str] = set()
    for tag in PROVIDERS:
        for path in show("ls-tree", "-r", "--name-only", tag, "src/megatron/bridge/models").splitlines():
            if path.endswith(".py") and "provider" in path.rpartition("/")[2]:
                of_file = _classes(lambda name, at=tag: show("show", f"{at}:{name}"), path)  # type: ignore[misc]
                found |= {name for one in of_file.values() for name in _own(one) if not name.startswith("_")}
    return found


def texts(clone: Path, megatron: Path) -> Mapping[Path, str]:
    """The files with the table and with the helpers of recipes, from the clones of Megatron-Bridge and Megatron-LM."""

    def git(place: Path, *command: str) -> str:
        words = ["git", "-C", str(place), *command]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def at(tag: str, core: str) -> dict[str, Any]:
        return bridge(
            lambda path: git(clone, "show", f"{tag}:{path}"), lambda path: git(megatron, "show", f"{core}:{path}")
        )

    found = {"release": TAG.lstrip("v"), "commit": git(clone, "rev-parse", f"{TAG}^{{commit}}")[:7]} | at(TAG, CORE)
    other = [f"{section}.{name}" for one in OTHERS for section, all_ in at(*one)["sections"].items() for name in all_]
    own = {f"{section}.{name}" for section, names in found["sections"].items() for name in names}
    helped = {
        "release": found["release"],
        "package": "megatron.bridge",
        "helpers": helpers(lambda *command: git(clone, *command)),
    }
    network = {key.partition(".")[2] for key in found["keys"] if key.startswith("model.")}
    found["providers"] = sorted(providers(lambda *command: git(clone, *command)) - network)
    found["other releases"] = sorted({*other} - own)
    return {
        SCHEMAS.parent / folder / "megatron-bridge.json": _lines(table_)
        for folder, table_ in (("frontends", found), ("recipes", helped))
    }


def _lines(table_: Mapping[str, Any]) -> str:
    lines = (f"  {json.dumps(key)}: {value_lines(value)}" for key, value in table_.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(words: Sequence[str]) -> int:
    """The clones of Megatron-Bridge and Megatron-LM."""
    for path, text in texts(*map(Path, words)).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
