"""Values as YAML text, in the style of what stood there."""

from __future__ import annotations

import re

from preflight.loaders.document import Document, Node
from preflight.loaders.yaml_scalars import resolve


class CannotEdit(Exception):
    """An edit that has no unambiguous place in the text; the message says why."""


def spell(value: object, old: Node | None, document: Document) -> str:
    """A value as YAML 1.1 text, in the spelling of the value that stands there or of the file."""
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


_PLAIN = re.compile(r"[A-Za-z0-9_./\\*+^$()-][A-Za-z0-9_./\\*+^$() -]*(?<! )\Z")


def spell_string(text: str, style: str) -> str:
    """A text as YAML, plain where that is safe, else in quotes."""
    if style == '"' and not re.search(r'[\\"\n]', text):
        return f'"{text}"'
    indicator = re.match(r"[*?]|-(?:\s|$)|---", text)  # `--flag` is a plain key, `- x` an item, `---` a document
    plain = _PLAIN.match(text) and not indicator and resolve(text).endswith(":str")
    if plain and style not in ("'", '"'):
        return text
    return "'" + text.replace("'", "''") + "'"
