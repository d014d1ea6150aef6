"""The house rules that can be tested: floors, sizes, packages, pages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Container, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from house import MODULES, ROOT, RULES, each, nodes, shown, tree

import preflight

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FLOORS = [
    ("source",),
    ("loaders",),
    ("run",),
    ("memory",),
    ("steptime", "job"),
    ("lint",),
    ("program",),
    ("dialects",),
    ("frontends", "site"),
    ("plugins", "plugin"),
    ("checking",),
    ("fix",),
    ("layouts", "logs", "api"),
    ("report",),
    ("gate", "lsp", "mcp", "testing"),
    ("cli",),
]
FACE = ("__init__", "__main__")  # names and the way in: they hold nothing that another module uses
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FORBIDDEN_NAMES = {"utils", "common", "misc", "base", "helpers"}


def home(module: str) -> str:
    """The package, or the module at the root, that a dotted name below preflight lives in."""
    return module.split(".")[1]


def imported(tree: ast.AST) -> set[str]:
    """Modules of preflight that a module imports, type checking and function bodies included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "preflight" else [node.module]
            )
            found |= {name for name in names if name.startswith("preflight.")}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("preflight.")}
    return found


def named(tree: ast.AST) -> set[str]:
    """Dotted names that a module imports, with the imported names, function bodies included:
    modules are among them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def used(tree: ast.AST, modules: Container[str]) -> set[str]:
    """The modules that a module imports, function bodies included: a package only for its own names."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {one if one in modules else node.module for one in inner}
    return {one for one in found if one in modules}


def test_no_module_imports_itself_by_way_of_others() -> None:
    paths = {path: path.relative_to(ROOT).with_suffix("").parts for path in MODULES if path.parent.name != "preflight"}
    modules = {".".join(parts).removesuffix(".__init__"): path for path, parts in paths.items()}
    graph = {name: used(tree(path), modules) for name, path in modules.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


@each(MODULES, shown)
def test_imports_go_down_only(path: Path) -> None:
    name = home(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if name in FACE:
        return
    assert name in FLOOR, f"{name} has no floor; give it one in FLOORS"
    used = {home(module) for module in imported(tree(path))} - {
        name,
        "schemas",
        "__version__",
    }
    assert used <= set(FLOOR), f"without a floor in FLOORS: {', '.join(sorted(used - set(FLOOR)))}"
    up = {other for other in used if FLOOR[other] >= FLOOR[name]}
    assert not up, f"{shown(path)} (floor {FLOOR[name]}) imports {', '.join(f'{o} ({FLOOR[o]})' for o in sorted(up))}"


def test_the_listing_is_short() -> None:
    assert len(list((ROOT / "preflight").glob("*.py"))) <= 7
    assert len(FLOORS) <= 16


@each([*MODULES, *RULES], shown)
def test_sizes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 450
    assert path.stem not in FORBIDDEN_NAMES
    long = [f"{f.name} has {length} lines" for f, length in functions(path) if length > 40]
    assert not long, long


SMALL = 80
LOADS_ALONE = {
    "preflight/dialects/megatron/names_in_constraints.py": "rules import its names from the package",
    "preflight/program/inspect_signature.py": "one kind of built-in function, in a chain of classes",
    "preflight/lsp/configuration.py": "what an editor states, apart from what it asks",
    "preflight/lsp/suppression_edit.py": "an edit that is tried out, apart from the diagnostics",
    "preflight/report/markdown.py": "a format of its own, loaded by its name",
}
"""Small modules with a single importer next to them, and why they are separate."""


def test_small_modules_with_one_neighbour_are_part_of_it() -> None:
    users: dict[str, set[str]] = {}
    for path in [*MODULES, *RULES]:
        for name in named(tree(path)):
            users.setdefault(name, set()).add(shown(path))
    alone = set()
    for path in (p for p in MODULES if p.stem != "__init__"):
        importers = users.get(".".join(path.relative_to(ROOT).with_suffix("").parts), set())
        next_door = len(importers) == 1 and Path(next(iter(importers))).parent == Path(shown(path)).parent
        if next_door and len(path.read_text(encoding="utf-8").splitlines()) < SMALL:
            alone.add(shown(path))
    assert alone == set(LOADS_ALONE)


DECIDES = "preflight/lint/severity_downgrades.py"


@each([path for path in MODULES if shown(path) != DECIDES], shown)
def test_one_module_decides_how_certain_an_error_is(path: Path) -> None:
    calls = (node for node in nodes(path) if isinstance(node, ast.Call))
    made = [
        node.lineno
        for node in calls
        if isinstance(node.func, ast.Name)
        and node.func.id == "replace"
        and any(keyword.arg == "severity" and isinstance(keyword.value, ast.Attribute) for keyword in node.keywords)
    ]
    assert not made, f"{DECIDES} lowers findings: lines {made}"


ENDS = ("startswith", "endswith")
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
READS_WORDS = {
    "preflight/lint/condition_in_words.py": "writes English: its own clauses",
    "preflight/lint/condition_simplification.py": "the name of an operator",
    "preflight/memory/estimate.py": "the name of a term",
    "preflight/memory/peak.py": "the name of a term",
    "preflight/program/judge.py": "an outcome of three, held by its type",
    "preflight/checking/program_findings.py": "an outcome of three, held by its type",
    "preflight/job.py": "an outcome of three, held by its type",
    "preflight/fix/migration.py": "a state of an outcome, held by its type",
    "preflight/report/memory.py": "puts 'not known' before names, and not before sentences",
    "preflight/steptime/layout_and_plan_traits.py": "a name of what is overlapped",
    "preflight/logs/prefixes.py": "what Ray writes into a log",
    "rules/mindformers/replaced_by_trainer.py": "the condition of a switch, as the framework writes it",
}


def test_nothing_decides_by_text_that_people_read() -> None:
    found = {shown(path) for path in [*MODULES, *RULES] for node in nodes(path) if _asks_a_sentence(node)}
    assert found == set(READS_WORDS)


def _asks_a_sentence(node: ast.AST) -> bool:
    return any(SENTENCE.search(text) for text in _asked(node))


def _asked(node: ast.AST) -> Iterator[str]:
    """The constant texts that a comparison, or a question about a beginning or an end, has."""
    if isinstance(node, ast.Compare):
        sides = [part for side in (node.left, *node.comparators) for part in getattr(side, "elts", (side,))]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ENDS:
        sides = [part for side in node.args for part in getattr(side, "elts", (side,))]
    else:
        return
    yield from (part.value for part in sides if isinstance(part, ast.Constant) and isinstance(part.value, str))


OPENS_TABLES = re.compile(r"preflight\.schemas|\bschemas\.__file__")


@each([*MODULES, *RULES], shown)
def test_one_function_reads_the_tables(path: Path) -> None:
    code = [n.value for n in nodes(path) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    described = {ast.get_docstring(n, clean=False) for n in nodes(path) if isinstance(n, ast.Module)}
    found = [text for text in code if text not in described and OPENS_TABLES.search(text)]
    assert not found, f"schemas.read(name) reads a table: {found}"


def functions(path: Path) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    found = [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node, (node.end_lineno or node.lineno) - node.lineno + 1 - _described(node)) for node in found]


def _described(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function's docstring, which may be the page of a rule."""
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def test_nine_of_ten_functions_have_25_lines_at_most() -> None:
    lengths = sorted(length for path in [*MODULES, *RULES] for _, length in functions(path))
    assert lengths[len(lengths) * 9 // 10] <= 25


@each(MODULES, shown)
def test_public_names_say_what_they_are(path: Path) -> None:
    public = [
        node
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    bare = [node.name for node in public if ast.get_docstring(node) is None and not node.decorator_list]
    assert not bare, f"without a docstring: {', '.join(bare)}"
    assert ast.get_docstring(tree(path)) is not None or not tree(path).body, "the module has no docstring"


@each([p for p in MODULES if "cli" not in p.parts], shown)
def test_only_the_command_line_prints(path: Path) -> None:
    assert not [
        node.lineno
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def test_the_package_list_is_what_is_on_disk() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    disk = {
        "preflight." + ".".join(p.parent.relative_to(ROOT / "preflight").parts)
        for p in (ROOT / "preflight").rglob("__init__.py")
    }
    disk |= {
        "preflight." + ".".join(p.parent.relative_to(ROOT).parts)
        for top in ("rules", "schemas")
        for p in (ROOT / top).rglob("__init__.py")
    }
    pages = {"preflight.pages"}  # the pages of rules, which are no modules
    assert set(project["packages"]) == {name.rstrip(".") for name in disk} | pages
    stray = [shown(p) for p in [*MODULES, *RULES] if not (p.parent / "__init__.py").exists()]
    assert not stray, f"in folders without __init__.py: {stray}"


def test_the_face_is_small_and_whole() -> None:
    assert len(preflight.__all__) <= 28
    assert all(hasattr(preflight, name) for name in preflight.__all__)


HEAVY = (
    "jsonschema",
    "ruamel",
    "rich",
    "numpy",
    "pydantic",
    "pygments",
    "matplotlib",
    "asyncio",
    "typing",  # preflight.source.typing_without_import has the names
    "preflight.fix.fixer",
    "preflight.testing",
)


def test_the_check_path_imports_nothing_heavy() -> None:
    program = (
        "import sys; before = {*sys.modules}; "
        "import preflight.checking.configured_checker, preflight.cli.check, preflight.report.text; "
        f"print(*(m for m in {HEAVY!r} if m in sys.modules.keys() - before))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == ""
    )


def test_the_version_loads_nothing_at_all() -> None:
    program = "import sys; sys.argv[1:] = ['--version']; from preflight.cli import main; main(); "
    program += "print(*(m for m in ('typer', 'click', 'yaml', 'pluggy') if m in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == f"preflight {preflight.__version__}\n\n"
    )


def test_every_data_file_is_packaged() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    files = [
        p for top in ("preflight", "schemas") for p in (ROOT / top).rglob("*") if p.is_file() and "/." not in shown(p)
    ]
    data = [p for p in files if p.suffix not in (".py", ".pyc")]
    packaged = {p for p in (ROOT / "preflight").glob("*") if p.is_file()}
    for package, globs in patterns.items():
        folder = ROOT / package.replace("preflight.", "", 1).replace(".", "/")
        packaged |= {p for glob in globs for p in folder.glob(glob)}
    assert not [shown(p) for p in data if p not in packaged]
