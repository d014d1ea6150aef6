"""Writes the table of a front end, schemas/frontends/<front end>.json: python -m upstream.frontends NAME CLONE"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from upstream.frontends.rows import SCHEMAS
from upstream.frontends.tables import table_text


def main(words: Sequence[str]) -> int:
    """NAME of a front end and the clone of its repository."""
    out = SCHEMAS / f"{words[0]}.json"
    out.write_text(table_text(words[0], Path(words[1])), encoding="utf-8")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
