"""Measured runs with preflight's estimates.

A folder holds megatron-measured.jsonl (Megatron-LM's functional tests: arguments, bytes allocated on the last rank) and
published.jsonl (MindSpeed-LLM's on Ascend: bytes per rank after the first steps). A unit is one distinct configuration
on one platform with a peak of 2 GB or more; its truth is the median of its recordings.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import preflight
from preflight.dialects.megatron.mindspeed_renamed_arguments import RENAMED
from preflight.memory import MemoryEstimate, Stage
from preflight.run.training_plan import Plan

LEAST = 2e9
RECORDED = {
    "chatglm3_tp1_pp2_rope": "1.0.0",  # 2024-08
    "phi35_moe_tp1_pp8_mcore": "2.0.0",  # 2025-01
    "chatglm3_gqa_cp4": "2.0.0",  # 2025-03, as the next three
    "llama2_tp4pp2vpp2_tp2d_tpx2tpy2": "2.0.0",
    "llama3_mcore_tp2_pp2_vpp2_noop_layer": "2.0.0",
    "deepseek_v2_mcore_tp1_pp1_ep8": "2.0.0",
    "glm4_9b_8k_tp2_pp2_ptd": "2.0.0",  # 2025-04, as the next two
    "tune_hunyuanLarge_389b_tp1_pp1_ep8_ptd": "2.0.0",
    "internlm3_8b_tp1_pp4_cp2_ptd": "2.0.0",
}
"""Baselines of MindSpeed-LLM that were last updated before it was based on Megatron 0.12.1, each with its release,
according to the history of tests/pipeline. The others are of later ones."""

LAUNCHER = (
    "--nnodes",
    "--node_rank",
    "--nproc_per_node",
    "--tee",
    "--redirects",
    "--log-dir",
    "--master_addr",
    "--master_port",
)


class Unit(NamedTuple):
    """One pipeline stage of a measured run; bytes. estimate: that of the peak, or None with the reason."""

    name: str
    args: dict[str, Any]
    measured: float
    steady: float | None
    estimate: float | None
    steady_estimate: float | None
    workspace: float
    why: str = ""
    least: float = 0.0  # sum of the terms' low ends, of which the low bound is a share; the low end of a range
    most: float = 0.0  # the high end, of a range

    @property
    def error(self) -> float:
        """Relative error of the peak."""
        assert self.estimate is not None
        return self.estimate / self.measured - 1


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def words(args: dict[str, Any]) -> list[str]:
    """Arguments as a command's words."""
    found: list[str] = []
    for name, value in args.items():
        if name in LAUNCHER or value is False:
            continue
        found.append(name)
        if value is not True and value is not None:
            found.extend([str(value)] if not isinstance(value, str) or value.startswith(("[", "(")) else value.split())
    return found


def megatron(data: Path) -> list[Unit]:
    """The last pipeline stage of Megatron-LM's recordings."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(data / "megatron-measured.jsonl"):
        if (
            row["phase"] == 1
            and row["model"] in ("gpt", "moe", "mixtral")
            and row.get("world_size")
            and (row.get("mem_max_allocated_bytes") or 0) >= LEAST
        ):
            groups.setdefault((row["cfg_hash"], row["platform"]), []).append(row)
    return [_megatron_unit(group) for group in groups.values()]


def _megatron_unit(group: list[dict[str, Any]]) -> Unit:
    row = group[0]
    environment = {name: str(value) for name, value in (row.get("env_vars") or {}).items()}
    command = [row.get("script") or "pretrain_gpt.py", *words(row["args"])]
    report = preflight.check_command(
        command,
        world_size=row["world_size"],
        env=environment,
        device=(row["platform"] or "").lower() or None,
        target="megatron",
    )
    assert report.plan is not None
    estimate = preflight.estimate_memory(report.plan)
    measured = statistics.median(one["mem_max_allocated_bytes"] for one in group)
    steady = statistics.median(one["mem_allocated_bytes"] for one in group) if row.get("mem_allocated_bytes") else None
    name = f"{row['case']} {row['platform'] or ''}".strip()
    if not estimate.stages:
        return Unit(name, row["args"], measured, steady, None, None, 0.0, "; ".join(estimate.unknown))
    last = estimate.stages[-1]
    if is_range(estimate, report.plan):
        why = f"a range: {'; '.join(estimate.taken)}"
        return Unit(name, row["args"], measured, steady, None, None, 0.0, why, last.low, last.required)
    workspace = sum(term.high for term in last.terms if term.name == "workspaces")
    return Unit(
        name, row["args"], measured, steady, last.allocated_peak, last.steady, workspace, least=last.low / last.sure
    )


def is_range(estimate: MemoryEstimate, plan: Plan) -> bool:
    """Whether an estimate is no point: something has no formula, or its two ends are far apart."""
    return bool(estimate.taken) and (bool(plan.unmodelled) or estimate.wide)


def ascend(data: Path) -> list[Unit]:
    """Every recorded stage of MindSpeed-LLM's baselines, which were read after the first step."""
    return [unit for row in rows(data / "published.jsonl") if "memo_mib" in row for unit in _ascend_units(row)]


def _older(argv: list[str]) -> list[str]:
    """Words with the option names before 2.2; the scripts have been updated since."""
    names = {f"--{new}".replace("_", "-"): old.removeprefix("deprecated_") for old, (new, _) in RENAMED.items()}
    return [f"--{names[word]}".replace("_", "-") if word in names else word for word in argv]


def _ascend_units(row: dict[str, Any]) -> Iterator[Unit]:
    environment = {name: str(value) for name, value in row["env"].items()}
    recorded = RECORDED.get(row["case"])
    command = ["pretrain_gpt.py", *(_older(words(row["config"])) if recorded else words(row["config"]))]
    target = f"mindspeed-llm@{recorded or '26.1.0'}"
    report = preflight.check_command(command, world_size=row["world_size"], env=environment, target=target)
    estimate = preflight.estimate_memory(report.plan, "910b") if report.plan is not None else None
    if estimate is None or not estimate.stages:
        yield Unit(
            row["case"],
            row["config"],
            1.0,
            None,
            None,
            None,
            0.0,
            "; ".join(estimate.unknown) if estimate else "not read",
        )
        return
    per_stage = row["world_size"] // len(estimate.stages)
    for stage in estimate.stages:
        here = [rank for rank in row["memo_mib"] if rank["rank"] // per_stage == stage.index]
        if here:
            peak, steady = (
                statistics.median(rank[name] * 2**20 for rank in here)
                for name in ("max allocated memory", "allocated memory")
            )
            name = f"{row['case']} stage {stage.index}"
            if is_range(estimate, report.plan):
                why, least = f"a range: {'; '.join(estimate.taken)}", stage.sure * _first(stage)
                yield Unit(name, row["config"], peak, steady, None, None, 0.0, why, least, stage.required)
                continue
            found = (stage.first_step, stage.steady)
            yield Unit(name, row["config"], peak, steady, *found, 0.0, least=_first(stage))


def _first(stage: Stage) -> float:
    """The low end during the first step, before there are moments."""
    moments = sum(term.low for term in stage.terms if term.name == "optimizer states")
    return max(stage.low / stage.sure - moments, sum(term.low for term in stage.terms if term.kind == "steady"))
