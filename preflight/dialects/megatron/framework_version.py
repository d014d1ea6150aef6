"""The framework and version of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from preflight.dialects.megatron.options import (
    ASKED,
    RELEASES,
    Table,
    built_on,
    releases_that_take,
    releases_with,
    table,
)
from preflight.run.request import Target
from preflight.run.version_ranges import branch, matches, numbers
from preflight.source.lazy_regex import lazy_pattern

UNASKED = (
    Target("megatron", "0.20.0"),
    Target("megatron", "0.12.1"),
    Target("mindspeed-llm", "master"),
    Target("mindspeed", "master"),
)
"""The target of a run without a stated release whose options fit the newest one."""

TARGETS = (*UNASKED, *(Target(*known) for known in ASKED))
FRAMEWORKS = frozenset(target.framework for target in TARGETS)
BUILT_ON_MEGATRON = ("mindspeed", "mindspeed-llm")
MINDSPEED_OF = {"1.0.RC2": "1.0.0", "1.0.0": "1.0.0", "2.0.0": "2.0.0-llm", "2.1.0": "2.0.0-llm"}
"""The MindSpeed version under a release of MindSpeed-LLM, if its name differs. Before 2.2 MindSpeed-LLM makes the
checks itself, and calls those of only a few MindSpeed features (`2.0.0-llm`)."""

ENTRIES = {
    "pretrain_gpt.py": "",
    "pretrain_hybrid.py": "megatron",
    "pretrain_mamba.py": "",
    "posttrain_gpt.py": "mindspeed-llm",
    "pretrain_deepseek4.py": "mindspeed-llm",
}
"""Entry scripts whose options are exactly those of a table; "" if several frameworks have a script of that name."""

ASCEND = lazy_pattern(r"mindspeed|modellink|\bascend|\bhccl|\bnpu\b|\bmsrun\b")
ASCEND_WORDS = ("mindspeed", "modellink", "ascend", "hccl", "npu", "msrun")
"""Words that mark a script for Ascend devices, in lower case: a text without any of them is not searched."""

LLM = lazy_pattern(
    r"(?im)^[^#\n]*/(?:mindspeed[-_]llm|modellink)(?:[-_]v?(\d+(?:\.\d+){1,3}))?[\w.-]{0,40}(?=[/\s\"';]|$)"
)
"""A path to a copy of MindSpeed-LLM outside of comments, with the release in its name."""
LLM_SPEC = ("mindspeed_llm.", "modellink.")

ANYBODYS = frozenset(
    (
        "--add-eos-token --append-eod --cache-dir --chain-of-thought --dataset-dir --dataset-impl --datasets"
        " --dpo-beta --evaluation-batch-size --gamma --greedy --help --history-turns --json-keys --keep-newlines"
        " --lora-alpha --lora-r --lora-target-modules --map-keys --master-addr --master-port --max-batch-size"
        " --max-eval-samples --max-length --max-new-tokens --max-samples --n-shared-experts --nnodes --no-shuffle"
        " --node-rank --nproc-per-node --original-max-position-embeddings --output-prefix --pack --post-norm"
        " --prompt-type --ref-model --rope-theta --sliding-window --sliding-window-size --split-sentences --stage"
        " --streaming --task --task-data-path --temperature --tokenizer-name-or-path --top-k --top-p"
        " --use-kv-cache --use-wandb --workers"
    ).split()
)
"""MindSpeed-LLM options that third-party scripts for text generation, evaluation and fine-tuning also have."""


def choose(
    entry: str,
    typed: Mapping[str, str | None],
    wanted: Target | None,
    text: str = "",
    among: frozenset[str] = frozenset(),
) -> Target:
    """The requested target, otherwise the newest one whose parser knows most of the options. typed: options with the
    first word of their value. text: the rest of the file. An unknown version is read as the nearest one; between two,
    as the one that knows more of the options. among: the releases of the wanted framework to which a file limits it.
    """
    named = ENTRIES.get(entry, "") or _named_llm(typed, text)
    framework = wanted.framework if wanted is not None else named
    if wanted is not None and not wanted.version and framework in BUILT_ON_MEGATRON:
        return Target(framework, RELEASES[framework][0])
    if wanted is not None and among:
        inside = [one for one in releases_that_take(framework, typed.items()) if one in among]
        if inside:
            return Target(framework, inside[-1])
    found = _asked(wanted) if wanted is not None and wanted.version else _unasked(typed, framework, entry, text)
    tried: list[tuple[int, bool, Target]] = []
    for target in found:
        lacking = len(typed.keys() - options_of(target).options.keys())
        if not lacking and (target.framework == "megatron" or not _superseded(target)):
            return target
        tried.append((lacking, _superseded(target), target))
    return min(tried, key=lambda one: one[:2])[2]


def _named_llm(typed: Mapping[str, str | None], text: str) -> str:
    """MindSpeed-LLM if a layer specification is in its package, or its options appear together with a path to a copy of
    it."""
    of_package = (typed.get("--spec") or "").startswith(LLM_SPEC)
    on_top = of_package or (any(map(is_telling, typed)) and _copy_of_llm(text) is not None)
    return BUILT_ON_MEGATRON[1] if on_top else ""


@lru_cache(maxsize=2)
def _for_ascend(text: str) -> bool:
    """Whether a text names Ascend devices; cached for manifests with many launches."""
    text = text.lower()
    return any(word in text for word in ASCEND_WORDS) and ASCEND.search(text) is not None


@lru_cache(maxsize=2)
def _copy_of_llm(text: str) -> re.Match[str] | None:
    """The path to a copy of MindSpeed-LLM in a text."""
    return LLM.search(text)


def _superseded(target: Target) -> bool:
    """Whether its framework has a newer release."""
    return target.version != RELEASES[target.framework][0]


def _unasked(typed: Mapping[str, str | None], framework: str, entry: str, text: str) -> Iterator[Target]:
    """The newest release of each framework that has the options; frameworks built on Megatron-LM only with evidence for
    them: another program may share a name or two with them."""
    plain = framework in ("", "megatron")
    tells = _brought if entry in ENTRIES else is_telling
    on_top = not plain or _for_ascend(text) or sum(map(tells, typed)) > sum(map(_nobodys, typed))
    for name in ("megatron", "mindspeed-llm", "mindspeed"):
        if framework in ("", name) and (name == "megatron" or on_top):
            possible = releases_that_take(name, typed.items())
            path = _copy_of_llm(text) if name == "mindspeed-llm" else None
            if path is not None and path[1] in possible:
                possible = (path[1],)
            yield Target(name, possible[-1] if possible else RELEASES[name][0])


def is_telling(option: str) -> bool:
    """Whether an option belongs to MindSpeed or MindSpeed-LLM, to no release of Megatron-LM, and probably to no other
    program."""
    return option not in ANYBODYS and _brought(option)


def _nobodys(option: str) -> bool:
    """Whether no release of any framework has an option."""
    return option not in ANYBODYS and not any(releases_with(name, option) for name in ("megatron", *BUILT_ON_MEGATRON))


def _brought(option: str) -> bool:
    """Whether MindSpeed or MindSpeed-LLM has an option, and no release of Megatron-LM does."""
    return not releases_with("megatron", option) and any(releases_with(name, option) for name in BUILT_ON_MEGATRON)


def _asked(wanted: Target) -> list[Target]:
    """The requested release, or the described ones next to it; a branch only by its name."""
    own = [target for target in TARGETS if target.framework == wanted.framework]
    exact = [target for target in own if target.version == wanted.version]
    line = branch(wanted.version)[0] if any(branch(t.version)[0] == branch(wanted.version)[0] for t in own) else ""
    numbered = [target for target in own if branch(target.version)[0] == line and branch(target.version)[1]]
    near = sorted(numbered, key=lambda target: _distance(target.version, wanted.version))
    return exact or _between(branch(wanted.version)[1] if line else numbers(wanted.version), near) or near[:1]


def _between(number: tuple[int, ...], near: Sequence[Target]) -> list[Target]:
    """The nearest lower and higher releases for an undescribed minor version, the nearer first; for a major version
    alone its two newest releases; none if it is older or newer than all."""
    asked = number[:2]
    have = {target: branch(target.version)[1][:2] for target in near}
    below = [target for target in near if have[target] < asked]
    above = [target for target in near if have[target] > asked]
    begun = [target for target in near if have[target][: len(asked)] == asked]
    if begun or not below or not above:
        return begun[:2] if len(asked) == 1 else []
    beside = {max(below, key=lambda target: have[target]), min(above, key=lambda target: have[target])}
    return [target for target in near if target in beside]


def _distance(ours: str, wanted: str) -> tuple[int, ...]:
    """The distance of two versions: major before minor before patch."""
    pairs = zip(re.findall(r"\d+", ours), re.findall(r"\d+", wanted), strict=False)
    return tuple(abs(int(a) - int(b[:9])) for a, b in pairs)


def old_runner(target: Target | None) -> bool:
    """Whether a run's Megatron release has a test runner that splits every value at its spaces (before 0.13)."""
    return (
        target is not None
        and target.framework == "megatron"
        and target.version != ""
        and matches(target.version, "<0.13")
    )


def options_of(target: Target) -> Table:
    """The option table of a target; the newest for a missing or unlisted version."""
    if target in TARGETS:
        return table(target.framework, target.version)
    return table(*next(known for known in UNASKED if known.framework == target.framework))


def versions(target: Target) -> dict[str, str]:
    """Every framework in a run of a target, with its version."""
    if target.framework == "megatron":
        return {"megatron": target.version}
    both = {"megatron": built_on(target.framework, target.version), "mindspeed": _mindspeed(target.version)}
    if target.framework == "mindspeed":
        return both
    return {**both, "mindspeed": MINDSPEED_OF.get(target.version, target.version), "mindspeed-llm": target.version}


def _mindspeed(version: str) -> str:
    """The MindSpeed version of a run: for branches on Megatron-LM before 0.12.1 only the options are described, and
    newer checks or changes do not apply to them."""
    line, beneath = branch(version)
    return RELEASES["mindspeed"][-1] if line and beneath < (0, 12) else version


def core_release(target: Target, asked: Target | None) -> str:
    """The Megatron-LM release of a run: that under the requested release, described or not."""
    if asked is not None and asked.version and asked.framework == "megatron":
        return asked.version
    return versions(target)["megatron"]


def updates_in_place(asked: Target | None) -> bool:
    """Whether Adam is certainly MindSpeed's version of 2025-04-22 (cbe4363) or later: all branches on Megatron 0.12.1
    have it, those on 0.8 do not."""
    return (
        asked is not None
        and asked.framework in BUILT_ON_MEGATRON
        and asked.version != ""
        and matches(asked.version, ">=2.2")
        and (branch(asked.version)[0] == "" or branch(asked.version)[1] >= (0, 12))
    )
