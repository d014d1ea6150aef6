"""Edits of YAML as splices of text: in place, in the existing style, never a dump."""

from __future__ import annotations

import re
from bisect import bisect_left

from preflight.loaders.document import Document, Entry, Node
from preflight.loaders.yaml_comments import yaml_comments
from preflight.loaders.yaml_scalars import resolve
from preflight.source.finding import Edit, Key
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import CannotEdit, Span, Splice


def spell(value: object, old: Node | None, document: Document) -> str:
    """A value as YAML 1.1 text, in the spelling of the existing value or of the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        word = old.span.text if old is not None and isinstance(old.value, bool) else ""
        lower = (
            word[:1].islower() if word else "True" not in document.source.text and "False" not in document.source.text
        )
        return str(value).lower() if lower else str(value)
    if isinstance(value, float):
        text = repr(value)
        mantissa, e, exponent = text.partition("e")
        if not e:
            return text
        point, sign = "" if "." in mantissa else ".0", "" if exponent[0] in "+-" else "+"
        return f"{mantissa}{point}e{sign}{exponent}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(spell(item, None, document) for item in value) + "]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{spell_string(str(k), '')}: {spell(v, None, document)}" for k, v in value.items()) + "}"
        )
    return str(value) if isinstance(value, int) else spell_string(str(value), old.style if old is not None else "")


_PLAIN = lazy_pattern(r"[A-Za-z0-9_./\\*+^$()-][A-Za-z0-9_./\\*+^$() -]*(?<! )\Z")


def spell_string(text: str, style: str) -> str:
    """A text as YAML, plain if that is safe, otherwise in quotes."""
    if style == '"' and not re.search(r'[\\"\n]', text):
        return f'"{text}"'
    indicator = re.match(r"[*?]|-(?:\s|$)|---", text)  # `--flag` is a plain key, `- x` an item, `---` a document
    plain = _PLAIN.match(text) and not indicator and resolve(text).endswith(":str")
    if plain and style not in ("'", '"'):
        return text
    return "'" + text.replace("'", "''") + "'"


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """The text changes that carry out edits. Raises CannotEdit."""
    return [splice for edit in edits for splice in _splices(document, edit)]


def _splices(document: Document, edit: Edit) -> list[Splice]:
    if edit.action == "splice":
        if edit.span is None:
            raise CannotEdit("the edit has no place")
        return [(edit.span, str(edit.value))]
    parent, entry = _find(document, edit.key) if edit.key else _standing_at(document, edit.span)
    if edit.action == "set":
        if entry is not None:
            return [_replace(document, entry, edit.value)]
        if parent is not None and parent.kind == "sequence" and isinstance(edit.key[-1], int):
            item = parent.items[edit.key[-1]]
            return [(item.span, spell(edit.value, item, document))]
        return [_add(document, edit.key, edit.value)]
    if parent is None or entry is None:
        raise CannotEdit(f"{dotted(edit.key)} is missing")
    if edit.action == "rename":
        quote = entry.key.style if entry.key.style in ("'", '"') else ""
        return [(entry.key.span, f"{quote}{edit.value}{quote}")]
    return [_remove(document, parent, entry, edit.key)]


def dotted(key: Key) -> str:
    """A key path as users write it."""
    return ".".join(map(str, key))


def _find(document: Document, key: Key) -> tuple[Node | None, Entry | None]:
    parent = document.tree.get(*key[:-1]) if document.tree is not None else None
    if parent is None or parent.kind != "mapping":
        return parent, None
    entry = next((e for e in reversed(parent.entries) if not e.shadowed and e.key.value == key[-1]), None)
    if entry is not None and entry.merged:
        raise CannotEdit(f"{dotted(key)} comes from a merge key")
    return parent, entry


def _standing_at(document: Document, span: Span | None) -> tuple[Node | None, Entry | None]:
    """The entry whose key is at a place, including shadowed ones."""
    stack = [document.tree] if document.tree is not None and span is not None else []
    while stack and span is not None:
        node = stack.pop()
        if not node.span.start <= span.start <= node.span.end:
            continue
        # entries merged by `<<` come first
        first = bisect_left(node.entries, True, key=lambda entry: not entry.merged)
        at = bisect_left(node.entries, span.start, lo=first, key=lambda entry: entry.key.span.start)
        if at < len(node.entries) and node.entries[at].key.span == span:
            return node, node.entries[at]
        stack += [*node.items, *(entry.value for entry in node.entries)]
    return None, None


def _pair(entry: Entry) -> Node:
    """A key with its value, as a node."""
    return Node("sequence", (entry.key, entry.value), entry.key.span)


def _replace(document: Document, entry: Entry, value: object) -> Splice:
    alias = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)").match(document.source.text, entry.key.span.end)
    if alias:
        return Span(document.source, alias.start(1), alias.end(1)), spell(value, None, document)
    text = spell(value, entry.value, document)
    if entry.value.span.start == entry.value.span.end:
        return entry.value.span, f" {text}"
    if entry.value.style == "block" and entry.value.kind != "scalar":
        return _on_key_line(document, entry, entry.value.span.start, _entry_end(entry), text) or (
            entry.value.span,
            text,
        )
    return entry.value.span, text


def _newline(document: Document) -> str:
    return "\r\n" if "\r\n" in document.source.text else "\n"


def _add(document: Document, key: Key, value: object) -> Splice:
    """Insert a missing key under its nearest ancestor that exists."""
    depth = len(key) - 1
    while depth and (document.tree is None or document.tree.get(*key[:depth]) is None):
        depth -= 1
    node = document.tree.get(*key[:depth]) if document.tree is not None else None
    if node is not None and node.kind == "scalar" and node.value is None and depth:
        return _fill(document, key, depth, value)
    if node is None or node.kind != "mapping":
        raise CannotEdit(f"there is no mapping to put {dotted(key)} into")
    if node.style == "flow":
        return _add_flow(document, node, key[depth:], value)
    own = [e for e in node.entries if not e.merged]
    if not own or (
        any(e.value.span.start < e.key.span.start for e in own[-1:])
        and document.source.position(own[-1].key.span.start).line < 1
    ):
        raise CannotEdit(f"there is no line to put {dotted(key)} after")
    first = own[0].key.span
    indent = " " * (first.column - 1)
    at = _line_end(document, _entry_end(own[-1]))
    return _lines(document, at, key[depth:], value, indent)


def _entry_end(entry: Entry) -> int:
    """The end of an entry in the text: its value, or its key if the value is elsewhere (an alias)."""
    return entry.value.span.end if entry.value.span.start >= entry.key.span.end else entry.key.span.end


def _line_end(document: Document, offset: int) -> int:
    end = document.source.text.find("\n", offset)
    return len(document.source.text) if end < 0 else end + 1


def _lines(document: Document, at: int, key: Key, value: object, indent: str) -> Splice:
    newline, text = _newline(document), document.source.text
    lines = []
    for level, part in enumerate(key):
        said = " " + spell(value, None, document) if level == len(key) - 1 else ""
        lines.append(f"{indent}{'  ' * level}{spell_string(str(part), '')}:{said}{newline}")
    before = "" if at == 0 or text[at - 1 : at] == "\n" else newline
    return document.source.span(at), before + "".join(lines)


def _fill(document: Document, key: Key, depth: int, value: object) -> Splice:
    """Give a key with an empty value its first child."""
    _, entry = _find(document, key[:depth])
    if entry is None or entry.value.span.text:
        raise CannotEdit(f"{dotted(key[:depth])} is null")
    indent = " " * (entry.key.span.column + 1)
    return _lines(document, _line_end(document, entry.key.span.end), key[depth:], value, indent)


def _add_flow(document: Document, node: Node, key: Key, value: object) -> Splice:
    if len(key) > 1:
        value = {key[-1]: value}
        for part in reversed(key[1:-1]):
            value = {part: value}
    item = f"{spell_string(str(key[0]), '')}: {spell(value, None, document)}"
    end = node.span.end - 1
    while document.source.text[end - 1] in " \t\r\n":
        end -= 1
    comma = "" if not node.entries or document.source.text[end - 1] == "," else ", "
    return document.source.span(end), comma + item


def _remove(document: Document, parent: Node, entry: Entry, key: Key) -> Splice:
    if parent.style == "flow":
        return _remove_flow(document, parent, entry)
    if len([e for e in parent.entries if not e.merged]) == 1:
        return _empty(document, entry, key)
    source = document.source
    start = source.starts[entry.key.span.line - 1]
    if source.text[start : entry.key.span.start].strip():
        raise CannotEdit(f"{dotted(key)} is not on a separate line")
    end = _line_end(document, max(entry.key.span.end, _entry_end(entry)))
    indent = source.text[start : entry.key.span.start]
    kept = [c.span.text for c in yaml_comments(source, _pair(entry), start, end)]
    return Span(source, start, end), "".join(f"{indent}{comment}{_newline(document)}" for comment in kept)


def _empty(document: Document, entry: Entry, key: Key) -> Splice:
    """Remove the only key of a block: an empty mapping stays."""
    holder = _find(document, key[:-1])[1] if len(key) > 1 and isinstance(key[-2], str) else None
    found = (
        _on_key_line(document, holder, entry.key.span.start, max(entry.key.span.end, _entry_end(entry)), "{}")
        if holder is not None
        else None
    )
    if found is None:
        raise CannotEdit(f"{dotted(key)} is the only key of its mapping")
    return found


def _on_key_line(document: Document, holder: Entry, start: int, end: int, value: str) -> Splice | None:
    """Put a value on the line of its key, replacing a block below; every comment stays. None if there is more between
    the two."""
    text, after = document.source.text, holder.key.span.end
    head = re.compile(r"[ \t]*:([ \t]*(?:#[^\r\n]*)?)(?=\r?\n)").match(text, after)
    if head is None or re.sub(r"#[^\n]*", "", text[head.end() : start]).strip():
        return None
    until = _line_end(document, end)
    newline, indent = _newline(document), " " * (holder.key.span.column - 1)
    kept = [c.span for c in yaml_comments(document.source, _pair(holder), head.end(), until)]
    alone = [text[: span.start].rpartition("\n")[2] for span in kept]
    lines = "".join(
        f"{lead if not lead.strip() else indent}{span.text}{newline}" for lead, span in zip(alone, kept, strict=True)
    )
    return document.source.span(
        after, until
    ), f": {value}{'  ' if head[1].strip() else ''}{head[1].strip()}{newline}{lines}"


def _remove_flow(document: Document, parent: Node, entry: Entry) -> Splice:
    entries = list(parent.entries)
    index = next(i for i, e in enumerate(entries) if e is entry)
    if index + 1 < len(entries):
        return Span(document.source, entry.key.span.start, entries[index + 1].key.span.start), ""
    start = _entry_end(entries[index - 1]) if index else entry.key.span.start
    return Span(document.source, start, _entry_end(entry)), ""
