"""Brings translations/*.po up to date with the code, and compiles them for the package. New entries are empty:
translate them, with the terms of docs/zh/glossary.md, and run this again.

python tests/update_catalogue.py           writes the files, lists what is not translated
python tests/update_catalogue.py --check   writes nothing; fails if something is untranslated or obsolete
"""

from __future__ import annotations

import io
import sys
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from templates import templates

ROOT = Path(__file__).parent.parent
LANGUAGES = ("zh",)
PLACES = 3
"""Places of a sentence that the catalogue names."""


def path(language: str) -> Path:
    """The translations of a language, as people write them."""
    return ROOT / "translations" / f"{language}.po"


def compiled(language: str) -> Path:
    """The same as the package reads them."""
    return ROOT / "preflight" / "locale" / language / "LC_MESSAGES" / "preflight.mo"


def read(language: str) -> Catalog:
    """The translations of a language."""
    with path(language).open("rb") as stream:
        return read_po(stream, locale=language)


def updated(old: Catalog, language: str) -> Catalog:
    """The catalogue with the sentences of the code and existing translations."""
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
"""A fixed date: the files change only if sentences do."""


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
    """Write both files of each language, and report how many sentences are left."""
    check = "--check" in sys.argv[1:]
    wrong = 0
    for language in LANGUAGES:
        old = read(language)
        new = updated(old, language)
        left = [message.id for message in new if message.id and not message.string]
        gone = [message.id for message in old if message.id and message.id not in new]
        wrong += len(left) + len(gone)
        if not check:
            path(language).write_bytes(as_po(new))
            compiled(language).parent.mkdir(parents=True, exist_ok=True)
            compiled(language).write_bytes(as_mo(new))
        print(f"{language}: {len(new)} sentences, {len(left)} not translated, {len(gone)} gone")
        for template in left:
            print(f"  {template}")
    sys.exit(1 if check and wrong else 0)


if __name__ == "__main__":
    main()
