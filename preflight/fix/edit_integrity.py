"""Proof that an edited text differs from the old one exactly as intended: YAML, scripts, Python."""

from __future__ import annotations

import ast
import copy
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from preflight.loaders import load
from preflight.loaders.document import REFUSED, Document, Word, walk
from preflight.loaders.yaml_edit import dotted
from preflight.source.finding import Edit, Key, NotProven
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError, Source, Span
from preflight.source.typing_without_import import Any

Place = tuple[int, int]
"""A line, counted from 1, and a column in bytes, as in syntax trees."""


def prove_python(old: Source, edits: Sequence[Edit], new: Source) -> None:
    """Raises NotProven unless the programs, and their texts, differ only in the literals of the edits."""
    wanted: dict[tuple[Place, Place], object] = {}
    for edit in edits:
        if edit.action != "set" or edit.span is None or edit.span.source is not old:
            raise NotProven("only literals of a Python program are edited")
        wanted[_place(edit.span, edit.span.start), _place(edit.span, edit.span.end)] = edit.value
    exchange = _Exchange(wanted)
    try:
        meant, made = exchange.visit(ast.parse(old.text)), ast.parse(new.text)
    except (SyntaxError, ValueError):
        raise NotProven("the edited program cannot be read") from None
    if exchange.done != len(wanted) or ast.dump(meant) != ast.dump(made):
        raise NotProven("the program would change elsewhere")
    if _written(old.text, edits) != new.text:
        raise NotProven("a comment would be lost or changed")


class _Exchange(ast.NodeTransformer):
    """Replaces the literals at some places."""

    def __init__(self, wanted: dict[tuple[Place, Place], object]) -> None:
        self.wanted, self.done = wanted, 0

    def visit(self, node: ast.AST) -> ast.AST:
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        if isinstance(inner, ast.Constant) and isinstance(node, ast.expr):
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            place = ((node.lineno, node.col_offset), end)
            if place in self.wanted:
                self.done += 1
                return ast.parse(repr(self.wanted[place]), mode="eval").body
        made: ast.AST = super().visit(node)
        return made


def _place(span: Span, offset: int) -> Place:
    source = span.source
    line = bisect_right(source.starts, offset)
    return line, len(source.text[source.starts[line - 1] : offset].encode("utf-8"))


def _written(text: str, edits: Sequence[Edit]) -> str:
    """The text with each literal in Python's own notation."""
    spans = {(edit.span.start, edit.span.end): repr(edit.value) for edit in edits if edit.span is not None}
    for (start, end), value in sorted(spans.items(), reverse=True):
        text = text[:start] + value + text[end:]
    return text


Flags = dict[str, tuple[object, ...]]
NOT_WRITTEN = "bash refuses this script, so nothing is written to it"
_SETTING = lazy_pattern(r"[+~]{0,2}([A-Za-z_]\w*\.[\w.]+)=")
"""A setting without dashes, in the form section.key=value."""


def prove_script(old: Sequence[Document], edits: Sequence[Edit], new: Sequence[Document]) -> None:
    """Raises NotProven unless each run's arguments, launcher and environment differ only in the flags of the edits, and
    bash accepts the edited script."""
    if any(problem.kind in REFUSED for document in new for problem in document.problems):
        raise NotProven(NOT_WRITTEN)
    meant = {str(edit.key[0]) for edit in edits if edit.key} | {
        str(edit.value) for edit in edits if edit.action == "rename"
    }
    for before, after in zip(old, new, strict=True):
        if before.launch is None or after.launch is None:
            continue
        was, now = flags(before.launch.words), flags(after.launch.words)
        changed = {flag for flag in {*was, *now} if was.get(flag) != now.get(flag)} - meant
        if changed:
            raise NotProven(f"{', '.join(sorted(changed))} would change as well")
        for edit in edits:
            _carried_out(edit, now, before)
        launcher = _texts(before.launch.launcher_words)
        if launcher != _texts(after.launch.launcher_words) and meant.isdisjoint(map(str, launcher)):
            raise NotProven("the launcher's options would change as well")
        variables = [
            {name: word.text for name, word in d.launch.environment.items()} for d in (before, after) if d.launch
        ]
        if {
            name for name in {**variables[0], **variables[1]} if variables[0].get(name) != variables[1].get(name)
        } - meant:
            raise NotProven("the environment would change as well")


def _carried_out(edit: Edit, now: Flags, document: Document) -> None:
    if edit.action == "splice" or document.run != edit.run or not edit.key or not str(edit.key[0]).startswith("-"):
        return
    flag = str(edit.key[0])
    if edit.action == "remove" and flag in now:
        raise NotProven(f"{flag} is still there")
    if edit.action == "set" and now.get(flag) != words_of(edit.value):
        raise NotProven(f"{flag} would become {now.get(flag)}")


def words_of(value: object) -> tuple[object, ...]:
    """The words after a flag for a value; none for a switch."""
    if value is None or value is True:
        return ()
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)


def _texts(words: Sequence[Word]) -> tuple[object, ...]:
    return tuple(word.text if word.text is not None else f"?{word.because}" for word in words)


def flags(words: Sequence[Word]) -> Flags:
    """Each flag with the words after it; words before the first flag are under "", and key=value words under their
    key."""
    found: dict[str, list[object]] = {"": []}
    flag = ""
    for text in _texts(words):
        if isinstance(text, str) and text.startswith("--"):
            flag, equals, value = text.partition("=")
            found[flag] = [value] if equals else []
        elif isinstance(text, str) and (setting := _SETTING.match(text)):
            found[setting[1]] = [text]
        else:
            found[flag].append(text)
    return {name: tuple(values) for name, values in found.items()}


def prove(old: Sequence[Document], edits: Sequence[Edit], new: Source) -> tuple[Document, ...]:
    """The documents of the new text. Raises NotProven unless settings and comments are as intended."""
    try:
        documents = load(new)
    except InputError as error:
        raise NotProven(f"the edited text cannot be read: {error.message}") from None
    if len(documents) != len(old):
        raise NotProven(f"the edited text has {len(documents)} runs instead of {len(old)}")
    if old and old[0].kind == "yaml":
        _prove_yaml(old[0], edits, documents[0])
    elif old and old[0].kind == "python":
        prove_python(old[0].source, edits, new)
    else:
        prove_script(old, edits, documents)
    return documents


def _prove_yaml(old: Document, edits: Sequence[Edit], new: Document) -> None:
    want = old.tree.plain() if old.tree is not None else {}
    have = new.tree.plain() if new.tree is not None else {}
    for edit in edits:
        if edit.action == "splice" and edit.key:
            _copy(want, have, edit.key)
        elif edit.action != "splice" and edit.key:
            for key in _places(old, edit.key):
                want = _carry_out(want, edit._replace(key=key))
    if not same(want, have):
        raise NotProven("a setting would change that was not meant to")
    before, after = _marked_lines(old.source.text), _marked_lines(new.source.text)
    splices = any(edit.action == "splice" for edit in edits)
    if before == after or (not splices and _ends(before) == _ends(after)):
        return  # a line that is no longer a comment, or has become one, would have changed a setting
    spliced = [edit.span for edit in edits if edit.action == "splice" and edit.span is not None]
    before = _comments(old.source.text)
    after = _comments(new.source.text)
    dropped = _comments("\n".join(span.text for span in spliced))
    written = _comments("\n".join(str(edit.value) for edit in edits if edit.action == "splice"))
    if before - dropped - after or after - before - written:
        raise NotProven("a comment would be lost or changed")


def _places(old: Document, key: Key) -> list[Key]:
    """The place of a setting's value: at its key, and wherever an alias repeats the edited anchor."""
    node = old.tree.get(*key) if old.tree is not None else None
    if node is None or not node.anchor:
        return [key]
    return [place for place, other, _ in walk(old.tree) if other is node] if old.tree is not None else [key]


def same(left: Any, right: Any) -> bool:
    """Equal in value and type: True is not 1, and 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(map(repr, sorted(left, key=repr))) == list(map(repr, sorted(right, key=repr))) and all(
            same(left[k], right[k]) for k in left
        )
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))


def _marked_lines(text: str) -> Counter[str]:
    """The lines that may contain a comment."""
    return Counter(line for line in text.splitlines() if "#" in line)


def _ends(lines: Counter[str]) -> Counter[str]:
    """The lines from their first possible comment sign on."""
    found: Counter[str] = Counter()
    for line, count in lines.items():
        found[line[line.index("#") :]] += count
    return found


@lru_cache(maxsize=4)
def _comments(text: str) -> Counter[str]:
    """Comments found by ruamel.yaml's scanner, which shares no code with preflight."""
    found: Counter[str] = Counter()
    if "#" not in text:
        return found
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader = YAML()
    try:
        for token in reader.scan(text):
            for part in _flat(getattr(token, "_comment", None)):
                found.update(line.strip() for line in part.value.splitlines() if line.strip().startswith("#"))
    except YAMLError:
        found.update(line.strip() for line in text.splitlines() if line.strip().startswith("#"))
    finally:
        for part in list(vars(reader).values()):  # they reference each other and would stay until garbage collection
            if type(part).__module__.startswith("ruamel."):
                vars(part).clear()
    return found


def _flat(comments: Any) -> list[Any]:
    if comments is None:
        return []
    if isinstance(comments, (list, tuple)):
        return [token for part in comments for token in _flat(part)]
    return [comments]


def _carry_out(tree: Any, edit: Edit) -> Any:
    tree = copy.deepcopy(tree)
    *path, last = edit.key
    node = tree
    for part in path:
        if isinstance(node, dict) and node.get(part) is None:
            node[part] = {}
        node = node[part]
    if edit.action == "set":
        node[last] = list(edit.value) if isinstance(edit.value, tuple) else edit.value
    elif last not in node:
        raise NotProven(f"{dotted(edit.key)} is missing")
    elif edit.action == "remove":
        del node[last]
    else:
        items = [(edit.value if key == last else key, value) for key, value in node.items()]
        node.clear()
        node.update(items)
    return tree


def _copy(want: Any, have: Any, key: Key) -> None:
    """Adopt the new value of a setting that a splice declares."""
    *path, last = key
    try:
        for part in path:
            want, have = want[part], have[part]
        want[last] = have[last]
    except (KeyError, IndexError, TypeError):
        raise NotProven(f"{dotted(key)} is not at the edited place") from None
