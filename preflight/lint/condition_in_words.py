"""The condition of a declared constraint in English: one sentence, or a list of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from preflight.lint.condition_simplification import chain, distinct, needed, positive
from preflight.lint.expressions import Expression, Handle
from preflight.lint.value_kinds import ValueKind
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple


class Spelled(NamedTuple):
    """The name of an argument on a page. on, off: the words for true and false."""

    text: str
    on: str = ""
    off: str = ""


class Clause(NamedTuple):
    """A condition that holds, in words. subject: "" if the clause cannot share its verb. choice: 1 if it lists values
    with "or", 2 if it joins conditions with "or"."""

    subject: str
    verb: str
    choice: int = 0

    @property
    def text(self) -> str:
        return f"{self.subject} {self.verb}".strip()


Spell = Callable[[Handle], Spelled]
_COMPARED = {"<": "is less than", "<=": "is at most", ">": "is greater than", ">=": "is at least"}
_PLAIN = {"+": "+", "-": "-", "*": "×", "/": "/", "//": "/"}
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2}
_LONGEST = 160  # characters of a condition that is written as one sentence
_NOT_ONE, _NOT_POSITIVE = "is not one of ", "is 0 or less"
_EVERY, _SOME = "all of the following are true:", "at least one of the following is true:"


def as_typed(handle: Handle) -> Spelled:
    """The name itself, as code."""
    return Spelled(f"`{handle.name}`")


def refusal(condition: Expression, spell: Spell = as_typed) -> str:
    """The refused combination as the end of "Reports an error if …": two options together, one without the other, or
    conditions that hold."""
    whole = positive(condition)
    parts = chain(whole, "and")
    if len(parts) == 2 and (first := _switch(parts[0], spell)) and isinstance(parts[1], Expression):
        other, word = parts[1], "together with"
        if other.op == "not":
            other, word = other.parts[0], "without"  # type: ignore[assignment]
        if second := _switch(other, spell):
            return f"{first} is used {word} {second}."
    first_line, *nested = _lines(whole, spell)
    return f"{first_line}\n\n" + "\n".join(line[4:] for line in nested) if nested else f"{first_line}."


def _lines(node: object, spell: Spell) -> list[str]:
    """A condition as one line, or as a line that introduces the indented list below it."""
    word = "or" if isinstance(node, Expression) and node.op == "or" else "and"
    parts = chain(node, word)
    parts = [*needed(parts)] if word == "and" else distinct(parts)
    if len(parts) == 1 and parts[0] is not node:
        return _lines(parts[0], spell)
    clauses, nested = _clauses(parts, word, spell)
    if not nested and (sentence := _sentence(clauses, word)):
        return [sentence]
    lists = [[clause.text] for clause in clauses] + nested
    return [_EVERY if word == "and" else _SOME] + [
        f"    {'* ' if number == 0 else ''}{line}" for lines in lists for number, line in enumerate(lines)
    ]


def _sentence(clauses: Sequence[Clause], word: str) -> str:
    """Clauses in one sentence; "" if a list is clearer."""
    if len(clauses) == 1:
        return clauses[0].text
    ordered = sorted(clauses, key=lambda clause: clause.choice)
    mixed = sum(clause.choice for clause in ordered) > (1 if word == "and" else 0)
    chained = word == "and" and any(" and " in clause.text for clause in ordered)
    text = f"{',' if chained else ''} {word} ".join(clause.text for clause in ordered)
    return "" if mixed or len(ordered) > 2 or len(text) > _LONGEST else text


def _clauses(parts: Sequence[object], word: str, spell: Spell) -> tuple[list[Clause], list[list[str]]]:
    """The parts of a chain that are one clause each, joined if they share a subject or a verb; lists for the rest."""
    clauses: list[Clause] = []
    nested: list[list[str]] = []
    for part in parts:
        if isinstance(part, Expression) and part.op in ("and", "or"):
            lines = _lines(part, spell)
            if len(lines) > 1:
                nested.append(lines)
            else:
                clauses.append(Clause("", lines[0], choice=2))
        else:
            clauses.append(_clause(part, spell))
    return _same_verb(_same_subject(dict.fromkeys(clauses), word), word), nested


def _same_subject(clauses: Iterable[Clause], word: str) -> list[Clause]:
    """`a` is set and `a` is less than 1 → `a` is set and less than 1."""
    groups: dict[str, list[Clause]] = {}
    for number, clause in enumerate(clauses):
        groups.setdefault(clause.subject or f" {number}", []).append(clause)
    return [_joined_verbs(group, word) if len(group) > 1 else group[0] for group in groups.values()]


def _joined_verbs(group: Sequence[Clause], word: str) -> Clause:
    verbs = [clause.verb for clause in group]
    if word == "and" and "is given" in verbs and "is not set" in verbs:
        verbs = ["is null", *(verb for verb in verbs if verb not in ("is given", "is not set"))]
    verbs = _other_value(verbs) if word == "and" else sorted(verbs, key=lambda verb: verb != _NOT_POSITIVE)
    first, *others = verbs
    plain = re.fullmatch(r"is (?!not |neither )[^`]*(`[^`]*`)?[^`]*", first) is not None
    said = [first, *(_SHARED.sub("", verb) if plain else verb for verb in others)]
    comma = "," if len(said) == 2 and " or " in said[0] else ""
    text = f"{said[0]}{comma} {word} {said[1]}" if comma else _chain(said, word)
    return Clause(group[0].subject, text, 2 if word == "or" else max(clause.choice for clause in group))


def _other_value(verbs: Sequence[str]) -> list[str]:
    """Joins "is set" and "is not one of a, b or c" to "is set to anything other than a, b or c"."""
    listed = [verb for verb in verbs if verb.startswith(_NOT_ONE)]
    if {*verbs} == {"is True or False", "is off"}:
        return ["is `False`"]
    for before, after in (("is set", "is set to anything other than "), ("is given", "is given a value other than ")):
        if len(listed) == 1 and before in verbs:
            other = after + listed[0].removeprefix(_NOT_ONE)
            return [other if verb == listed[0] else verb for verb in verbs if verb != before]
    return [*verbs]


def _same_verb(clauses: Sequence[Clause], word: str) -> list[Clause]:
    """`a` is set and `b` is set → `a` and `b` are set."""
    groups: dict[str, list[Clause]] = {}
    for number, clause in enumerate(clauses):
        groups.setdefault(clause.verb if clause.subject else f" {number}", []).append(clause)
    return [_joined_subjects(group, word) if len(group) > 1 else group[0] for group in groups.values()]


def _joined_subjects(group: Sequence[Clause], word: str) -> Clause:
    names, verb = [clause.subject for clause in group], group[0].verb
    if word == "or":
        return Clause("", f"{_chain(names, word)} {verb}", choice=2)
    if verb.startswith("is not "):
        first = f"neither {names[0]} nor {names[1]}" if len(names) == 2 else f"none of {_chain(names, word)}"
        return Clause("", f"{first} is {verb.removeprefix('is not ')}", choice=group[0].choice)
    many = re.sub(r"^(is|contains|starts|equals|differs|does|has)\b", lambda one: _MANY[one[1]], verb)
    if len(names) == 2:
        many = re.sub(r"^are (?=set|given)", "are both ", many)
    return Clause("", f"{_chain(names, word)} {many}", choice=group[0].choice)


_SHARED = lazy_pattern(r"^is (?=less |greater |at |given|set|empty|on$|off$|a multiple)")
_MANY = {
    "is": "are",
    "contains": "contain",
    "starts": "start",
    "equals": "equal",
    "differs": "differ",
    "does": "do",
    "has": "have",
}


def _chain(texts: Sequence[str], word: str) -> str:
    """a, b and c."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def _words(node: object, spell: Spell) -> str:
    """The condition as one text, to compare conditions."""
    if isinstance(node, Expression) and node.op in ("and", "or"):
        return f"({f' {node.op} '.join(_words(part, spell) for part in node.parts)})"
    return _clause(node, spell).text


def _switch(node: object, spell: Spell) -> str:
    """The option of a plain switch; "" otherwise."""
    if not isinstance(node, Handle) or node.view == "environment":
        return ""
    spelled = spell(node)
    return spelled.text if spelled.on == f"{spelled.text} is on" else ""


def _clause(node: object, spell: Spell) -> Clause:
    """A single condition that holds."""
    if isinstance(node, Handle):
        return _truth(node, spell, True)
    if not isinstance(node, Expression):
        return Clause("", _constant(node))
    if node.op == "not":
        inner = node.parts[0]
        if isinstance(inner, Handle):
            return _truth(inner, spell, False)
        return _asked(inner, spell, False) if isinstance(inner, Expression) else Clause("", _constant(inner))
    if node.op in ("==", "!="):
        return _equal(node, spell)
    if node.op in _COMPARED:
        return _compared(node, spell)
    return _asked(node, spell, True)


def _asked(node: Expression, spell: Spell, holds: bool) -> Clause:
    """The requirement on one value: that it holds, or that it does not."""
    first = node.parts[0] if node.parts else None
    value = _value(first, spell) if node.parts else ""
    if node.op == "is none":
        return Clause(value, f"is {'not ' if holds else ''}set")
    if node.op == "in":
        return Clause(value, *_among(node.parts[1:], holds))
    if node.op == "has":
        return _contains(value, node.parts[1:], holds)
    if node.op == "startswith":
        return Clause(value, f"{'starts' if holds else 'does not start'} with {_constant(node.parts[1])}")
    if node.op == "is a":
        kind = node.parts[1].words if isinstance(node.parts[1], ValueKind) else node.parts[1]
        return Clause(value, f"is {'' if holds else 'not '}{kind}")
    return Clause(_value(node, spell), f"is {'not ' if holds else ''}0")


def _among(values: Sequence[object], holds: bool) -> tuple[str, int]:
    """The verb for a value that is one of the values, or none of them, and its `choice`."""
    texts = [*dict.fromkeys(map(_constant, values))]
    if holds:
        return f"is {_chain(texts, 'or')}", int(len(values) > 1)
    if len(texts) < 3:
        return f"is {'neither' if len(texts) == 2 else 'not'} {_chain(texts, 'nor')}", 0
    return f"{_NOT_ONE}{_chain(['an empty string' if text == 'empty' else text for text in texts], 'or')}", 1


def _contains(value: str, items: Sequence[object], holds: bool) -> Clause:
    if holds:
        return Clause(value, f"contains {_listed(items, 'or')}", int(len(items) > 1))
    if len(items) == 1:
        return Clause(value, f"does not contain {_constant(items[0])}")
    none = f"neither {_listed(items, 'nor')}" if len(items) == 2 else f"none of {_listed(items, 'and')}"
    return Clause(value, f"contains {none}")


def _truth(handle: Handle, spell: Spell, holds: bool) -> Clause:
    spelled = spell(handle)
    if handle.view in ("given", "written"):
        return Clause(spelled.text, f"is {'' if holds else 'not '}given")
    if said := spelled.on if holds else spelled.off:
        shared = said.startswith(f"{spelled.text} ")
        return Clause(spelled.text, said.removeprefix(spelled.text).strip()) if shared else Clause("", said)
    return Clause(spelled.text, f"is {'' if holds else 'not '}set")


def _compared(node: Expression, spell: Spell) -> Clause:
    left, right = node.parts
    if isinstance(left, Expression) and left.op == "%" and node.op == ">" and type(right) is int and right == 0:
        return _multiple(left, spell, False)
    if isinstance(left, Expression) and left.op == "len" and type(right) is int:
        entries = {(">", 0): "is not empty", (">", 1): "has more than one entry", ("<", 1): "is empty"}
        if (node.op, right) in entries:
            return Clause(_value(left.parts[0], spell), entries[node.op, right])
    if isinstance(left, Expression) and left.op == "count" and node.op == ">" and type(right) is int and right == 1:
        return _more_than_one(left, spell)
    if node.op == "<=" and type(right) is int and right == 0:
        return Clause(_value(left, spell), _NOT_POSITIVE)
    if node.op == ">=" and isinstance(right, float) and right == float("inf"):
        return Clause(_value(left, spell), "is infinite")
    return Clause(_value(left, spell), f"{_COMPARED[node.op]} {_value(right, spell)}")


def _more_than_one(count: Expression, spell: Spell) -> Clause:
    clauses = [_clause(part, spell) for part in count.parts]
    verbs = {clause.verb for clause in clauses}
    if len(verbs) == 1 and all(clause.subject for clause in clauses):
        return Clause("", f"more than one of {_chain([clause.subject for clause in clauses], 'and')} {verbs.pop()}")
    return Clause("", f"more than one of these is true: {'; '.join(clause.text for clause in clauses)}")


def _multiple(remainder: Expression, spell: Spell, holds: bool) -> Clause:
    number, divisor = (_value(part, spell) for part in remainder.parts)
    return Clause(number, f"is {'' if holds else 'not '}a multiple of {divisor}")


def _equal(node: Expression, spell: Spell) -> Clause:
    left, right = node.parts
    same = node.op == "=="
    if isinstance(left, Handle) and isinstance(right, bool):
        return _truth(left, spell, right is same)
    if type(right) is int and right == 0 and isinstance(left, Expression) and left.op == "%":
        return _multiple(left, spell, same)
    if same and type(right) is int and isinstance(left, Expression) and _halved(left) and right == 1:
        return Clause(_value(left.parts[0], spell), "is odd")
    no, value = "" if same else "not ", _value(left, spell)
    if isinstance(right, str) and right == "":
        return Clause(value, f"is {no}empty")
    if isinstance(right, Expression):
        return Clause(value, f"{'equals' if same else 'differs from'} {_value(right, spell)}")
    if isinstance(left, Expression) and left.op == "len" and type(right) is int and right in (0, 1):
        entry = "is {}empty" if right == 0 else "has {}exactly one entry" if same else "does not have exactly one entry"
        return Clause(_value(left.parts[0], spell), entry.format(no if right == 0 else ""))
    if isinstance(right, list | tuple):
        only = "contains only" if len(right) == 1 else "is the list"
        words = f"{only} {_listed(right, 'and')}" if right else "is empty"
        return Clause(value, words if same else f"is not the list {_listed(right, 'and')}")
    return Clause(value, f"is {no}{_value(right, spell)}")


def _halved(node: Expression) -> bool:
    """Whether a number is the remainder of a division by 2."""
    return node.op == "%" and isinstance(node.parts[1], int) and node.parts[1] == 2


def _value(node: object, spell: Spell) -> str:
    """A number or a text in words."""
    if isinstance(node, Handle):
        return ("the configured " if node.view == "written" else "") + spell(node).text
    if not isinstance(node, Expression):
        return _constant(node)
    parts = [_value(part, spell) for part in node.parts]
    if node.op in ("/", "//") and isinstance(node.parts[1], int) and node.parts[1] == 1:
        return parts[0]
    if node.op in _PLAIN:
        return f" {_PLAIN[node.op]} ".join(
            f"({text})" if _bracketed(part, node.op, number) else text
            for number, (text, part) in enumerate(zip(parts, node.parts, strict=True))
        )
    if node.op == "%":
        return f"the remainder of {parts[0]} divided by {parts[1]}"
    if node.op == "leading zeros":
        return f"the number of leading zeros in {parts[0]}"
    if node.op == "least":
        return f"the smallest number in {parts[0]}"
    if node.op == "len":
        return f"the number of entries in {parts[0]}"
    if node.op == "count":
        return f"the number of true conditions among ({'; '.join(_words(part, spell) for part in node.parts)})"
    if node.op in ("min", "max"):
        return f"the {'smallest' if node.op == 'min' else 'largest'} of {_chain(parts, 'and')}"
    return _words(node, spell)


def _bracketed(part: object, op: str, number: int) -> bool:
    """Whether an operand needs parentheses."""
    if not isinstance(part, Expression) or part.op not in _BINDS:
        return False
    looser = _BINDS[part.op] < _BINDS[op]
    return looser or (_BINDS[part.op] == _BINDS[op] and part.op != op) or (number > 0 and op in "-//")


def _constant(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "infinity" if value == float("inf") else str(value)
    return "empty" if value == "" else f"`{value}`"


def _listed(values: Sequence[object], word: str) -> str:
    return _chain([_constant(value) for value in values], word)
