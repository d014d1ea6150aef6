"""Writes a submission into a clone of SchemaStore: `python editors/schemastore/submit.py CLONE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from preflight import schemas

HERE = Path(__file__).parent


def schema(address: str) -> dict[str, Any]:
    """The schema of the settings as SchemaStore takes it."""
    own = json.loads(schemas.text("settings.json"))
    return {"$schema": "http://json-schema.org/draft-07/schema#", "$id": address} | {
        key: value for key, value in own.items() if key not in ("$schema", "$id")
    }


def main(clone: Path) -> None:
    entry = json.loads((HERE / "catalog-entry.json").read_text(encoding="utf-8"))
    catalog = clone / "src" / "api" / "json" / "catalog.json"
    listed = json.loads(catalog.read_text(encoding="utf-8"))
    others = [one for one in listed["schemas"] if one["name"] != entry["name"]]
    place = next((n for n, one in enumerate(others) if one["name"].lower() > entry["name"]), len(others))
    listed["schemas"] = [*others[:place], entry, *others[place:]]
    written = {
        catalog: json.dumps(listed, indent=2, ensure_ascii=False) + "\n",
        clone / "src" / "schemas" / "json" / "preflight.json": json.dumps(schema(entry["url"]), indent=2) + "\n",
        clone / "src" / "test" / "preflight" / "preflight.toml": (HERE / "preflight.toml").read_text(encoding="utf-8"),
    }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
