"""The target that asks the gate."""

from __future__ import annotations

from preflight.gate.server import _submission
from preflight.gate.text import told
from preflight.gate.verdict import Policies, judge
from preflight.source import InputError

from . import configs
from .checks import script_text
from .choices import Choices


def gate(choices: Choices) -> None:
    """A question to the gate: never an exception, always a verdict."""
    asked: dict[str, str] = {}
    for key in ("nodes", "devices_per_node", "world", "user", "name", "kind", "override"):
        if choices.below(3) == 0:
            asked[key] = choices.of(("1", "8", "0", "x", "٣", "²", "1" * 5000, "-1", "1e3", "\x1b[0m", "sbatch", "manifest", "a.yaml", "../x", "\u202e", ""))
    body = [lambda: script_text(choices).encode("utf-8", "replace"), lambda: choices.data, lambda: configs.yaml_text(choices, "graph")[0].encode()][
        choices.below(3)
    ]()
    try:
        submission = _submission(asked, body)
    except InputError:
        return
    verdict = judge(submission, configs.plugins(), Policies(seconds=0))
    assert verdict.code != 3, verdict.problem
    verdict.as_dict()
    assert all(line.isprintable() for line in told(verdict)), told(verdict)
