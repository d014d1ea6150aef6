"""Writes the refusals of the code of front ends whose keys are options, schemas/frontends/refusals/<front end>.json:

python -m upstream.frontends.option_refusals NAME CLONE [WHEELS]

Each row: file:line of the newest release that has it, the conditions over the options, and the releases. Refusals that
rules report are left out. Read from syntax trees: nothing is imported or run.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end import data
from preflight.run.version_ranges import numbers
from upstream.frontends.option_releases import CHECKS, Clone
from upstream.frontends.refusals import Place, Reader, Refusal, at
from upstream.frontends.refusals_of_release import cited
from upstream.frontends.rows import SCHEMAS

OPTIONS = "slime/utils/arguments.py"
SGLANG, MODEL = "slime/backends/sglang_utils/arguments.py", "slime/backends/megatron_utils/model.py"
ARGS: Mapping[str, Any] = {"args": ""}
SWIFT = "swift/megatron/arguments/megatron_args.py"
MIXIN, ARGUMENTS = "RLHFMegatronArgumentsMixin", "MegatronArguments"
SELF: Mapping[str, Any] = {"self": ""}
GRPO = ["==", at("rlhf_type"), "grpo"]
DISTILLS = ["==", at("rlhf_type"), "gkd"]
TEACHER = ["or", ["!=", at("teacher_model"), None], ["!=", at("teacher_model_server"), None]]
BRIDGE = "src/megatron/bridge/training/config.py"
PARTS = {
    **{"ddp": "DistributedDataParallelConfig", "optimizer": "OptimizerConfig", "scheduler": "SchedulerConfig"},
    **{"train": "TrainingConfig", "checkpoint": "CheckpointConfig", "logger": "LoggerConfig"},
    **{"profiling": "ProfilingConfig", "tensor_inspect": "TensorInspectConfig"},
    "nvrx_straggler": "NVRxStragglerDetectionConfig",
}
"""The sections of ConfigContainer that have one class each."""
CHECKING = (
    *("_validate_and_apply_deterministic_mode", "_validate_and_apply_megatron_fsdp_configs", "validate"),
    *("_validate_cp_comm_type", "_validate_training_scheduler_compatibility"),
)
FSDP = ["or", ["get", "dist.use_megatron_fsdp", False], ["get", "ddp.use_megatron_fsdp", False]]
CALLED_IF = {
    "_validate_and_apply_deterministic_mode": (at("model.deterministic_mode"),),
    "_validate_and_apply_megatron_fsdp_configs": (FSDP,),
}
"""When ConfigContainer.validate calls the others."""
PLACES: Mapping[str, tuple[Place, ...]] = {
    "megatron-bridge": (
        *(Place(BRIDGE, f"{owner}.finalize", {"self": section}) for section, owner in PARTS.items()),
        *(Place(BRIDGE, f"ConfigContainer.{name}", SELF, CALLED_IF.get(name, ())) for name in CHECKING),
    ),
    "slime": (
        Place(OPTIONS, "slime_validate_args", ARGS),
        Place(SGLANG, "validate_args", ARGS),
        Place("slime/backends/megatron_utils/arguments.py", "validate_args", ARGS),
        Place(MODEL, "setup_model_and_optimizer", {**ARGS, "args.load": ["?"]}),
        Place("train_async.py", "train", ARGS, (["==", at("entry"), "train_async.py"],)),
    ),
    "ms-swift": (
        Place(SWIFT, f"{MIXIN}.__post_init__", SELF),
        Place(SWIFT, f"{MIXIN}._init_grpo", SELF, (GRPO,)),
        Place(SWIFT, f"{MIXIN}._check_teacher", SELF, (["or", DISTILLS, ["and", GRPO, TEACHER]],)),
        Place(SWIFT, f"{MIXIN}._check_opd_rl", SELF, (GRPO, TEACHER)),
        Place(SWIFT, "MegatronTunerMixin.__post_init__", SELF),
        *(
            Place(SWIFT, f"{ARGUMENTS}.{name}", SELF)
            for name in (
                *("__post_init__", "_check_mcore_bridge", "_check_bridge_backend", "_check_megatron_fsdp"),
                *("_check_muon", "_init_weigh_decay", "_init_vpp_size"),
            )
        ),
        Place(
            "swift/megatron/trainers/base.py",
            "BaseMegatronTrainer.get_optimizer_and_scheduler",
            {"self.args": "", "mcore_016": True},
        ),
        Place(
            "swift/megatron/trainers/rollout_mixin.py",
            "MegatronRolloutMixin._init_rollout_engine",
            {"self.args": "", "is_torch_npu_available()": False, "is_vllm_available()": True, "self.world_size": ["?"]},
            (["or", GRPO, DISTILLS], ["not", ["get", "use_ray", False]]),
        ),
        Place("swift/megatron/arguments/sft_args.py", "MegatronSftArguments.__post_init__", SELF),
        Place("swift/arguments/base_args/base_args.py", "BaseArguments._init_lazy_tokenize", SELF),
    ),
}
"""The functions that receive the options of a run before its first training step."""

BY_OTHER_RULES = frozenset(
    [
        (OPTIONS, "args.colocate"),
        (OPTIONS, "not args.update_weight_local_checkpoint_dir"),
        (SWIFT, "not self.overlap_param_gather"),
    ]
)
"""The file and the condition of refusals that a rule reports together with the one that it cites."""


def refusals(name: str, clone: Clone, release: str) -> list[Refusal]:
    """The refusals of a release."""

    @cache
    def tree(path: str) -> ast.Module:
        try:
            return ast.parse(clone.text(release, path))
        except subprocess.CalledProcessError:
            return ast.Module([], [])

    reader = Reader(tree, lambda _: None, {})
    return [one for place in PLACES[name] for one in reader.refusals(place)]


def claimed(name: str, clone: Clone) -> frozenset[tuple[str, str]]:
    """The file and the condition of each refusal that a rule reports, at the release that the rules cite."""
    found = set()
    for place in CHECKS[name].values():
        path, _, line = place.partition(":")
        if path.endswith(".py") and line.isdigit() and path in {one.path for one in PLACES[name]}:
            text = clone.text(str(data(name)["release"]), path)
            found |= {(path, test) for test in cited(text, int(line))}
    return frozenset(found)


def table_text(name: str, clone: Clone) -> str:
    """The refusals of all described releases whose files are available."""
    base = str(data(name)["release"])
    described = sorted({*contracts(name), base}, key=numbers, reverse=True)
    by_rules = claimed(name, clone) | BY_OTHER_RULES
    found: dict[str, list[Any]] = {}
    for release in filter(clone.has, described):
        for one in refusals(name, clone, release):
            if (one.path, one.test) not in by_rules:
                row = found.setdefault(repr(one.when), [f"{one.path}:{one.line}", list(one.when), []])
                row[2] += [release] if release not in row[2] else []
    lines = ",\n".join(f"    {json.dumps(row)}" for row in found.values())
    return f'{{\n  "releases": {json.dumps(described)},\n  "refusals": [\n{lines}\n  ]\n}}\n'


def path_of(name: str) -> Path:
    """The file of a front end."""
    return SCHEMAS / "refusals" / f"{name}.json"


def main(words: Sequence[str]) -> int:
    """NAME of a front end, the clone of its repository, and the folder with the wheels of releases without a tag."""
    name, place, *more = words
    out = path_of(name)
    out.parent.mkdir(exist_ok=True)
    out.write_text(table_text(name, Clone(Path(place), name, Path(more[0]) if more else None)), encoding="utf-8")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
