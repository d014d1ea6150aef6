"""The documentation page of a declared constraint: its condition in English, its reason, its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from preflight.lint.expressions import Expression, Handle
from preflight.lint.upstream_evidence import found_places
from preflight.lint.value_kinds import ValueKind
from preflight.source.finding import Severity
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any, Protocol


class Spelled(NamedTuple):
    """The name of an argument on a page. on, off: the words for true and false."""

    text: str
    on: str = ""
    off: str = ""


Spell = Callable[[Handle], Spelled]
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARED = {"<": "is less than", "<=": "is at most", ">": "is greater than", ">=": "is at least"}
_PLAIN = {"+": "+", "-": "-", "*": "×", "/": "/", "//": "/"}


def as_typed(handle: Handle) -> Spelled:
    """The name itself, as code."""
    return Spelled(f"`{handle.name}`")


def refusal(condition: Expression, spell: Spell = as_typed) -> str:
    """The refused combination as the end of "Reports an error if …": two options together, one without the other, or
    conditions that hold."""
    whole = positive(condition)
    parts = _parts(whole, "and")
    if len(parts) == 2 and (first := _switch(parts[0], spell)) and isinstance(parts[1], Expression):
        other, word = parts[1], "together with"
        if other.op == "not":
            other, word = other.parts[0], "without"  # type: ignore[assignment]
        if second := _switch(other, spell):
            return f"{first} is used {word} {second}."
    word = "and" if len(parts) > 1 else "or"
    parts = list(_needed(parts, spell)) if word == "and" else _parts(whole, "or")
    joined = f" {word} ".join(_clause(part, spell, word if len(parts) > 1 else "") for part in parts)
    if len(parts) == 1 or (len(parts) == 2 and len(joined) < 160):
        return f"{joined}."
    how_many = "all of these hold" if word == "and" else "at least one of these holds"
    return f"{how_many}:\n\n" + "\n".join(f"* {clause}" for clause in _grouped(parts, spell, word == "and"))


def _grouped(parts: Sequence[object], spell: Spell, every: bool) -> Iterable[str]:
    """A clause for each part; three or more disabled switches share one."""
    off = {
        id(part): name
        for part in parts
        if isinstance(part, Expression) and part.op == "not" and (name := _switch(part.parts[0], spell))
    }
    together = every and len(off) > 2
    for part in parts:
        if not together or id(part) not in off:
            yield _clause(part, spell)
    if together:
        yield f"{', '.join([*off.values()][:-1])} and {[*off.values()][-1]} are off"


def positive(node: object) -> object:
    """A condition with `not` only before operators that cannot be inverted."""
    if not isinstance(node, Expression) or node.op not in ("and", "or", "not"):
        return node
    if node.op != "not":
        return Expression(node.op, *(positive(part) for part in node.parts))
    inner = node.parts[0]
    if not isinstance(inner, Expression):
        return node
    if inner.op == "not":
        return positive(inner.parts[0])
    if inner.op in ("and", "or"):
        turned = (positive(Expression("not", part)) for part in inner.parts)
        return Expression("or" if inner.op == "and" else "and", *turned)
    return Expression(_OPPOSITE[inner.op], *inner.parts) if inner.op in _OPPOSITE else node


def _parts(node: object, op: str) -> list[object]:
    """The operands of a chain of `and` or `or`, including nested ones."""
    if isinstance(node, Expression) and node.op == op:
        return [part for operand in node.parts for part in _parts(operand, op)]
    return [node]


def _needed(parts: Sequence[object], spell: Spell) -> Iterable[object]:
    """Removes parts that others already imply: "X is set" if X is compared, repeated parts, and a choice that another
    part excludes."""
    compared = {
        h.name
        for part in parts
        if isinstance(part, Expression) and part.op not in ("not", "or")
        for h in part.handles()
    }
    said = {_clause(part, spell): number for number, part in reversed([*enumerate(parts)])}
    for number, part in enumerate(parts):
        if said[_clause(part, spell)] != number:
            continue
        choices = _parts(part, "or")
        left = [choice for choice in choices if _clause(positive(Expression("not", choice)), spell) not in said]
        if len(choices) > 1 and left and len(left) < len(choices):
            part = left[0] if len(left) == 1 else Expression("or", *left)
        if isinstance(part, Expression) and part.op == "not":
            inner = part.parts[0]
            if (
                isinstance(inner, Expression)
                and inner.op == "is none"
                and isinstance(h := inner.parts[0], Handle)
                and h.name in compared
            ):
                continue
        yield part


def _switch(node: object, spell: Spell) -> str:
    """The option of a plain switch; "" otherwise."""
    if not isinstance(node, Handle) or node.view == "environment":
        return ""
    spelled = spell(node)
    return spelled.text if spelled.on == f"{spelled.text} is on" else ""


def _clause(node: object, spell: Spell, inside: str = "") -> str:
    """A condition that holds, in words. inside: the word that joins it to its neighbours."""
    if isinstance(node, Handle):
        return _truth(node, spell, True)
    if not isinstance(node, Expression):
        return _constant(node)
    if node.op in ("and", "or"):
        parts = _parts(node, node.op)
        text = f" {node.op} ".join(
            _clause(part, spell, node.op) for part in (_needed(parts, spell) if node.op == "and" else parts)
        )
        return f"({text})" if inside and inside != node.op else text
    if node.op == "not":
        return _not(node.parts[0], spell)
    if node.op in ("==", "!="):
        return _equal(node, spell)
    if node.op in _COMPARED:
        return f"{_value(node.parts[0], spell)} {_COMPARED[node.op]} {_value(node.parts[1], spell)}"
    return _asked(node, spell, True)


def _asked(node: Expression, spell: Spell, holds: bool) -> str:
    """The requirement on one value, in words: that it holds, or that it does not."""
    no, value = "" if holds else "not ", _value(node.parts[0], spell) if node.parts else ""
    if node.op == "is none":
        return f"{value} is {'not ' if holds else ''}set"
    if node.op == "in":
        if not holds and len(node.parts) == 3:
            return f"{value} is neither {_listed(node.parts[1:], 'nor')}"
        none = "" if holds else "none of " if len(node.parts) > 3 else "not "
        return f"{value} is {none}{_listed(node.parts[1:], 'or' if holds else 'and')}"
    if node.op in ("has", "startswith"):
        contains, starts = ("contains", "starts with") if holds else ("does not contain", "does not start with")
        return f"{value} {contains if node.op == 'has' else starts} {_constant(node.parts[1])}"
    if node.op == "is a":
        return f"{value} is {no}{_kind(node.parts[1])}"
    return f"{_value(node, spell)} is {'not ' if holds else ''}0"


def _kind(kind: object) -> str:
    """A description of a kind of value."""
    return kind.words if isinstance(kind, ValueKind) else str(kind)


def _not(inner: object, spell: Spell) -> str:
    if isinstance(inner, Handle):
        return _truth(inner, spell, False)
    if not isinstance(inner, Expression):
        return _constant(inner)
    return _asked(inner, spell, False)


def _truth(handle: Handle, spell: Spell, holds: bool) -> str:
    spelled = spell(handle)
    if handle.view in ("given", "written"):
        return f"{spelled.text} is {'' if holds else 'not '}given"
    said = spelled.on if holds else spelled.off
    return said or f"{spelled.text} is {'' if holds else 'not '}set"


def _equal(node: Expression, spell: Spell) -> str:
    left, right = node.parts
    same = node.op == "=="
    if isinstance(left, Handle) and isinstance(right, bool):
        return _truth(left, spell, right is same)
    if type(right) is int and right == 0 and isinstance(left, Expression) and left.op == "%":
        number, divisor = (_value(part, spell) for part in left.parts)
        return f"{number} is {'' if same else 'not '}a multiple of {divisor}"
    if isinstance(right, str) and right == "":
        return f"{_value(left, spell)} is {'' if same else 'not '}empty"
    return f"{_value(left, spell)} is {'' if same else 'not '}{_value(right, spell)}"


def _value(node: object, spell: Spell) -> str:
    """A number or a text in words."""
    if isinstance(node, Handle):
        return spell(node).text + (" as written" if node.view == "written" else "")
    if not isinstance(node, Expression):
        return _constant(node)
    parts = [_value(part, spell) for part in node.parts]
    if node.op in _PLAIN:
        bracketed = (
            f"({p})" if isinstance(n, Expression) and n.op in _PLAIN and n.op != node.op else p
            for p, n in zip(parts, node.parts, strict=True)
        )
        return f" {_PLAIN[node.op]} ".join(bracketed)
    if node.op == "%":
        return f"the remainder of {parts[0]} divided by {parts[1]}"
    if node.op == "leading zeros":
        return f"the number of zeros that {parts[0]} begins with"
    if node.op == "least":
        return f"the smallest number in {parts[0]}"
    if node.op == "len":
        return f"the number of entries in {parts[0]}"
    if node.op == "count":
        return f"the number of true ones among ({'; '.join(_clause(part, spell) for part in node.parts)})"
    if node.op in ("min", "max"):
        return f"the {'smallest' if node.op == 'min' else 'largest'} of {', '.join(parts)}"
    return _clause(node, spell)


def _constant(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return "empty" if value == "" else f"`{value}`"


def _listed(values: Sequence[object], word: str) -> str:
    texts = [_constant(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


class Declared(Protocol):
    """The text of a page about a declared constraint."""

    @property
    def id(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def refuse(self) -> Expression: ...
    @property
    def framework(self) -> str: ...
    @property
    def versions(self) -> str: ...
    @property
    def upstream(self) -> str | Mapping[str, str]: ...
    @property
    def severity(self) -> str: ...
    @property
    def also(self) -> tuple[str, ...]: ...
    @property
    def fixes(self) -> tuple[Any, ...]: ...


_REPORTED = {Severity.ERROR: "an error", Severity.WARNING: "a warning", Severity.NOTE: "a note"}
_BOUNDS = {">=": "from {} on", ">": "after {}", "<": "before {}", "<=": "up to {}", "==": "{} only"}


def page(constraint: Declared, spell: Spell = as_typed, example: Mapping[str, str] | None = None) -> str:
    """Markdown with the headings of every rule page. spell: names of arguments. example: a run with the finding and one
    without, from schemas/examples.
    """
    lines = [re.sub(r"\{([A-Za-z_][\w.]*)\}", r"‹\1›", constraint.message), ""]
    lines += [
        "## What it does",
        f"Reports {_REPORTED[Severity(constraint.severity)]} if {refusal(constraint.refuse, spell)}",
        "",
    ]
    why = constraint.why[:1].upper() + constraint.why[1:]
    lines += ["## Why is this bad?", why if why.endswith(".") else f"{why}.", ""]
    if example:
        lines += [*_example(example), ""]
    if constraint.fixes:
        safe = constraint.fixes[0].safety == "safe"
        lines += [
            "## Fix safety",
            "Safe: the training result stays the same." if safe else "Unsafe: the fix changes the run.",
            "",
        ]
    if releases := _releases(constraint):
        lines += ["## Releases", releases, ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "## References", *_references(constraint)]))


def _example(example: Mapping[str, str]) -> Iterator[str]:
    yield "## Example"
    if around := example.get("around", ""):
        yield f"{around[:1].upper()}{around[1:]}:"
    yield from _block(example["found"])
    if message := example.get("message"):
        yield "preflight reports:"
        yield ""
        yield f"> {message}"
        yield ""
    if silent := example.get("silent"):
        yield "Use instead:"
        yield from _block(silent)
    else:
        names = " and ".join(f"`{name}`" for name in example["dropped"].split())
        yield f"Use instead: the same without {names}."


def _block(text: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}".rstrip() for line in text.splitlines())
    yield ""


def _releases(constraint: Declared) -> str:
    """The releases in which it applies, in words."""
    found = []
    for bound in filter(None, constraint.versions.split(",")):
        operator, release = re.fullmatch(r"\s*(?:(>=|<=|==|>|<)\s*)?(\S+)\s*", bound).groups()  # type: ignore[union-attr]
        found.append(_BOUNDS[operator or "=="].format(release))
    return f"{constraint.framework}: {', '.join(found)}." if found else ""


def _references(constraint: Declared) -> Iterator[str]:
    places = {"": constraint.upstream} if isinstance(constraint.upstream, str) else constraint.upstream
    for version, place in places.items():
        if place:
            yield f"* {constraint.framework}{_at(version, constraint.framework)}: `{place}`"
    yield from (f"* {constraint.framework}: `{place}`" for place in constraint.also)
    found = found_places(constraint.framework, constraint.id)
    declared = {*places.values(), *constraint.also}
    yield from (
        f"* {constraint.framework} {release}: `{place}`" for place, release in found.items() if place not in declared
    )
    if not any(places.values()) and not constraint.also and not found:
        yield f"* {constraint.framework} itself does not check it"


def _at(version: str, framework: str) -> str:
    if not version or version == framework:
        return ""
    return f" {version}" if version[:1].isdigit() else f" ({version})"
