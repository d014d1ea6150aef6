"""Proof for launch scripts: after the edit every run has the same arguments but for the intended ones."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.loaders.document import REFUSED, Document, Word
from preflight.source.finding import Edit
from preflight.source.pattern import lazy_pattern
from preflight.source.refusal import NotProven

Flags = dict[str, tuple[object, ...]]
NOT_WRITTEN = "bash refuses this script, so nothing is written to it"
_SETTING = lazy_pattern(r"[+~]{0,2}([A-Za-z_]\w*\.[\w.]+)=")
"""A setting without dashes, as section.key=value."""


def prove_script(old: Sequence[Document], edits: Sequence[Edit], new: Sequence[Document]) -> None:
    """Raises NotProven unless each run's arguments, launcher and environment differ only in the flags of the edits, and
    bash accepts what becomes of the script."""
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
    """The words that follow a flag for a value; none for a switch."""
    if value is None or value is True:
        return ()
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)


def _texts(words: Sequence[Word]) -> tuple[object, ...]:
    return tuple(word.text if word.text is not None else f"?{word.because}" for word in words)


def flags(words: Sequence[Word]) -> Flags:
    """Each flag with the words after it; words before the first flag stand under "", but for key=value by its key."""
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
