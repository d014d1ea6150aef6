"""How pages name the options of Megatron and MindSpeed."""

from __future__ import annotations

from functools import cache

from preflight.dialects.megatron.options import ASKED, UNASKED, Flag, table
from preflight.lint.condition_in_words import Spelled
from preflight.lint.expressions import Handle

_WORDS = {
    "world_size": "the number of devices",
    "data_parallel_size": "the data-parallel size",
    "total_model_size": "the number of ranks that hold one model",
    "gtp_weight_remat_size": "the number of ranks that share weights (GTP)",
    "expert_gtp_weight_remat_size": "the number of ranks that share expert weights (GTP)",
    "expert_model_size": "the product of the expert-tensor-, expert- and pipeline-parallel sizes",
    "expert_data_parallel_size": "the data-parallel size of the experts",
    "virtual_pipeline_model_parallel_size": "the number of virtual stages per pipeline rank",
    "pipeline_num_layers": "the number of layers to distribute over the stages",
    "layout_num_stages": "the number of stages in `--pipeline-model-parallel-layout`",
    "num_microbatches": "the number of micro-batches",
    "device_architecture": "the GPU architecture (7: Volta, 8: Ampere, 9: Hopper, 10: Blackwell)",
    "entry": "the entry script",
    "lr_decay_steps": "the length of the learning-rate decay",
    "lr_warmup_steps": "the length of the learning-rate warm-up",
    "lr_wsd_decay_steps": "the length of the WSD decay",
    "moe_layer_pattern": "the pattern of expert layers",
    "mtp_position_embedding_type": "the position embedding that the check of multi-token prediction reads",
    "params_dtype": "the parameter type",
    "hybrid_num_segments": "the number of segments of the hybrid layer pattern",
}
_CLAUSES = {
    "entry_is_known": (
        "the entry script defines no additional options",
        "the entry script may define additional options",
    ),
    "entry_trains": ("the entry script trains", "the entry script only generates text or evaluates"),
    "options_are_complete": (
        "the command has only known options, and the caller of the script adds none",
        "the command may have additional options",
    ),
    "target_is_stated": ("the release is stated", "the release is not stated"),
    "use_dist_ckpt": ("the checkpoint format is a distributed one", "the checkpoint format is `torch`"),
    "hybrid_has_pipes": (
        "the hybrid layer pattern has segments (`|`)",
        "the hybrid layer pattern has no segments (`|`)",
    ),
    "use_layer_wise_distributed_optimizer": (
        "a layer-wise distributed optimizer is used",
        "no layer-wise distributed optimizer is used",
    ),
}


@cache
def _flags() -> dict[str, Flag]:
    """Destination → the option that sets it, of the newest release that has it."""
    found: dict[str, Flag] = {}
    for framework, version in (*UNASKED, *ASKED):
        for flag in table(framework, version).options.values():
            kept = found.setdefault(flag.dest, flag)
            if flag.option == f"--{flag.dest.replace('_', '-')}" != kept.option:
                found[flag.dest] = flag  # if there are several options, the one named after the destination
    return found


def spelled(handle: Handle) -> Spelled:
    """The option of an argument, an environment variable, or a description of the argument."""
    if handle.view == "environment":
        return Spelled(f"`{handle.name}`")
    flag = _flags().get(handle.name)
    if flag is None:
        words = _WORDS.get(handle.name, handle.name.replace("_", " "))
        return Spelled(words, *_CLAUSES.get(handle.name, ()))
    text = f"`{flag.option}`"
    if flag.kind == "false":
        return Spelled(text, f"{text} is not given", f"{text} is given")
    return Spelled(text, f"{text} is on", f"{text} is off") if flag.switch else Spelled(text)
