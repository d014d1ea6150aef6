"""Checks names and numbers stated by a call or by settings: rules, groups, devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from preflight.lint.rule import Checkable
from preflight.lint.suppression import renamed_by
from preflight.plugins.manager import Plugins
from preflight.run.cluster import find_device, network_rate, networks
from preflight.run.project_settings import Choice, Facts
from preflight.run.request import MOST_DEVICES, Target
from preflight.run.version_ranges import numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean
from preflight.source.typing_without_import import Any

TOPICS: Mapping[str, tuple[str, ...]] = {
    "memory": ("predicted-oom", "pool-beyond-device"),
    "shell": (
        "array-first-word",
        "assumed-arguments",
        "blank-after-backslash",
        "carriage-return",
        "launcher-*",
        "lost-*",
        "misread-test",
        "misspelt-variable",
        "msrun-launcher-*",
        "not-exported",
        "placeholder-value",
        "script-not-followed",
        "undefined-option-variable",
        "unset-variable",
        "unused-option-variable",
        "unused-size-variable",
        "value-splits",
    ),
    "silent-change": (
        "changed-silently",
        "replaced-by-trainer",
        "*-ignored-key",
        "select-recompute-no-match",
        "*/*-ignored",
        "*/*-overwritten",
        "*/*-reset",
        "*/*-wins",
        "*/*-off",
    ),
}
"""Topic → patterns of rule ids."""


def grouped(rules: Iterable[Checkable]) -> dict[str, tuple[str, ...]]:
    """Group → the ids or patterns of its rules: the topics, and the frameworks that have separate rules."""
    groups: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        for name in rule.frameworks:
            groups[name] = (*groups.get(name, ()), rule.id)
    return {**groups, **TOPICS}


def expanded(choice: Choice, groups: Mapping[str, tuple[str, ...]]) -> Choice:
    """A choice with the name of a group replaced by its rules."""

    def ids(patterns: Iterable[str]) -> tuple[str, ...]:
        return tuple(id for pattern in patterns for id in groups.get(pattern, (pattern,)))

    return choice._replace(select=ids(choice.select), ignore=ids(choice.ignore))


def verify_ids(patterns: Iterable[str], known: Iterable[str], groups: Iterable[str] = ()) -> None:
    """Raises InputError for a pattern that names no group, is not the id of a rule and matches none."""
    known, groups = sorted(known), tuple(groups)
    for pattern in patterns:
        if pattern in groups or any(renamed_by((pattern,))):
            continue
        if not any(Choice((pattern,)).takes(id) for id in known):
            what = "rule or group" if groups else "rule"
            raise InputError(f"there is no {what} {pattern!r}{did_you_mean(pattern, [*groups, *known])}")


def verify_options(rule: Checkable, options: Mapping[str, Any]) -> None:
    """Raises InputError for an option that the rule does not have, or a value of another type than its default."""
    for name, value in options.items():
        shown = name.replace("_", "-")
        if name not in rule.options:
            raise InputError(
                f"rule {rule.id!r} has no option "
                f"{shown!r}{did_you_mean(shown, [n.replace('_', '-') for n in rule.options])}"
            )
        default = rule.options[name]
        if (
            default is not None
            and type(value) is not type(default)
            and not (type(default) is float and type(value) is int)
        ):
            raise InputError(
                f"option {shown!r} of rule {rule.id!r} must have the type of its default, {default!r}, but is {value!r}"
            )


NODES = ("NNODES", "NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
PER_NODE = ("NPROC_PER_NODE", "GPUS_PER_NODE", "NPUS_PER_NODE")
"""Variables that always hold a count; WORLD_SIZE is the number of nodes on some platforms."""
DIGITS = 20
"""The largest accepted number: no machine has more."""


def verify_counts(facts: Facts) -> None:
    """Raises InputError for counts that contradict each other, including values set for variables."""
    said = facts.set or {}
    found: dict[str, int | None] = {}
    for option, names, count in (("nodes", NODES, facts.nodes), ("devices-per-node", PER_NODE, facts.devices_per_node)):
        values = {f"--{option} {count}": count} if count else {}
        values |= {f"--set {n}={said[n]}": int(said[n][:DIGITS]) for n in names if said.get(n, "")[:DIGITS].isdecimal()}
        if len(set(values.values())) > 1:
            one, other = list(values)[:2]
            raise InputError(f"{one} contradicts {other}")
        found[option] = next(iter(values.values()), None)
    world, nodes, each = facts.world_size, found["nodes"], found["devices-per-node"]
    if nodes and each and nodes * each > MOST_DEVICES:
        raise InputError(
            f"{nodes} nodes with {each} devices each have {nodes * each} devices, more than the limit of "
            f"{MOST_DEVICES:,}"
        )
    if world and nodes and each and world != nodes * each:
        raise InputError(
            f"a world size of {world} contradicts {nodes} nodes with {each} devices each, which have {nodes * each} "
            "devices"
        )
    if world and nodes and world % nodes:
        raise InputError(f"a world size of {world} cannot be divided evenly among {nodes} nodes")


def verify_release(target: str, plugins: Plugins) -> None:
    """Raises InputError for an undescribed release; only the first two numbers of its version are compared."""
    wanted = Target.parse(target)
    listed = {t.version for d in plugins.dialects for t in d.targets if t.framework == wanted.framework}
    known = sorted(listed, key=lambda version: (numbers(version), version))
    digits = numbers(wanted.version)[:2]
    alike = wanted.version in listed or (digits and any(numbers(one)[: len(digits)] == digits for one in known))
    if wanted.version and not alike:
        raise InputError(f"{target} is not a known release; the known releases are {', '.join(known)}")


def verify_program(facts: Facts) -> None:
    """Raises InputError for a program that is not a folder; settings may name one that is not on every machine."""
    if facts.program and not os.path.isdir(os.path.expanduser(facts.program)):
        raise InputError(f"--program {facts.program} is not a folder")


def verify_facts(facts: Facts, plugins: Plugins) -> None:
    """Raises InputError for a count below 1, and for a device or a framework that is unknown."""
    for name in ("world_size", "nodes", "devices_per_node"):
        if (count := getattr(facts, name)) is not None:
            if count < 1:
                raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {count}")
            if count > MOST_DEVICES:
                raise InputError(f"--{name.replace('_', '-')} must be at most {MOST_DEVICES:,}, not {count}")
    verify_counts(facts)
    if facts.device and find_device(plugins.devices, facts.device) is None:
        names = [name.lower() for device in plugins.devices for name in (device.name, *device.aliases)]
        hint = (
            did_you_mean(facts.device.lower(), names)
            or f"; known devices are {', '.join(device.name for device in plugins.devices)}"
        )
        raise InputError(f"there is no device {facts.device!r}{hint}")
    if facts.network and network_rate(facts.network) is None:
        names = [network.name for network in networks()]
        hint = did_you_mean(facts.network, names) or f"; known networks are {', '.join(names)}"
        raise InputError(f"{facts.network!r} is neither a network nor a number of GB/s{hint}")
    if facts.target:
        wanted = Target.parse(facts.target)
        known = sorted({target.framework for dialect in plugins.dialects for target in dialect.targets})
        if wanted.framework not in known:
            hint = did_you_mean(wanted.framework, known) or f"; known frameworks are {', '.join(known)}"
            raise InputError(f"there is no framework {wanted.framework!r}{hint}")
        verify_version(wanted, plugins)


RANGE = lazy_pattern(r"[<>=~^*,]|\.\.|\d\s*-\s*\d")
NAMED = lazy_pattern(r"[a-z_-]{0,20}\d[\w.+-]*|main|master|dev|latest|[0-9a-f]{7,40}")
"""Versions, tags and branches, and the names of branches that are read as the newest release."""


def verify_version(wanted: Target, plugins: Plugins) -> None:
    """Raises InputError for a version that names no single release."""
    version = wanted.version
    listed = {t.version for d in plugins.dialects for t in d.targets if t.framework == wanted.framework}
    if not version or version in listed:
        return
    newest = max(listed, key=numbers)
    if RANGE.search(version) is not None:
        raise InputError(f"{version!r} is a range; name one release, such as {wanted.framework}@{newest}")
    if NAMED.fullmatch(version) is None:
        raise InputError(f"{version!r} is not the name of a release, such as {wanted.framework}@{newest}")
