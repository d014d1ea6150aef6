"""The number of configs that a framework rejects and that get a working fix:
`python benchmarks/fixes.py DATA [--every N] [--only NAME] [--show K]`.

DATA holds megatron.jsonl, mindspeed-launches.jsonl, mindspeed-probes.jsonl, mindformers.jsonl: rows with a command line
or a YAML text, the world size and the framework's own verdict. A row counts as fixed if the fixes change at most
three settings, keep the model's shape and the global batch unless a finding reports these as the fault,
and the edited config has no error left.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.fix.edit_integrity import flags
from preflight.fix.fixer import fix
from preflight.layouts.layout_fixes import suggest
from preflight.loaders import load
from preflight.loaders.command_line import load_command
from preflight.loaders.document import Document, Node
from preflight.run.request import Request, Target
from preflight.source.finding import Severity
from preflight.source.source_file import InputError, Source

MOST_SETTINGS = 3
DEVICES = {7: "v100", 9: "h100", 10: "gb200"}
KEPT = re.compile(
    r"--(num-layers|hidden-size|ffn-hidden-size|num-attention-heads|num-query-groups|kv-channels|seq-length|"
    r"max-position-embeddings|num-experts|"
    r"moe-ffn-hidden-size|moe-router-topk|mtp-num-layers|global-batch-size|hybrid-layer-pattern|vocab-size)(?![\w-])|"
    r"\b(num_layers|num_hidden_layers|hidden_size|num_heads|num_attention_heads|n_kv_heads|num_key_value_heads|"
    r"intermediate_size|seq_length|vocab_size|"
    r"expert_num|num_experts|global_batch_size)$"
)


class Case(NamedTuple):
    """A rejected config: its name, the change made to it, its text, and the stated facts."""

    name: str
    what: str
    source: Source
    request: Request


def cases(data: Path) -> Iterator[tuple[str, Case]]:
    """Every rejected row, with the name of its file."""
    readers = {
        "megatron": megatron_case,
        "mindspeed-launches": launch_case,
        "mindspeed-probes": probe_cases,
        "mindformers": mindformers_case,
    }
    for name, read in readers.items():
        yield from ((name, case) for row in rows(data / f"{name}.jsonl") for case in read(row))


def megatron_case(row: dict[str, Any]) -> Iterator[Case]:
    if not row["accept"]:
        entry = "pretrain_hybrid.py" if row.get("entry") == "hybrid" else "pretrain_gpt.py"
        device = DEVICES.get(row.get("arch"))
        yield command(row["id"], str(row["mutations"]), [entry, *row["args"]], row, "megatron@0.20.0", device)


def launch_case(row: dict[str, Any]) -> Iterator[Case]:
    if row["status"] != "accept":
        yield command(row["id"], str(row["where"]), [row["entry"], *row["argv"]], row, "mindspeed-llm")


def probe_cases(row: dict[str, Any]) -> Iterator[Case]:
    for stack, target in (("llm", "mindspeed-llm"), ("core", "mindspeed")):
        if row.get(stack) and row[stack]["status"] != "accept":
            case, where = row["case"], str(row[stack]["where"])
            yield command(f"{case['id']}@{stack}", where, ["pretrain_gpt.py", *case["argv"]], case, target)


def mindformers_case(row: dict[str, Any]) -> Iterator[Case]:
    if not row["accept"] or row.get("runtime_reject"):
        target = Target.parse(f"mindformers@{row['tag'].lstrip('v')}")
        request = Request(world_size=row["world_size"], target=target)
        yield Case(row["id"], row["mutation"], Source(row["yaml"], Path(row["base"]).name), request)


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def command(name: str, what: str, words: list[str], row: Any, target: str, device: str | None = None) -> Case:
    environment = {key: str(value) for key, value in (row.get("env") or {}).items()}
    return Case(
        name,
        what,
        load_command(words).source,
        Request(row["world_size"], None, None, device, Target.parse(target), environment),
    )


def errors(report: Report) -> list[str]:
    return [f.rule for f in report.findings if f.severity is Severity.ERROR and f.rule != "predicted-oom"]


def settings(document: Document) -> dict[str, object]:
    """Every setting of a config by name."""
    if document.launch is not None:
        variables = {name: word.text for name, word in document.launch.environment.items()}
        return {**flags(document.launch.words), **variables}
    return dict(leaves(document.tree, "")) if document.tree is not None else {}


def leaves(node: Node, path: str) -> Iterator[tuple[str, object]]:
    """Scalars and lists by dotted key."""
    for entry in node.entries:
        key = f"{path}.{entry.key.value}".lstrip(".")
        if entry.value.kind == "mapping":
            yield from leaves(entry.value, key)
        else:
            yield key, repr(entry.value.plain())


def judge(case: Case) -> tuple[str, str]:
    """The result of a case, and the details."""
    workspace = Workspace([case.source], installed(), case.request)
    try:
        before = workspace.check()
    except InputError as error:
        return "unreadable", error.message
    if not errors(before):
        return "not found", ""
    rules = set(errors(before))
    for _ in range(3):  # only errors, and those that appear once they are fixed
        result = fix(workspace, unsafe=True, wanted=lambda finding: finding.rule in rules, suggest=suggest)
        if rules.issuperset(errors(result.report)):
            break
        rules.update(errors(result.report))
    if left := errors(result.report):
        why = [(o.finding.rule, o.state, o.detail) for o in result.outcomes if o.finding.rule in left]
        return "left", f"{why}"
    was, now = (settings(load(source)[0]) for source in (case.source, result.edited.get(case.source.name, case.source)))
    changed = sorted(name for name in {**was, **now} if was.get(name) != now.get(name))
    if len(changed) > MOST_SETTINGS:
        return "too much", f"{changed}"
    told = " ".join(f"{'.'.join(map(str, f.key))} {f.message}" for f in before.findings if f.severity is Severity.ERROR)
    if wrong := [name for name in changed if KEPT.search(name) and not any(word in told for word in words_for(name))]:
        return "changes what is trained", f"{wrong}: {told}"
    return "fixed", f"{changed}"


def words_for(name: str) -> tuple[str, ...]:
    """How a finding may speak of a setting: its flag, its name, or its last word ("heads")."""
    plain = name.rpartition(".")[2].strip("-").replace("-", "_")
    last = plain.rpartition("_")[2]
    return (name, plain, plain.replace("_", " "), *((last,) if last in ("heads", "layers", "groups") else ()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every N-th row")
    parser.add_argument("--only", default="", help="one file by name")
    parser.add_argument("--show", type=int, default=0, help="show K rows of every outcome but fixed")
    options = parser.parse_args()
    found = [item for item in cases(options.data) if item[0].startswith(options.only)]
    for name in dict.fromkeys(name for name, _ in found):
        start, outcomes, rules = time.perf_counter(), Counter[str](), Counter[str]()
        for case in [case for other, case in found if other == name][:: options.every]:
            state, detail = judge(case)
            outcomes[state] += 1
            if state != "fixed":
                rules.update(re.findall(r"\('([^']+)', '", detail))
                if outcomes[state] <= options.show:
                    print(f"{state}: {case.name} {case.what} | {detail[:300]}")
        total = sum(outcomes.values())
        print(
            f"{name}: {outcomes['fixed']} of {total} fixed ({outcomes['fixed'] / total:.0%}), "
            f"{dict(outcomes)}, {time.perf_counter() - start:.0f} s"
        )
        if options.show:
            print(f"  left: {rules.most_common()}")


if __name__ == "__main__":
    main()
