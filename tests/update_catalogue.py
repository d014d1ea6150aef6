"""Brings preflight/locale/*/LC_MESSAGES/preflight.po up to date with the code, and compiles it. What is new there is
empty: translate it, with the terms of docs/zh/glossary.md, and run this again.

python tests/update_catalogue.py
"""

from __future__ import annotations

import io
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from templates import templates

FOLDER = Path(__file__).parent.parent / "preflight" / "locale"
LANGUAGES = ("zh",)
PLACES = 3
"""Places of a sentence that the catalogue names."""


def path(language: str, suffix: str = "po") -> Path:
    """The file of a language."""
    return FOLDER / language / "LC_MESSAGES" / f"preflight.{suffix}"


def read(language: str) -> Catalog:
    """The translations of a language."""
    with path(language).open("rb") as stream:
        return read_po(stream, locale=language)


def updated(old: Catalog, language: str) -> Catalog:
    """The catalogue with the sentences of the code, translated as before."""
    catalog = Catalog(
        locale=language, project="preflight", header_comment=HEAD, fuzzy=False, charset="utf-8", creation_date=DATE
    )
    catalog.revision_date, catalog.last_translator, catalog.language_team = DATE, "preflight", "zh"
    for template, places in sorted(templates().items()):
        known = old.get(template)
        files = sorted({place.partition(":")[0] for place in places})[:PLACES]
        translation = str(known.string) if known is not None else ""
        catalog[template] = Message(template, translation, auto_comments=files, flags=())
    return catalog


HEAD = "# Sentences of preflight. Made by tests/update_catalogue.py; translations are written here by hand."
DATE = datetime(2026, 11, 22, tzinfo=timezone.utc)
"""A fixed date: the files change only where sentences do."""


def as_po(catalog: Catalog) -> bytes:
    """The catalogue as text."""
    stream = io.BytesIO()
    write_po(stream, catalog, width=120, no_location=True, omit_header=False)
    return stream.getvalue()


def as_mo(catalog: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    stream = io.BytesIO()
    write_mo(stream, catalog)
    return stream.getvalue()


def main() -> None:
    """Write both files of each language, and say how much is left."""
    for language in LANGUAGES:
        old = read(language) if path(language).exists() else Catalog(locale=language)
        new = updated(old, language)
        path(language).parent.mkdir(parents=True, exist_ok=True)
        path(language).write_bytes(as_po(new))
        path(language, "mo").write_bytes(as_mo(new))
        left = [message.id for message in new if message.id and not message.string]
        print(f"{language}: {len(new)} sentences, {len(left)} not translated")
        for template in left:
            print(f"  {template}")


if __name__ == "__main__":
    main()
