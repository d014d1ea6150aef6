"""YAML as PyYAML's safe_load reads it (YAML 1.1, last duplicate wins), with the span of every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from preflight.loaders.document import MARK, Document, Entry, Node, Problem
from preflight.loaders.yaml_comments import yaml_comments
from preflight.loaders.yaml_scalars import LONG, PREFIX, constructed, plain, resolve, yaml
from preflight.source.budget import draw_values
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError, Source, Span
from preflight.source.typing_without_import import Any

_SAME_VALUE = "the key {key!r} is set here and again on line {line} with the same value; the last one takes effect"
_OTHER_VALUE = (
    "the key {key!r} is set here and again on line {line} with another value ({before}, then {after}); the last "
    "one takes effect"
)
_MORE = "{count} more keys are set again later in the file; the last one takes effect"
MAX_DUPLICATES = 1000
"""Maximum number of duplicates noted individually."""


def duplicate_keys(found: Sequence[tuple[Entry, Entry]]) -> Iterator[Problem]:
    """Each duplicate key with the one that wins: the first ones individually, the others as a number."""
    values: dict[int, object] = {}
    for first, winner in found[:MAX_DUPLICATES]:
        same = _known(first.value, values) == _known(winner.value, values)
        yield _duplicate_key(first, winner, same)
    if left := found[MAX_DUPLICATES:]:
        yield Problem("duplicate-key", Message(_MORE, count=len(left)), left[0][0].key.span)


def _known(node: Node, values: dict[int, object]) -> object:
    """The plain value of a node, computed once: a thousand duplicates have one winner."""
    if (value := values.get(id(node), values)) is values:
        value = values[id(node)] = node.plain()
    return value


def _duplicate_key(first: Entry, winner: Entry, same: bool) -> Problem:
    message = Message(
        _SAME_VALUE if same else _OTHER_VALUE,
        key=first.key.value,
        line=winner.key.span.line,
        before=_brief(first.value),
        after=_brief(winner.value),
    )
    return Problem("duplicate-key", message, first.key.span, (winner.key.span,), harmless=same)


def _brief(node: Node) -> str:
    if node.kind == "scalar":
        return node.span.text[:30]
    return "a sequence" if node.kind == "sequence" else "a mapping"


MAX_DEPTH = 200
MAX_NODES = 200_000
MAX_EVENTS = 400_000
"""Parser events: a scalar is one, a collection two."""
MAX_DIRECTIVES = 100
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PROPERTIES = lazy_pattern(r"(?:[&!][^\s,\[\]{}]*(?:\s+|$))*")
_new: Any = tuple.__new__  # equivalent to a NamedTuple's constructor, without a Python frame


def load_yaml(source: Source) -> Document:
    """Read a YAML file. Raises InputError with line and column for anything safe_load would refuse, and for bombs."""
    builder = _Builder(source)
    # libyaml compares each key with all previous ones
    if source.text.startswith("%") and source.text.count("\n%") >= MAX_DIRECTIVES:
        raise InputError(f"has more than {MAX_DIRECTIVES} directives", source.name)
    try:
        parser = _Loader(source.text)
        try:
            builder.build(parser.get_event)
        finally:
            parser.dispose()
    except yaml.MarkedYAMLError as error:
        raise _located(source, error) from None
    except yaml.YAMLError as error:
        raise InputError(f"invalid YAML: {str(error).splitlines()[0]}", source.name) from None
    tree = builder.root
    comments = yaml_comments(source, tree) if MARK in source.text else ()
    return Document(
        source, "yaml", tree=tree, comments=comments, problems=tuple(builder.problems), texts=frozenset(builder.texts)
    )


def _located(source: Source, error: yaml.MarkedYAMLError) -> InputError:
    if "<<<<<<< " in source.text:
        from preflight.source.merge_conflict import conflict

        if (found := conflict(source.text)) is not None:
            return InputError(found.message, source.name, *source.position(found.start))
    mark = error.problem_mark or error.context_mark
    text = " ".join(str(part) for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    if (slip := _without_colon(source, line)) and any(part in text for part in LACKS_COLON):
        return InputError(f"invalid YAML: {text} (probably a missing ':' on line {slip})", source.name, line, column)
    return InputError(f"invalid YAML: {text}", source.name, line, column)


LACKS_COLON = ("mapping values are not allowed", "could not find expected ':'")
"""The error of libyaml after a key without its colon."""


def _without_colon(source: Source, line: int) -> int:
    """The line of a lone word at or above a line, which may be a key without its colon; 0 if there is none."""
    for number in range(min(line, len(source.starts)), max(line - LOOKED_AT, 0), -1):
        text = source.line(number).partition(" #")[0].strip()
        if text and ":" not in text and not text.startswith(("-", "#", "[", "{", "]", "}", '"', "'")):
            return number
    return 0


LOOKED_AT = 3
"""Lines searched above the place that libyaml reports, including blank ones."""


class _Open:
    """A collection whose end has not been read. beyond: the number of values in its aliases and inner collections."""

    __slots__ = ("anchor", "beyond", "flow", "items", "kind", "start")

    def __init__(self, kind: str, start: int, flow: bool, anchor: str) -> None:
        self.kind, self.start, self.flow, self.anchor = kind, start, flow, anchor
        self.items: list[Node] = []
        self.beyond = 1


class _Builder:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self.texts: set[str] = set()
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._documents = 0
        self._duplicates: list[tuple[Entry, Entry]] = []
        self._strings: set[int] = set()
        """The place of a scalar whose tag makes it a string: `!!str <<` is not a merge key."""

    def build(self, next_event: Callable[[], Any]) -> None:
        """Process every event of a parser."""
        source, stack, texts = self.source, self._stack, self.texts
        scalar, end_of_stream = yaml.ScalarEvent, yaml.StreamEndEvent
        for _ in repeat(None, MAX_EVENTS):
            if (kind := type(event := next_event())) is end_of_stream:
                self._note_duplicates()
                return
            if kind is scalar:
                value, style, start, end = event.value, event.style, event.start_mark.index, event.end_mark.index
                if event.anchor or event.tag or style == "|" or style == ">" or not stack:
                    self._odd_scalar(event, start, end)
                    continue
                if not style:
                    try:
                        value = plain(value) if len(value) <= LONG else self._value(None, value, event)
                    except InputError:
                        raise
                    except Exception:
                        value = self._value(None, value, event)  # this reports the reason
                if type(value) is str:
                    texts.add(value)
                stack[-1].items.append(_new(Node, ("scalar", value, _new(Span, (source, start, end)), style or "", "")))
            elif kind is yaml.MappingStartEvent:
                self._open(event, "mapping")
            elif kind is yaml.SequenceStartEvent:
                self._open(event, "sequence")
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self._documents += 1
                if self._documents > 1:
                    raise self._error(
                        "is more than one YAML document; the framework reads exactly one", event.start_mark
                    )
        raise InputError(f"contains more than {MAX_NODES} values", source.name)

    def _error(self, message: str, mark: Any) -> InputError:
        return InputError(message, self.source.name, mark.line + 1, mark.column + 1)

    def _odd_scalar(self, event: Any, start: int, end: int) -> None:
        """A scalar with an anchor or a tag, in a block, or alone in its file."""
        if event.anchor or event.tag:
            start = _PROPERTIES.match(self.source.text, start, end).end()  # type: ignore[union-attr]
        style = event.style or ""
        if style in ("|", ">"):
            end = start + len(self.source.text[start:end].rstrip())
        value = event.value if event.tag is None and style else self._value(event.tag, event.value, event)
        if isinstance(value, str):
            self.texts.add(value)
        if event.tag == PREFIX + "str":
            self._strings.add(start)
        self._add(Node("scalar", value, Span(self.source, start, end), style, event.anchor or ""), 1)

    def _value(self, tag: str | None, text: str, event: Any) -> object:
        """The value of a scalar without quotes, or with a tag;
        a lone "!" reads even quoted text as if it were plain."""
        try:
            return constructed(resolve(text) if tag is None or tag == "!" else tag, text)
        except LookupError:
            raise self._error(f"the framework cannot read the tag {tag}", event.start_mark) from None
        # PyYAML fails on a tagged scalar
        except (ValueError, OverflowError, AttributeError, yaml.YAMLError) as error:
            kind = (resolve(text) if tag is None or tag == "!" else tag)[len(PREFIX) :]
            raise self._error(f"{text[:40]!r} cannot be read as {kind}: {error}", event.start_mark) from None

    def _open(self, event: Any, kind: str) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(f"is nested deeper than {MAX_DEPTH} levels", event.start_mark)
        if event.tag not in (None, "!", PREFIX + "map", PREFIX + "seq"):
            raise self._error(f"the framework cannot read the tag {event.tag}", event.start_mark)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(kind, event.start_mark.index, bool(event.flow_style), event.anchor or ""))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        last = done.items[-1].span if done.items else None
        end = event.end_mark.index if done.flow or last is None else max(last.end, done.start)
        span = _new(Span, (self.source, done.start, end))
        size = done.beyond + len(done.items)
        if size > MAX_NODES:
            raise self._too_many(done)
        value: object = ()
        if done.items:
            value = self._entries(done.items) if done.kind == "mapping" else tuple(done.items)
        self._add(_new(Node, (done.kind, value, span, "flow" if done.flow else "block", done.anchor)), size)

    def _too_many(self, parent: _Open) -> InputError:
        line, column = self.source.position(parent.start)
        return InputError(
            f"contains more than {MAX_NODES} values, with aliases expanded",
            self.source.name,
            line,
            column,
        )

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._error(f"the alias *{event.anchor} has no anchor before it", event.start_mark)
        target = self._anchors[event.anchor]
        if target is None:
            raise self._error(f"the alias *{event.anchor} refers to its own anchor", event.start_mark)
        self._add(target[0], target[1])

    def _add(self, node: Node, size: int) -> None:
        if node.anchor:
            self._anchors[node.anchor] = (node, size)
        if not self._stack:
            draw_values(size, self.source.name)
            self.root = node
            return
        parent = self._stack[-1]
        parent.items.append(node)
        parent.beyond += size - 1
        if parent.beyond > MAX_NODES:
            raise self._too_many(parent)

    def _entries(self, items: list[Node]) -> tuple[Entry, ...]:
        entries = tuple(
            [_new(Entry, (key, value, False, False)) for key, value in zip(items[::2], items[1::2], strict=True)]
        )
        names = [entry.key.value for entry in entries if entry.key.kind == "scalar"]
        if len(names) == len(entries) == len(set(names)) and "<<" not in names:
            return entries
        merged: list[Entry] = []
        own: list[Entry] = []
        for entry in entries:
            key = entry.key
            if key.kind != "scalar":
                raise InputError(
                    "a key that is itself a collection cannot be read", self.source.name, key.span.line, key.span.column
                )
            if key.value == "<<" and not key.style and key.span.start not in self._strings:
                merged += self._merge(entry.value)
            else:
                own.append(entry)
        return self._shadow(merged, own)

    def _merge(self, value: Node) -> list[Entry]:
        sources = [value] if value.kind == "mapping" else list(reversed(value.items))
        if value.kind == "scalar" or any(source.kind != "mapping" for source in sources):
            raise InputError(
                "a merge key (<<) takes a mapping or a list of mappings",
                self.source.name,
                value.span.line,
                value.span.column,
            )
        return [entry._replace(merged=True) for source in sources for entry in source.entries if not entry.shadowed]

    def _shadow(self, merged: list[Entry], own: list[Entry]) -> tuple[Entry, ...]:
        """Mark every entry that a later one with the same key replaces, and note the duplicates in the file."""
        entries, last = [*merged, *own], {}
        for entry in entries:
            last[(type(entry.key.value).__name__ == "str", entry.key.value)] = entry
        if len(last) == len(entries):
            return tuple(entries)
        winners = {id(entry) for entry in last.values()}
        result = []
        for entry in entries:
            shadowed = id(entry) not in winners
            if shadowed and not entry.merged:
                self._duplicates.append((entry, last[(type(entry.key.value).__name__ == "str", entry.key.value)]))
            result.append(entry._replace(shadowed=shadowed))
        return tuple(result)

    def _note_duplicates(self) -> None:
        if self._duplicates:
            self.problems += duplicate_keys(self._duplicates)
