"""Names and numbers that somebody says: refused where nobody knows them, with what may have been meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from preflight.lint.rule import Checkable
from preflight.plugins.manager import Plugins
from preflight.run.device_names import find_device
from preflight.run.request import Target
from preflight.run.settings import Choice, Facts
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError


def verify_ids(patterns: Iterable[str], known: Iterable[str], groups: Iterable[str] = ()) -> None:
    """Raises InputError for a pattern that names no group, is no rule's id and matches none."""
    known, groups = sorted(known), tuple(groups)
    for pattern in patterns:
        if pattern not in groups and not any(Choice((pattern,)).takes(id) for id in known):
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
            raise InputError(f"option {shown!r} of rule {rule.id!r} must be like {default!r}, not {value!r}")


def verify_facts(facts: Facts, plugins: Plugins) -> None:
    """Raises InputError for a count below 1, for a device or a framework that nobody knows, and for a program that is
    no folder."""
    for name in ("world_size", "nodes", "devices_per_node"):
        if (count := getattr(facts, name)) is not None and count < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {count}")
    world, nodes, each = facts.world_size, facts.nodes, facts.devices_per_node
    if world and nodes and each and world != nodes * each:
        raise InputError(
            f"a world size of {world} contradicts {nodes} nodes with {each} devices each, which are {nodes * each}"
        )
    if facts.device and find_device(plugins.devices, facts.device) is None:
        names = [name.lower() for device in plugins.devices for name in (device.name, *device.aliases)]
        hint = (
            did_you_mean(facts.device.lower(), names)
            or f"; there are {', '.join(device.name for device in plugins.devices)}"
        )
        raise InputError(f"no device is called {facts.device!r}{hint}")
    if facts.program and not os.path.isdir(os.path.expanduser(facts.program)):
        raise InputError(f"--program {facts.program} is no folder")
    if facts.target:
        wanted = Target.parse(facts.target)
        known = sorted({target.framework for dialect in plugins.dialects for target in dialect.targets})
        if wanted.framework not in known:
            hint = did_you_mean(wanted.framework, known) or f"; there are {', '.join(known)}"
            raise InputError(f"no framework is called {wanted.framework!r}{hint}")
