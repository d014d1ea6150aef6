"""Proof that an edited text differs from the old one in exactly the settings that were meant to change."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from preflight.fix.prove_script import prove_script
from preflight.loaders import load
from preflight.loaders.document import Document, walk
from preflight.loaders.yaml_edit import dotted
from preflight.source.finding import Edit, Key
from preflight.source.refusal import NotProven
from preflight.source.text import InputError, Source


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
        from preflight.fix.prove_python import prove_python

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
        return  # what is no comment any more, or has become one, would have changed a setting
    spliced = [edit.span for edit in edits if edit.action == "splice" and edit.span is not None]
    before = _comments(old.source.text)
    after = _comments(new.source.text)
    dropped = _comments("\n".join(span.text for span in spliced))
    written = _comments("\n".join(str(edit.value) for edit in edits if edit.action == "splice"))
    if before - dropped - after or after - before - written:
        raise NotProven("a comment would be lost or changed")


def _places(old: Document, key: Key) -> list[Key]:
    """Where the value of a setting stands: at its key, and wherever an alias repeats the anchor that is edited."""
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
    """The lines that may have a comment."""
    return Counter(line for line in text.splitlines() if "#" in line)


def _ends(lines: Counter[str]) -> Counter[str]:
    """The lines from their first sign of a comment on."""
    found: Counter[str] = Counter()
    for line, count in lines.items():
        found[line[line.index("#") :]] += count
    return found


@lru_cache(maxsize=4)
def _comments(text: str) -> Counter[str]:
    """Comments as ruamel.yaml's scanner sees them, which shares no code with ours."""
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
        for part in list(vars(reader).values()):  # they hold each other, and would wait for the garbage collector
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
        raise NotProven(f"{dotted(edit.key)} is not there")
    elif edit.action == "remove":
        del node[last]
    else:
        items = [(edit.value if key == last else key, value) for key, value in node.items()]
        node.clear()
        node.update(items)
    return tree


def _copy(want: Any, have: Any, key: Key) -> None:
    """Take over the new value of a setting that a splice says it changes."""
    *path, last = key
    try:
        for part in path:
            want, have = want[part], have[part]
        want[last] = have[last]
    except (KeyError, IndexError, TypeError):
        raise NotProven(f"{dotted(key)} is not where the edit says") from None
