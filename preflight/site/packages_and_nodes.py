"""The job's interpreter and its cluster: package versions from installer metadata, and nodes from the scheduler."""

from __future__ import annotations

import json
import os
import re
from collections import Counter

from preflight.job import NodeGroup, Package
from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.source.typing_without_import import Any

PACKAGES = (
    *("megatron-core", "megatron-bridge", "mindspeed", "mindspeed-llm", "mindformers", "mindspore", "torch"),
    *("torch-npu", "transformer-engine", "apex", "flash-attn", "nvidia-resiliency-ext", "nvidia-modelopt"),
)
"""Those of a trainer and of its dependencies."""
MOST_ENTRIES = 20_000
_DEVICES = re.compile(r"\b(gpu|npu|dcu|xpu)(?::([A-Za-z][\w.\-]*))?:(\d{1,4})")
VERSION = re.compile(r"(?m)^Version: *(\S{1,64})")
SLURM_COMMAND = ("sinfo", "--json")
ANSWER = 16 * 1024 * 1024


def read_packages(eyes: Eyes, python: str) -> tuple[Package, ...]:
    """The packages of an interpreter, given by its executable or environment folder. Nothing is executed."""
    home = python if eyes.is_folder(python) else os.path.dirname(os.path.dirname(os.path.abspath(python)))
    if eyes.status(python) is None:
        raise Unread(f"{python} does not exist")
    found: dict[str, Package] = {}
    for lib in ("lib", "lib64"):
        base = os.path.join(home, lib)
        if not eyes.is_folder(base):
            continue
        for version in eyes.listed(base, MOST_ENTRIES):
            folder = os.path.join(base, version, "site-packages")
            if version.startswith("python3") and eyes.is_folder(folder):
                for package in _installed(eyes, folder):
                    found.setdefault(package.name, package)
    if not found:
        raise Unread(f"{home} contains none of the packages that a trainer needs")
    return tuple(found[name] for name in sorted(found))


def _installed(eyes: Eyes, folder: str) -> list[Package]:
    packages = []
    for entry in eyes.listed(folder, MOST_ENTRIES):
        stem, end = os.path.splitext(entry)
        name = re.sub(r"[-_.]+", "-", stem.rpartition("-")[0]).lower()
        if end == ".dist-info" and name in PACKAGES:
            match = VERSION.search(eyes.text(os.path.join(folder, entry, "METADATA"), 4096))
            packages.append(Package(name, match[1] if match else stem.rpartition("-")[2]))
    return packages


def read_inventory(eyes: Eyes, path: str) -> tuple[NodeGroup, ...]:
    """The nodes in a file written by a scheduler."""
    return nodes(eyes.text(path, ANSWER))


def nodes(text: str) -> tuple[NodeGroup, ...]:
    """The nodes in the output of `sinfo --json` or `scontrol show node --json`. Raises Unread for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Unread("the inventory is not JSON") from None
    if not isinstance(data, dict):
        raise Unread("the inventory has no nodes")
    counts: Counter[tuple[int, str, str]] = Counter()
    for node in _list(data.get("nodes")):
        counts[(*_devices(node.get("gres")), _text(node.get("partitions")))] += 1
    for group in _list(data.get("sinfo")):
        number = _part(group.get("nodes")).get("total")
        key = (*_devices(_part(group.get("gres")).get("total")), _text(_part(group.get("partition")).get("name")))
        counts[key] += number if type(number) is int else 0
    if not counts:
        raise Unread("the inventory has no nodes")
    return tuple(NodeGroup(count, *key) for key, count in sorted(counts.items()))


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _part(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    names = value if isinstance(value, list) else [value]
    return ",".join(one for one in names if isinstance(one, str))


def _devices(gres: Any) -> tuple[int, str]:
    """The number and kind of accelerators of a node."""
    found = _DEVICES.findall(gres) if isinstance(gres, str) else []
    return sum(int(number) for _, _, number in found), found[0][1] if found else ""


def asked_of_slurm(seconds: float) -> tuple[NodeGroup, ...]:
    """The nodes listed by Slurm, the only program that is started, and only if an option requests it. Raises Unread."""
    import shutil
    import subprocess

    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    program = shutil.which(SLURM_COMMAND[0], path=os.pathsep.join(folders))
    if program is None:
        raise Unread(f"{SLURM_COMMAND[0]} is not on PATH")
    try:
        done = subprocess.run(
            [program, *SLURM_COMMAND[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        raise Unread(f"{' '.join(SLURM_COMMAND)} does not respond") from None
    if done.returncode:
        raise Unread(f"{' '.join(SLURM_COMMAND)} ends with {done.returncode}")
    return nodes(done.stdout[:ANSWER].decode("utf-8", "replace"))
