"""The described frameworks: repository, releases, files on the path from a config to a run. Written by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from preflight.run.version_ranges import NEWEST, numbers
from upstream import found as kept


class Release(NamedTuple):
    """One release.

    revision: tag, branch, commit, or the name of a wheel. on: framework → release that it is built on.
    options_only: its checks are not followed. also: its other names. live: pattern of the `file:function` that its runs
    call, if other functions are unused.
    """

    name: str
    revision: str
    on: tuple[tuple[str, str], ...] = ()
    options_only: bool = False
    also: tuple[str, ...] = ()
    live: str = ""


@dataclass(frozen=True)
class Framework:
    """The parts of a framework that are read.

    roots: folders and files that are read. scope: patterns of the files in which every check needs a decision.
    internal: patterns of `file:function` that guard only the framework's own code. aside: patterns of files that do not
    concern a config. bare: pattern of checking calls that refuse without a condition. calls: names of functions that
    check. parser: the module below `upstream.inside` that prints the options, or "keys". read_at: releases at which
    rules are read if they name none, the likeliest first. docs: pages that rules may name. decides: whether this
    evidence decides if a rule holds; otherwise the versions in its declaration do. needs: files and folders that the
    parser needs, or that contain the keys; by default the packages. entries: whether it ships entry scripts that add
    options. published: further tags and branches of a release, each with the release that it is read as. earlier:
    releases before the first whose checks are followed, which are searched for the rules that hold in them.
    """

    name: str
    repository: str
    releases: tuple[Release, ...]
    roots: tuple[str, ...]
    scope: str
    calls: str
    parser: str
    aside: str = r"^$"
    bare: str = r"^$"
    internal: str = r"^$"
    read_at: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    needs: tuple[str, ...] = field(default=())
    decides: bool = False
    entries: bool = False
    published: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def extracted(self) -> tuple[str, ...]:
        """Files that the parser needs on disk."""
        return self.needs or tuple(dict.fromkeys(root.partition("/")[0] for root in self.roots))

    @property
    def checking(self) -> re.Pattern[str]:
        return re.compile(self.calls)

    def release(self, name: str) -> Release:
        """A release by its name, or by its revision. Raises KeyError."""
        for release in self.releases:
            if name in (release.name, release.revision, *release.also):
                return release
        raise KeyError(
            f"{self.name} has no release {name!r} here; known are {', '.join(one.name for one in self.releases)}"
        )

    def placed(self, name: str) -> float:
        """The number of a release; that of one that is not described lies between those of its neighbours."""
        try:
            return self.releases.index(self.release(name))
        except KeyError:
            return _place(self.releases, name) - 0.5


MEGATRON = Framework(
    "megatron",
    "NVIDIA/Megatron-LM",
    (
        *(Release(f"0.{minor}.0", f"core_v0.{minor}.0", options_only=True) for minor in (6, 7, 8, 9)),
        Release("0.10.0", "core_v0.10.0"),
        Release("0.11.0", "core_v0.11.0"),
        Release("0.12.1", "core_v0.12.1"),
        *(Release(f"0.{minor}.0", f"core_v0.{minor}.0") for minor in range(13, 20)),
        Release("0.20.0", "d98e8a64ddf34856e74b24714e3bedb2f5a39553", also=("main", "d98e8a6")),
    ),
    roots=("megatron/core", "megatron/training", "pretrain_gpt.py", "pretrain_hybrid.py", "pretrain_mamba.py"),
    scope=(
        r"^megatron/training/(arguments|argument_utils|determinism|vocab_utils|config/training_config)\.py$"
        r"|^megatron/core/(model_parallel_config|num_microbatches_calculator|optimizer_param_scheduler)\.py$"
        r"|^megatron/core/(parallel_state|transformer/(transformer_config|cuda_graph_config|transformer_block))\.py$"
        r"|^megatron/core/transformer/pipeline_parallel_layer_layout\.py$"
        r"|^megatron/core/(optimizer/optimizer_config|distributed/distributed_data_parallel_config)\.py$"
        r"|^megatron/core/models/gpt/gpt_layer_specs\.py$"
        r"|^megatron/core/models/(hybrid|mamba)/(hybrid|mamba)_(layer_allocation|hybrid_layer_allocation)\.py$"
        r"|^megatron/core/ssm/mamba_hybrid_layer_allocation\.py$"
    ),
    calls=r"^_check_arg_is_not_none$",
    parser="megatron_parser",
    aside=r"/(inference|export|tests?|fsdp/src|quantization|datasets/retro)/",
    internal=(
        r"parallel_state\.py:((get|set|is|destroy|update|default|overwrite)_|model_parallel_is|_(get|Global))"
        r"|parallel_state\.py:create_(group|all_gather)|num_microbatches_calculator\.py:.*\.get\w*$"
        r"|optimizer_param_scheduler\.py:.*(load_state_dict|_check_and_set)$"
    ),
    read_at=("0.20.0", "0.12.1"),
    decides=True,
    entries=True,
    published=(
        *((f"core_v0.12.{patch}", "0.12.1") for patch in (0, 2, 3)),
        ("core_v0.13.1", "0.13.0"),
        *((f"core_v0.15.{patch}", "0.15.0") for patch in (1, 2, 3)),
        ("core_v0.16.1", "0.16.0"),
        ("core_v0.17.1", "0.17.0"),
        ("core_v0.18.2", "0.18.0"),
        *((f"core_r0.{minor}.0", f"0.{minor}.0") for minor in (10, 11, 13, 14, 15, 16, 17, 18)),
        ("core_r0.12.0", "0.12.1"),
    ),
    earlier=("0.6.0", "0.7.0", "0.8.0", "0.9.0"),
)
_CORE = "0.12.1"
_BOTH = r"incompatible_check|dependency_check"
"""Calls of MindSpeed that name another feature, and refuse if both are on, or if one is on without the other."""
_CALLED_BY_LLM_2 = (
    r"^mindspeed/features_manager/(feature|pipeline_parallel/(fb_overlap|dualpipev)_feature"
    r"|tensor_parallel/unaligned_linear_feature)\.py:"
)
"""MindSpeed-LLM 2.0 and 2.1 call the checks of only these MindSpeed features, and make all others themselves."""
_LLM_FEATURES = r"^mindspeed_llm/(?!training/arguments\.py:_?valid(?!ate_args_v2))"
"""From 2.2 on MindSpeed-LLM checks by its features; the functions that checked before remain in the file, but are no
longer called."""
_LLM_2_0 = r"^mindspeed_llm/(?!features_manager/)"
_LLM_2_1 = (
    r"^mindspeed_llm/(?!features_manager/(?!common/(training|data|rotary|embedding|moe_router)"
    r"|models/mamba|communication/|high_availability/))"
)
"""The features that MindSpeed-LLM 2.1 lists; 2.0 lists none."""
MINDSPEED = Framework(
    "mindspeed",
    "Ascend/MindSpeed",
    (
        Release("1.0.0", "1.0.0_core_r0.6.0", (("megatron", "0.6.0"),), options_only=True),
        Release("2.0.0-llm", "2c085cc9", (("megatron", "0.8.0"),), live=_CALLED_BY_LLM_2),
        Release("2.0.0", "2.0.0_core_r0.8.0", (("megatron", "0.8.0"),)),
        Release("2.1.0", "2.1.0_core_r0.12.1", (("megatron", _CORE),)),
        Release("2.2.0", "2.2.0_core_r0.12.1", (("megatron", _CORE),)),
        Release("2.3.0", "2.3.0_core_r0.12.1", (("megatron", _CORE),)),
        Release("26.0.0", "26.0.0_core_r0.12.1", (("megatron", _CORE),)),
        Release("26.1.0", "26.1.0_core_r0.12.1", (("megatron", _CORE),)),
        Release("master", "028de58ca629d035185b00ff7d1eb7eff4f7fd48", (("megatron", _CORE),), also=("028de58",)),
        *(
            Release(f"core_r{core}", f"core_r{core}", (("megatron", base),), options_only=True)
            for core, base in (
                ("0.14.0", "0.14.0"),
                ("0.15.3", "0.15.0"),
                ("0.16.0", "0.16.0"),
                ("0.17.0", "0.17.0"),
                ("0.18.0", "0.18.0"),
                *((f"0.{minor}.0", f"0.{minor}.0") for minor in range(6, 11)),
            )
        ),
        *(
            Release(name, name, (("megatron", name.rpartition("_r")[2]),), options_only=True)
            for name in ("2.1.0_core_r0.8.0", "1.0.0_core_r0.7.0", "1.0.RC3_core_r0.7.0", "1.0.RC3_core_r0.6.0")
        ),
    ),
    roots=("mindspeed",),
    scope=r"^mindspeed/(features_manager/|arguments\.py$|core/megatron_basic/arguments_basic\.py$)",
    calls=r"(^|\.)(incompatible_check|dependency_check|check_\w+|_check_\w+)$",
    parser="mindspeed_parser",
    aside=r"/(fsdp|lite|auto_settings|auto_tuning|multi_modal|mindspore|ops|op_builder|run)/",
    read_at=("master", "26.1.0"),
    docs=("docs",),
    bare=_BOTH,
    decides=True,
    published=(
        ("v2.0.0_core_r0.8.0", "2.0.0"),
        *((f"v{name}_core_r0.12.1", name) for name in ("2.1.0", "2.2.0", "2.3.0", "26.0.0")),
    ),
)
MINDSPEED_LLM = Framework(
    "mindspeed-llm",
    "Ascend/MindSpeed-LLM",
    (
        Release("1.0.RC2", "1.0.RC2", (("megatron", "0.6.0"), ("mindspeed", "1.0.RC2")), options_only=True),
        Release("1.0.0", "1.0.0", (("megatron", "0.6.0"), ("mindspeed", "969686ff")), options_only=True),
        Release("2.0.0", "2.0.0", (("megatron", "0.8.0"), ("mindspeed", "2.0.0")), live=_LLM_2_0),
        Release("2.1.0", "2.1.0", (("megatron", "0.8.0"), ("mindspeed", "2c085cc9")), live=_LLM_2_1),
        *(
            Release(name, name, (("megatron", _CORE), ("mindspeed", name)), live=_LLM_FEATURES)
            for name in ("2.2.0", "2.3.0", "26.0.0", "26.1.0")
        ),
        Release(
            "master",
            "c77308a14bfcb1aa7ca61da9c1aa24a893cb1b91",
            (("megatron", _CORE), ("mindspeed", "master")),
            also=("c77308a",),
        ),
    ),
    roots=("mindspeed_llm", "modellink"),
    scope=r"^mindspeed_llm/(features_manager/|training/arguments\.py$|core/transformer/transformer_config\.py$)",
    calls=r"(^|\.)(incompatible_check|dependency_check|check_\w+|_check_\w+|_?validate_\w+)$",
    parser="mindspeed_parser",
    bare=_BOTH,
    aside=r"/(fsdp2|inference|evaluation|mindspore|preprocess|posttrain|checkpoint|high_availability)/",
    read_at=("master", "26.1.0"),
    docs=("docs",),
    needs=("mindspeed_llm", "modellink", "configs"),
    decides=True,
    entries=True,
    published=tuple((f"v{name}", name) for name in ("2.0.0", "2.1.0", "2.2.0", "2.3.0", "26.0.0", "26.1.0")),
)
MINDFORMERS = Framework(
    "mindformers",
    "mindspore-lab/mindformers",
    (
        *(Release(name, f"v{name}") for name in ("1.0.0", "1.1.0", "1.2.0", "1.3.2", "1.5.0", "1.6.0", "1.7.0")),
        *(Release(name, f"mindformers-{name}-py3-none-any.whl") for name in ("1.8.0", "2.0.0", "2.1.0")),
    ),
    roots=("mindformers", "run_mindformer.py"),
    scope=(
        r"^run_mindformer\.py$|^mindformers/(core/(context/|parallel_config|config_args|lr/|optim/)"
        r"|tools/(check_rules|register/)|trainer/(trainer|base_trainer|utils|config_args|training_args)\.py"
        r"|modules/transformer/(transformer|moe|op_parallel_config)\.py"
        r"|parallel_core/(transformer_config|model_parallel_config|mf_model_config|utils/model_mixin)"
        r"|parallel_core/training_graph/(base_models|transformer)/"
        r"|pynative/(config|trainer/(trainer|utils|config)|distributed|optimizer|layers/config))"
    ),
    calls=r"(^|\.)_?(check|validate|verify)_\w+$|^(Validator|validator)\.",
    parser="keys",
    aside=r"/(inference|generation|pipeline|dataset|checkpoint|ckpt_transform|hub|image_tools|cloud_adapter)/",
    read_at=("2.1.0", "1.7.0", "1.5.0", "1.3.2"),
    decides=True,
    needs=(
        "mindformers/tools/register/template.py",
        "mindformers/core",
        "mindformers/modules/transformer",
        "mindformers/trainer",
        "mindformers/models",
        "mindformers/parallel_core",
        "mindformers/pynative",
    ),
)


def with_found(framework: Framework) -> Framework:
    """A framework with the releases that were described and shipped by machine."""
    releases, published = list(framework.releases), list(framework.published)
    for name, row in kept.read().get(framework.name, {}).items():
        if not row.shipped or name in [one.name for one in releases] or (row.revision, row.of) in published:
            continue
        if row.of:
            published.append((row.revision, row.of))
        else:
            releases.insert(_place(releases, name), _below(releases, name)._replace(name=name, revision=row.revision))
    return replace(framework, releases=tuple(releases), published=tuple(published))


def _place(releases: Sequence[Release], name: str) -> int:
    """The number of the first release that is newer."""
    newer = (at for at, one in enumerate(releases) if (numbers(one.name) or NEWEST) > numbers(name))
    return next(newer, len(releases))


def _below(releases: Sequence[Release], name: str) -> Release:
    """The release just before a name."""
    return releases[max(_place(releases, name) - 1, 0)]._replace(also=(), options_only=False)


MEGATRON, MINDSPEED, MINDSPEED_LLM, MINDFORMERS = map(with_found, (MEGATRON, MINDSPEED, MINDSPEED_LLM, MINDFORMERS))
FRAMEWORKS = {framework.name: framework for framework in (MEGATRON, MINDSPEED, MINDSPEED_LLM, MINDFORMERS)}


def _front_end(name: str, repository: str, *releases: str) -> Framework:
    """A program that starts a framework: its trees are only searched for known defects."""
    return Framework(name, repository, tuple(Release(one, f"v{one}") for one in releases), (), r"^$", r"^$", parser="")


_SLIME = ("0.1.0", "0.2.0", "0.2.0.post1", "0.2.1", "0.2.2", "0.2.3", "0.2.4", "0.3.0", "0.3.1")
_MS_SWIFT_3 = ("3.9.3", "3.10.3", "3.11.3", *(f"3.12.{patch}" for patch in range(7)))
_MS_SWIFT_4 = (
    *(f"4.0.{patch}" for patch in range(5)),
    *(f"4.{minor}.{patch}" for minor in (1, 2) for patch in range(4)),
    *(f"4.3.{patch}" for patch in range(3)),
    *(f"4.4.{patch}" for patch in range(4)),
    *(f"4.5.{patch}" for patch in range(3)),
)
FRONT_ENDS = {
    one.name: one
    for one in (
        _front_end("verl", "verl-project/verl", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0"),
        _front_end("slime", "THUDM/slime", *_SLIME),
        _front_end("nemo-rl", "NVIDIA-NeMo/RL", "0.2.0", "0.2.1", "0.3.0", "0.3.1", "0.4.0", "0.5.0", "0.6.0", "0.7.0"),
        _front_end("ms-swift", "modelscope/ms-swift", *_MS_SWIFT_3, *_MS_SWIFT_4),
        _front_end("megatron-bridge", "NVIDIA-NeMo/Megatron-Bridge", "0.4.0", "0.5.0", "0.6.0"),
    )
}
"""Programs that start Megatron and also have tables of known defects."""
COMPARED = (
    _front_end("areal", "inclusionAI/AReaL"),
    _front_end("primus", "AMD-AGI/Primus"),
    _front_end("mcore-adapter", "alibaba/ROLL"),
    _front_end("skyrl", "NovaSky-AI/SkyRL"),
    _front_end("flagscale", "FlagOpen/FlagScale"),
    _front_end("mindrlhf", "mindspore-lab/mindrlhf"),
    _front_end("mindspeed-llm-fsdp2", "Ascend/MindSpeed-LLM"),
    _front_end("mindspeed-mm", "Ascend/MindSpeed-MM"),
    _front_end("mindspeed-rl", "Ascend/MindSpeed-RL"),
)
"""Other programs that start a framework; their tables are also generated from their repositories."""
