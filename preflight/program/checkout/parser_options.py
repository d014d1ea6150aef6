"""The options that Python code adds to a parser, from its syntax tree: nothing is imported or executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator

from preflight.source import cache_folder
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

ADDS = "add_argument"
GENERATES = "ArgumentGroupFactory"
"""The function with which Megatron-LM generates options from the fields of its configuration classes, since 0.16."""
WIDENS = "argument_choices_value"
"""How MindSpeed's function ends that adds a choice to an option of Megatron-LM."""
FOLDER = "parsers-3"
_KINDS = {"int": "int", "float": "float", "str": "str"}
_SWITCHES = {"store_true": "true", "store_false": "false"}
_OPTION = re.compile(r"""["'](--[A-Za-z][\w-]*)["']""")


class OwnOption(NamedTuple):
    """An option added by code. kind: "" if only a function of the code knows how its text is converted."""

    option: str
    dest: str
    kind: str
    default: Any = None
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    also: tuple[str, ...] = ()


def own_options(text: str) -> tuple[OwnOption, ...]:
    """The options that a file adds, cached between calls by its content."""
    if not adds_options(text):
        return ()
    name = f"{FOLDER}/{cache_folder.digest(text)}.json"
    try:
        rows = json.loads(cache_folder.read(name) or "")
        return tuple(_kept(*row) for row in rows)
    except (ValueError, TypeError, IndexError):
        found = _all_added(text)
        cache_folder.write(name, json.dumps(found, default=str))
        return found


def adds_options(text: str) -> bool:
    """Whether code may add options, or defines classes that options are generated from."""
    return ADDS in text or WIDENS in text or "@dataclass" in text


_GIVEN = re.compile(r"(?m)^[ \t]{1,40}(?:parser[ \t]*=[ \t]*)?([A-Za-z_]\w*)\(parser\b")
_IMPORTED = re.compile(r"(?m)^[ \t]{0,40}from[ \t]+([A-Za-z_]\w*)(?:\.[\w.]*)?[ \t]+import[ \t]+([^#\n]{1,300})")


def helpers(text: str) -> frozenset[str]:
    """The packages from which a file imports functions that it hands its parser to."""
    given = frozenset(_GIVEN.findall(text))
    imported = ((package, re.findall(r"\w+", names)) for package, names in _IMPORTED.findall(text))
    return frozenset(package for package, names in imported if not given.isdisjoint(names))


def _kept(option: str, dest: str, kind: str, default: Any, nargs: Any, choices: Any, also: Iterable[str]) -> OwnOption:
    return OwnOption(option, dest, kind, default, nargs, tuple(choices) if choices is not None else None, tuple(also))


def mentioned(texts: Iterable[str]) -> frozenset[str]:
    """Every string that looks like an option."""
    return frozenset(option for text in texts for option in _OPTION.findall(text))


def _all_added(text: str) -> tuple[OwnOption, ...]:
    try:
        return tuple(_added(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _added(tree: ast.Module) -> Iterator[OwnOption]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_adds(node) or _hands_on(node)):
            if (found := _option(node)) is not None:
                yield found
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith(WIDENS):
            yield from _widened(node)
        elif isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            yield from _fields(node)


def _adds(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr.startswith(ADDS)


def _hands_on(call: ast.Call) -> bool:
    """Whether a call passes a parser and an option to a function: reset_arg(parser, "--x", type=int)."""
    if not isinstance(call.func, ast.Name) or len(call.args) < 2 or not isinstance(call.args[0], ast.Name):
        return False
    option = call.args[1]
    on = call.args[0].id in ("parser", "group")
    return on and isinstance(option, ast.Constant) and str(option.value).startswith("--")


def _widened(call: ast.Call) -> Iterator[OwnOption]:
    """A choice added to an option of other code."""
    said = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if len(said) == 2 and isinstance(said[0], str) and said[0].startswith("--"):
        yield OwnOption(said[0], said[0][2:].replace("-", "_"), "", choices=(said[1],))


def _option(call: ast.Call) -> OwnOption | None:
    spellings = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = [one for one in spellings if one.startswith("--")]
    if not long:
        return None
    said = {one.arg: one.value for one in call.keywords if one.arg}
    dest = _literal(said.get("dest")) or long[0][2:].replace("-", "_")
    kind = _kind(said) if _adds(call) or "type" in said or "action" in said else _handed(call)
    nargs, choices, default = (_literal(said.get(name)) for name in ("nargs", "choices", "default"))
    if "nargs" in said and nargs is None:
        nargs = "*"
    listed = tuple(choices) if isinstance(choices, (list, tuple)) else None
    also = tuple(one for one in spellings if one != long[0])
    return OwnOption(long[0], str(dest), kind, default, nargs if nargs != "?" else "*", listed, also)


def _kind(said: dict[str, ast.expr]) -> str:
    """The type of an option; "" if a function of the code converts its text."""
    action = said.get("action")
    if action is not None:
        named = _literal(action)
        if named is None:
            return "pair" if ast.unparse(action).endswith("BooleanOptionalAction") else ""
        return _SWITCHES.get(named, "" if named != "store" else "str")
    reader = said.get("type")
    return "str" if reader is None else _KINDS.get(ast.unparse(reader), "")


def _handed(call: ast.Call) -> str:
    """The kind among the arguments of a function that receives an option, "" if there is none."""
    return next((_KINDS[one.id] for one in call.args[2:] if isinstance(one, ast.Name) and one.id in _KINDS), "")


def set_always(text: str) -> frozenset[str]:
    """The arguments that functions of a file set unconditionally: args.x = ..."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    statements = (one for function in functions for one in function.body if isinstance(one, ast.Assign))
    targets = (target for one in statements for target in one.targets if isinstance(target, ast.Attribute))
    return frozenset(one.attr for one in targets if isinstance(one.value, ast.Name) and one.value.id == "args")


def _fields(node: ast.ClassDef) -> Iterator[OwnOption]:
    """The options that a factory generates from the fields of a class."""
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name, of = field.target.id, ast.unparse(field.annotation)
        option = f"--{name.replace('_', '-')}"
        default = _literal(field.value)
        if of == "bool":
            kind = "false" if default is True else "true"
            yield OwnOption(f"--no-{option[2:]}" if default is True else option, name, kind, default)
        else:
            parts = {part.strip() for part in of.removeprefix("Optional[").rstrip("]").split("|")} - {"None"}
            kind = _KINDS.get(next(iter(parts)), "") if len(parts) == 1 else ""
            yield OwnOption(option, name, kind, default, None if kind else "*")


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
