"""Names of arguments on pages: as options of a command, as settings of a file, or by a front end's own keys."""

from __future__ import annotations

from functools import cache

from preflight.dialects.megatron.argument_wording import spelled as of_megatron
from preflight.dialects.megatron.argument_wording import spelled as option
from preflight.dialects.mindformers.argument_wording import spelled as setting
from preflight.frontends.flagscale_process_meshes import CLAUSES, WORDS
from preflight.frontends.front_end import data
from preflight.frontends.supported_front_ends import FRONT_ENDS
from preflight.lint.condition_in_words import Spell, Spelled
from preflight.lint.expressions import Handle
from preflight.source.lazy_regex import lazy_pattern

_WORDS = {
    "areal_devices": "the number of devices of the attention layers",
    "areal_expert_devices": "the number of devices of the experts",
    "areal_expert_stages": "the number of pipeline stages of the experts",
    "all_stages": "the number of pipeline stages, including virtual ones",
    "rl_samples_per_rank": "the number of samples of a rollout per data-parallel rank",
    "samples_per_update": "the number of samples per update and rank",
    "role_name": "the name of the role",
    "model_layers": "the number of layers of the model",
    "published_layers": "the number of layers of the published model",
    "published_heads": "the number of attention heads of the published model",
    "published_experts": "the number of experts of the published model",
    "devices": "the number of devices",
    "generation_ranks": "the number of generation replicas",
    "verifiers": "the number of entries in `verifier_function`",
    "verifier_weights": "the number of entries in `verifier_weight`",
    "bare_prediction_stage": "the first stage with a prediction layer but no decoder layer",
    "misspelt_target": "the misspelled keyword in `--target_modules`",
    "separate_section": "`ref_config` or `reward_config`",
    "skyrl_mini_batch_per_rank": "the number of samples of a mini-batch per rank",
}
"""Derived values that are not settings."""
_CLAUSES = {
    "areal_experts_apart": (
        "the experts have a separate data-parallel size",
        "the experts have no separate data-parallel size",
    ),
    "learns_by_rewards": ("the role learns from rewards", "the role does not learn from rewards"),
    "metric_is_verified": (
        "`filter_groups_metric` is in `verifier_function`",
        "`filter_groups_metric` is not in `verifier_function`",
    ),
    "batches_are_checked": (
        "`NRL_IGNORE_TP_ACCURACY_CHECK` is not set",
        "`NRL_IGNORE_TP_ACCURACY_CHECK` is set",
    ),
}
"""Derived facts, each as it holds and as it does not."""
_OPTION = lazy_pattern(r"--([A-Za-z][\w-]*)")


@cache
def _keys(front_end: str) -> dict[str, str]:
    return {row[0]: key for key, row in reversed(data(front_end)["keys"].items())}


def of_front_end(front_end: str) -> Spell:
    """The spelling of a front end's arguments."""

    def spelled(handle: Handle) -> Spelled:
        if handle.name in WORDS:
            return Spelled(WORDS[handle.name], *CLAUSES.get(handle.name, ()))
        key = _keys(front_end).get(handle.name)
        if key is None and handle.name in _WORDS:
            return Spelled(_WORDS[handle.name])
        if key is None and handle.name in _CLAUSES:
            return Spelled(handle.name, *_CLAUSES[handle.name])
        if key is None:
            return _of_file(front_end, of_megatron(handle))
        text, switch = f"`{key}`", data(front_end)["keys"][key][1] in ("true", "false", "pair", "bool")
        return _of_file(front_end, Spelled(text, f"{text} is on", f"{text} is off") if switch else Spelled(text))

    return spelled


def _of_file(front_end: str, spelled: Spelled) -> Spelled:
    """Options as the keys of a file, if the front end has such keys."""
    if not data(front_end).get("keys in files"):
        return spelled
    return Spelled(*(part and _OPTION.sub(lambda one: one[1].replace("-", "_"), part) for part in spelled))


OF_COMMANDS = ("megatron", "mindspeed", "mindspeed-llm")
OF_FILES = ("mindformers", "pynative")


def spelling(framework: str) -> Spell | None:
    """The spelling of a framework's arguments; None if unknown."""
    if framework in (front_end.name for front_end in FRONT_ENDS):
        return of_front_end(framework)
    return option if framework in OF_COMMANDS else setting if framework in OF_FILES else None
