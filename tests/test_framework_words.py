"""Framework-specific words occur only in code that reads a framework."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house import MODULES, ROOT, each, nodes, shown, tree

FRAMEWORKS = re.compile(r"megatron|mindformers|mindspeed|pynative|MODEL_ARGS", re.IGNORECASE)
KNOW_FRAMEWORKS = {
    "preflight/plugins/builtin.py": "registers the dialects and the rules",
    "preflight/program/judge.py": "picks the order in which a trainer's own functions run",
    "preflight/program/megatron.py": "is that order, for one trainer",
    "preflight/program/mindformers.py": "is that order, for a trainer that reads a configuration file",
    "preflight/program/mindspore.py": "answers for the library that this trainer stands on",
    "preflight/program/mindspeed.py": "is that order, for a trainer around another",
    "preflight/loaders/launcher_options.py": "accelerate has an option of that name",
    "preflight/report/upstream_check_coverage.py": "names the data file that it shows",
    "preflight/program/mindformers_start_without_script.py": "is how that trainer starts where no script says it",
    "preflight/logs/signatures.py": "says what texts of libraries mean, and libraries say their names",
    "preflight/logs/checkpoint_errors.py": "says what texts about checkpoints mean, and a loader says its releases",
    "preflight/logs/stages.py": "tells parts of a run by the files that a traceback names",
    "preflight/logs/exception_origin.py": "tells programs apart by the paths in a traceback",
    "preflight/program/checkpoint_arguments.py": "runs that trainer's own loader of a checkpoint's arguments",
    "preflight/mcp/server.py": "says to agents what is read, with an example of a release",
    "preflight/lint/constraint_page.py": "writes the names of frameworks as prose has them",
    "preflight/cli/new_rule.py": "writes the first check of a framework's topic file",
}
BY_ID = {"preflight/report/rule_pages.py": "groups the list of rules by the first part of their ids"}
READ_FRAMEWORKS = {"dialects", "frontends", "checkout", "site"}
"""Folders about framework-specific text."""
NEUTRAL = [p for p in MODULES if not READ_FRAMEWORKS.intersection(p.parts) and shown(p) not in KNOW_FRAMEWORKS]


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of descriptive texts: docstrings, and texts below a name."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def spoken(tree: ast.AST) -> list[str]:
    """The names and texts of a module that are more than a description."""
    skipped = docstrings(tree)
    texts = [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in skipped
    ]
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)] + [
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
    ]
    modules = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    helped = [n.value for n in ast.walk(tree) if isinstance(n, ast.Call) for n in help_texts(n)]
    return [text for text in (*texts, *names, *modules) if text not in helped]


def help_texts(call: ast.Call) -> list[ast.Constant]:
    """The help of a command's options: examples may name a framework."""
    return [k.value for k in call.keywords if k.arg in ("help", "metavar") and isinstance(k.value, ast.Constant)]


@each(NEUTRAL, shown)
def test_neutral_code_knows_no_framework(path: Path) -> None:
    known = [text for text in spoken(tree(path)) if FRAMEWORKS.search(text)]
    assert not known, f"{known}: a dialect sets a typed field, and neutral code asks that"


@each([p for p in [*NEUTRAL, *sorted((ROOT / "rules").glob("*.py"))] if shown(p) not in BY_ID], shown)
def test_neutral_code_asks_typed_fields(path: Path) -> None:
    """Neither the id of a rule, nor a framework's name, nor (below preflight)
    an argument by its name decides anything."""
    asked = [ast.unparse(n) for n in nodes(path) if isinstance(n, ast.Compare) and asks_a_name(n)]
    neutral = path in MODULES
    asked += [ast.unparse(n) for n in nodes(path) if neutral and isinstance(n, ast.Call) and reads_an_argument(n)]
    assert not asked, asked


def asks_a_name(compare: ast.Compare) -> bool:
    sides = [compare.left, *compare.comparators]
    texts = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
    about_rules = any(ast.unparse(side) in ("rule.id", "finding.rule", "f.rule") for side in sides)
    return bool(texts) and (about_rules or any(FRAMEWORKS.search(text) for text in texts))


def reads_an_argument(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    return function.endswith(("arguments.get", "arguments.given")) and isinstance(call.args[0], ast.Constant)
