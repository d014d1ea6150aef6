"""The values of a composed config: interpolations resolved to the places where their values are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count

from preflight.loaders.composition.grammar import (
    Call,
    Literal,
    Malformed,
    Many,
    Pairs,
    Part,
    Reference,
    Text,
    has_interpolation,
    template,
)
from preflight.loaders.composition.merging import MISSING
from preflight.loaders.document import MAX_DIGITS, Entry, Node, Unknown
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any

MAX_NUMBER = 10**18


def _number(value: object) -> Any:
    """A number of ordinary size. Raises TypeError for anything else, because Python also multiplies texts."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_NUMBER:
        raise TypeError
    return value


def mul(one: object, other: object) -> object:
    """The product of two numbers."""
    return _number(one) * _number(other)


def div(one: object, other: object) -> object:
    """The quotient of two numbers, with a fraction."""
    return _number(one) / _number(other)


def largest(one: object, other: object) -> object:
    """The larger of two numbers."""
    return max(_number(one), _number(other))


ARITHMETIC: dict[str, Callable[..., object]] = {"mul": mul, "div": div, "max": largest}

_FLOAT = lazy_pattern(
    r"""(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?)""",
    re.VERBOSE,
)
MAX_DEPTH = 200


def omegaconf_values(node: Node) -> Node:
    """A tree with its scalars as OmegaConf reads them; the same object if nothing differs."""
    if node.kind == "scalar":
        return _scalar(node)
    if node.kind == "sequence":
        items = tuple(omegaconf_values(item) for item in node.items)
        same = all(new is old for new, old in zip(items, node.items, strict=True))
        return node if same else node._replace(value=items)
    entries = tuple(_reread(entry) for entry in node.entries if not entry.shadowed)
    same = len(entries) == len(node.entries) and all(a is b for a, b in zip(entries, node.entries, strict=True))
    return node if same else node._replace(value=entries)


def _reread(entry: Entry) -> Entry:
    value = omegaconf_values(entry.value)
    return entry if value is entry.value else entry._replace(value=value)


def _scalar(node: Node) -> Node:
    value = node.value
    if node.style == "" and isinstance(value, str) and len(value) <= MAX_DIGITS and _FLOAT.fullmatch(value):
        return node._replace(value=float(value.replace("_", "")))
    if node.style == "" and hasattr(value, "isoformat"):  # a date
        return node._replace(value=node.span.text)
    return node


MAX_STEPS = 20_000
"""Maximum number of interpolations resolved for one config."""
MAX_CHAIN = 40
MAX_TEXT = 20_000
"""Maximum characters of a text produced by interpolations."""
Path = tuple[str | int, ...]


class Found(NamedTuple):
    """A value. node: the text in the file, with its path in `path`; uses: the interpolations that led there. value: a
    scalar, or Unknown; None for a mapping or list. exact: the text of the node is this value. key: the node of its key,
    None in a list. absent: there is certainly no such key.
    """

    value: object
    node: Node | None
    path: Path = ()
    uses: tuple[Span, ...] = ()
    exact: bool = False
    key: Node | None = None
    absent: bool = False

    @property
    def known(self) -> bool:
        """Whether there is a known value."""
        return not self.absent and not isinstance(self.value, Unknown)


class Composed:
    """A composed config. open: why keys of the run may be missing here ("" if none are)."""

    def __init__(
        self,
        root: Node,
        open: str = "",
        own: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        self.root, self.open = root, open
        self._resolvers = {**ARITHMETIC, **(own or {})}
        self._steps = count()
        self._active: set[Path] = set()
        self._known: dict[Path, Found] = {}

    def at(self, *path: str | int) -> Found:
        """The value at a path."""
        if self._active:  # the value of an interpolation depends on those that lead to it
            return self._below(Found(None, self.root, (), absent=False), path)
        if path not in self._known:
            self._known[path] = self._at(path)
        return self._known[path]

    def _at(self, path: Path) -> Found:
        """From the section above, which is often known."""
        above, last = path[:-1], path[-1:]
        found = self._known.get(above)
        if found is None:
            found = self._below(Found(None, self.root, (), absent=False), above)
            self._known[above] = found
        return self._below(found, last)

    def _below(self, found: Found, path: Path) -> Found:
        for part in path:
            if found.node is None or found.node.kind == "scalar":
                return self._none(found)
            entry = _entry(found.node, part)
            inner = found.node.get(part) if entry is None else entry.value
            if inner is None:
                return self._none(Found(None, found.node, found.path, found.uses))
            key = entry.key if entry is not None else None
            found = self._value(Found(None, inner, (*found.path, part), found.uses, True, key))
        return found

    def _none(self, found: Found) -> Found:
        if isinstance(found.value, Unknown):
            return found
        value = Unknown(self.open) if self.open else None
        return Found(value, None, found.path, found.uses, absent=not self.open)

    def _value(self, found: Found) -> Found:
        """The value of a node."""
        node = found.node
        assert node is not None
        if node.kind != "scalar":
            return found
        if node.value == MISSING:
            return found._replace(value=Unknown("??? is not given"), exact=False)
        if not has_interpolation(node.value):
            return found._replace(value=node.value)
        if found.path in self._active:
            return found._replace(value=Unknown("an interpolation that refers to itself"), exact=False)
        if len(self._active) >= MAX_CHAIN or next(self._steps) >= MAX_STEPS:
            return found._replace(value=Unknown("an endless interpolation"), exact=False)
        self._active.add(found.path)
        try:
            return self._evaluated(template(str(node.value)), found)
        except Malformed as error:
            return found._replace(value=Unknown(f"{node.value!s:.40}: {error}"), exact=False)
        finally:
            self._active.discard(found.path)

    def _evaluated(self, part: Part, at: Found) -> Found:
        """at: the value with the interpolation."""
        inner = at._replace(exact=False)
        if isinstance(part, Reference):
            target = self._target(part, at)
            uses = at.uses if at.node is None else (*target.uses, at.node.span, *at.uses)
            if target.absent:
                return inner._replace(value=Unknown(f"{at.node.value if at.node else ''!s:.60} is not given"))
            return target._replace(uses=uses[:MAX_CHAIN])
        if isinstance(part, Call):
            return self._called(part, at)
        return inner._replace(value=self._plain(part, at))

    def _target(self, part: Reference, at: Found) -> Found:
        keys: list[str | int] = []
        for key in part.keys:
            value = self._plain(key, at)
            if isinstance(value, Unknown):
                return Found(value, None, absent=False)
            keys.append(str(value))
        base = at.path[: len(at.path) - part.up] if part.up else ()
        if part.up > len(at.path):
            return Found(None, None, absent=True)
        return self.at(*self._indices((*base, *keys)))

    def dead(self, path: Path, node: Node) -> str:
        """The target of an interpolation at a path that is missing in the config, as it names it; "" if it exists, or
        is unknown."""
        try:
            part = template(str(node.value)) if has_interpolation(node.value) else None
        except Malformed:
            return ""
        return self._lost(part, Found(None, node, path)) if part is not None else ""

    def malformed(self, node: Node) -> str:
        """Why the text of a value is not what OmegaConf's grammar accepts; "" if it is, or is very long."""
        try:
            template(str(node.value) if has_interpolation(node.value) else "")
        except Malformed as error:
            return "" if len(str(node.value)) > MAX_TEXT // 10 else str(error)
        return ""

    def unregistered(self, node: Node) -> str:
        """The first resolver in the text of a value that is neither OmegaConf's nor the program's; "" if none is."""
        try:
            part = template(str(node.value)) if has_interpolation(node.value) else None
        except Malformed:
            return ""
        called = _called_in(part) if part is not None else ()
        return next((one for one in called if one not in self._resolvers and not one.startswith("oc.")), "")

    def _lost(self, part: Part, at: Found) -> str:
        """The first reference in a part to a missing value; the targets of oc.select may be missing."""
        if isinstance(part, Reference):
            inner = next((lost for key in part.keys if (lost := self._lost(key, at))), "")
            named = "." * part.up + ".".join(str(self._plain(key, at)) for key in part.keys)
            return inner or (named if self._target(part, at).absent else "")
        if isinstance(part, Text):
            return next((lost for one in part.parts if (lost := self._lost(one, at))), "")
        if isinstance(part, Call) and part.name != "oc.select":
            return next((lost for one in part.arguments if (lost := self._lost(one, at))), "")
        return ""

    def _indices(self, path: Path) -> Path:
        """A path with numeric indices for lists."""
        node: Node | None = self.root
        made: list[str | int] = []
        for part in path:
            inside = node is not None and node.kind == "sequence" and str(part).isdigit()
            made.append(int(part) if inside else part)
            node = node.get(made[-1]) if node is not None else None
        return tuple(made)

    def _called(self, part: Call, at: Found) -> Found:
        inner = at._replace(exact=False)
        if part.name == "oc.select":
            return self._selected(part, at)
        resolver = self._resolvers.get(part.name)
        if resolver is None:
            return inner._replace(value=Unknown(f"${{{part.name}:…}}"))
        arguments = [self._plain(argument, at) for argument in part.arguments]
        unknown = next((argument for argument in arguments if isinstance(argument, Unknown)), None)
        if unknown is not None:
            return inner._replace(value=unknown)
        try:
            return inner._replace(value=resolver(*arguments))
        except (TypeError, ValueError, ArithmeticError):
            return inner._replace(value=Unknown(f"${{{part.name}:…}} cannot be computed"))

    def _selected(self, part: Call, at: Found) -> Found:
        """oc.select: another value, or the text after the comma if it is not set."""
        name = self._plain(part.arguments[0], at) if part.arguments else None
        if not isinstance(name, str) or len(part.arguments) > 2:
            return at._replace(value=Unknown("${oc.select:…}"), exact=False)
        stripped = name.lstrip(".")
        keys = tuple(Literal(key) for key in stripped.replace("[", ".").replace("]", "").split(".") if key)
        target = self._target(Reference(len(name) - len(stripped), keys), at)
        missing = target.node is not None and target.node.kind == "scalar" and target.node.value == MISSING
        if target.absent or missing:
            if len(part.arguments) == 1:
                return at._replace(value=None, exact=False)
            return self._evaluated(part.arguments[1], at) if _leads(part.arguments[1]) else self._default(part, at)
        assert at.node is not None
        return target._replace(uses=(*target.uses, at.node.span, *at.uses)[:MAX_CHAIN])

    def _default(self, part: Call, at: Found) -> Found:
        default = part.arguments[1]
        if isinstance(default, Many | Pairs) and at.node is not None:
            node = as_node(default, at.node)
            return at._replace(value=None, node=node, exact=False)
        return at._replace(value=self._plain(default, at), exact=False)

    def _plain(self, part: Part, at: Found) -> object:
        """A part as plain data, or Unknown."""
        if isinstance(part, Literal):
            return part.value
        if isinstance(part, Text):
            return self._text(part, at)
        if isinstance(part, Reference | Call):
            found = self._evaluated(part, at)
            if isinstance(found.value, Unknown) or found.node is None or found.node.kind == "scalar":
                return found.value
            return found.value if found.value is not None else found.node.plain()
        assert at.node is not None
        return as_node(part, at.node).plain()

    def _text(self, part: Text, at: Found) -> object:
        made = ""
        for piece in part.parts:
            value = self._plain(piece, at)
            if isinstance(value, Unknown):
                return value
            made += str(value)
            if len(made) > MAX_TEXT:
                return Unknown("a string that is too long")
        return made


def _leads(part: Part) -> bool:
    return isinstance(part, Reference | Call)


def _entry(node: Node, part: str | int) -> Entry | None:
    if node.kind != "mapping":
        return None
    return next((entry for entry in reversed(node.entries) if entry.key.value == part and not entry.shadowed), None)


def as_node(part: Part, typed: Node) -> Node:
    """A value in one text as nodes at the place of that text; interpolations in it stay unknown."""
    if isinstance(part, Literal):
        return typed._replace(kind="scalar", value=part.value)
    if isinstance(part, Many):
        return typed._replace(kind="sequence", value=tuple(as_node(item, typed) for item in part.items))
    if isinstance(part, Pairs):
        pairs = tuple(Entry(as_node(key, typed), as_node(value, typed)) for key, value in part.pairs)
        return typed._replace(kind="mapping", value=pairs)
    return typed._replace(kind="scalar", value=Unknown("an interpolation in a list"))


def _called_in(part: Part) -> Iterator[str]:
    """The resolvers in a part."""
    if isinstance(part, Call):
        yield part.name
    inner = part.arguments if isinstance(part, Call) else part.keys if isinstance(part, Reference) else ()
    for one in part.parts if isinstance(part, Text) else inner:
        yield from _called_in(one)
