"""Messages: a template and its values, in every rule; and the style that templates keep."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from house import each, nodes, tree

from preflight import Finding, Message, Severity
from preflight.lint.constraint import Constraint
from preflight.plugins.manager import load
from preflight.source.finding import placeholders
from preflight.source.source_file import Source

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "preflight").rglob("*.py"), *(ROOT / "rules").rglob("*.py")])
PLACE = Source("a", "b").span(0)


def test_a_message_is_its_text_and_knows_its_parts() -> None:
    message = Message(
        "{a} is not divisible by {b!r} ({c:.1f}, {d}, {d:and}, {e.f} {{}})",
        a=3,
        b="x",
        c=2.25,
        d=("p", "q"),
        **{"e.f": 1},
    )
    assert message == "3 is not divisible by 'x' (2.2, p, q, p and q, 1 {})"
    finding = Finding(message, PLACE)
    assert (finding.message, finding.template, finding.values["a"]) == (message, message.template, 3)


def test_a_message_may_be_part_of_another() -> None:
    hint = Message("; did you mean {near}", near="b")
    assert Message("there is no {name}{hint}", name="a", hint=hint) == "there is no a; did you mean b"


def test_one_is_no_plural() -> None:
    told = [Message.plural(n, "{n} head does not divide", "{n} heads do not divide", n=n) for n in (1, 2)]
    assert told == ["1 head does not divide", "2 heads do not divide"]


def test_a_placeholder_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="b"):
        Message("{a} {b}", a=1)


def test_a_plain_text_is_taken_as_it_stands() -> None:
    finding = Finding("use ${HOME}, not {0}", PLACE)
    assert (finding.message, finding.values) == ("use ${HOME}, not {0}", {})
    assert Message(finding.template) == finding.message


def test_findings_survive_copies() -> None:
    finding = Finding(Message("{a} is not {b}", a=1, b=2), PLACE, severity=Severity.ERROR)
    copy = pickle.loads(pickle.dumps(finding.message))
    assert (copy, copy.template, copy.values) == ("1 is not 2", "{a} is not {b}", {"a": 1, "b": 2})
    changed = replace(finding, rule="r")
    assert (changed.template, changed.values) == (finding.template, finding.values)
    assert changed != finding and replace(changed, rule="") == finding


MADE_AT_IMPORT = {
    "rules/megatron/hybrid_pattern.py": "templates of declared checks, one an option",
    "rules/megatron/known_defects.py": "reasons of declared checks, with the address of a report",
    "rules/mindformers/launch.py": "templates of declared checks, one a key",
    "rules/mindformers/sparse_attention.py": "templates of declared checks, one a dialect",
    "rules/mindformers/hyper_connections.py": "templates of declared checks, one a dialect",
    "rules/mindformers/network_forms.py": "templates of declared checks, one a dialect",
    "rules/mindspeed/lost.py": "templates of declared checks, one an option",
    "rules/mindspeed/shorthand.py": "templates of declared checks, one a pair of options",
    "rules/__init__.py": "an error of a programmer",
}
NO_MESSAGE = (
    "Fix",
    "Related",
    "Unverified",
    "InputError",
    "ValueError",
    "KeyError",
    "TypeError",
    "unknown",
    "derived",
    "default",
)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def formatted(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.JoinedStr]]:
    """The f-strings of a module, each with the function it is passed to."""
    for child in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func).rpartition(".")[2]
        if isinstance(child, ast.JoinedStr):
            yield inside, child
        else:
            yield from formatted(child, name)


def words(text: ast.JoinedStr) -> str:
    return "".join(part.value for part in text.values if isinstance(part, ast.Constant))


@each([p for p in MODULES if "rules" in p.parts[:-1] and shown(p) not in MADE_AT_IMPORT], shown)
def test_rules_put_no_values_into_sentences(path: Path) -> None:
    """An f-string with a blank is a sentence: a report must use a template instead."""
    found = formatted(tree(path))
    sentences = [words(text) for function, text in found if " " in words(text) and function not in NO_MESSAGE]
    assert not sentences, sentences


@each(MODULES, shown)
def test_no_finding_is_made_of_an_f_string(path: Path) -> None:
    made = [
        n
        for n in nodes(path)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in ("Finding", "Problem", "Fault", "_Fault")
    ]
    texts = {name for call in made for arg in call.args[:2] for name in named(arg)}
    wrong = [n.lineno for call in made for arg in call.args[:2] for n in ast.walk(arg) if isinstance(n, ast.JoinedStr)]
    for node in nodes(path):
        if isinstance(node, ast.Assign | ast.AugAssign) and texts & {name for t in targets(node) for name in named(t)}:
            wrong += [
                n.lineno for n in ast.walk(node.value) if isinstance(n, ast.JoinedStr) and " " in words(n).strip()
            ]
    assert not wrong, f"lines {wrong}"


def targets(node: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def named(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in ("message", "said", "text", "hint", "why")
    }


@cache
def templates() -> dict[str, str]:
    """Every template: those that rules and loaders pass to Message, and the messages of declared checks, each with its
    location."""
    found = {rule.message: rule.id for rule in load().rules(None) if isinstance(rule, Constraint)}
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Call) and _is_message(node.func):
                for arg in node.args:
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                        found[arg.value] = f"{shown(path)}:{node.lineno}"
    return found


def _is_message(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and function.attr == "plural":
        function = function.value
    return isinstance(function, ast.Name) and function.id == "Message"


PROPER = frozenset(
    """
    ALiBi Adam BlendedMegatronDatasetDataLoader CUDA DeepEP DeepSeek-V4 FFN FP8 GPT2 GRPO Hydra LoRA Mamba Megatron-FSDP
    MindSpeed-LLM Muon NCCL Primus Ray SHARP SwiGLU Torch Transformer UCC
    """.split()
)
"""Names, which keep their capitals at the start of a sentence."""


def test_there_are_templates() -> None:
    assert len(templates()) > 1200


@each(lambda: sorted(templates()), lambda template: templates()[template])
def test_a_template_is_one_sentence_in_lower_case(template: str) -> None:
    where = templates()[template]
    assert not template.endswith("."), where
    assert not re.search(r"[a-z]\. [A-Z]", template), f"{where}: two sentences"
    first = re.match(r"[\w-]*", template.lstrip(";,: "))
    assert first is None or not first[0][:1].isupper() or first[0] in PROPER, f"{where}: begins with a capital"
    assert all(re.fullmatch(r"[A-Za-z_][\w.]*", name) for name in placeholders(template)), where
