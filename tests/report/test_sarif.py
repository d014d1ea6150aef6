"""SARIF in the names and kinds of the standard, as far as preflight writes it (OASIS SARIF 2.1.0, section 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import preflight
from preflight.checking.engine import Report, Unreadable
from preflight.report import sarif

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["error", "warning", "note"]}


def whole(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object that has these properties, and no other."""
    return {
        "type": "object",
        "properties": {name.replace("_schema", "$schema"): kind for name, kind in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def many(kind: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind}


MESSAGE = whole(("text",), text=TEXT, markdown=TEXT)
FILE = whole(("uri",), uri={"type": "string", "format": "uri-reference"})
REGION = whole(("startLine",), startLine=COUNT, startColumn=COUNT, endLine=COUNT, endColumn=COUNT)
PLACE = whole(("artifactLocation",), artifactLocation=FILE, region=REGION)
LOCATION = whole(("physicalLocation",), id={"type": "integer"}, message=MESSAGE, physicalLocation=PLACE)
REPLACEMENT = whole(("deletedRegion",), deletedRegion=REGION, insertedContent=whole(("text",), text=TEXT))
CHANGE = whole(("artifactLocation", "replacements"), artifactLocation=FILE, replacements=many(REPLACEMENT))
RESULT = whole(
    ("message",),
    message=MESSAGE,
    fixes=many(whole(("artifactChanges",), artifactChanges=many(CHANGE), description=MESSAGE)),
    level=LEVEL,
    locations=many(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    relatedLocations=many(LOCATION),
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
)
RULE = whole(
    ("id",),
    id=TEXT,
    name=TEXT,
    defaultConfiguration=whole(level=LEVEL),
    fullDescription=MESSAGE,
    shortDescription=MESSAGE,
    help=MESSAGE,
    helpUri={"type": "string", "format": "uri"},
    deprecatedIds={"type": "array", "items": {"type": "string"}, "uniqueItems": True},
)
DRIVER = whole(
    ("name",),
    name=TEXT,
    contents=many({"enum": ["localizedData", "nonLocalizedData"]}),
    informationUri=TEXT,
    rules=many(RULE),
    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    version=TEXT,
)
TOLD = whole(("message",), message=MESSAGE, level=LEVEL)
RUN = whole(
    ("tool",),
    results=many(RESULT),
    tool=whole(("driver",), driver=DRIVER),
    columnKind={"const": "unicodeCodePoints"},
    invocations=many(
        whole(("executionSuccessful",), executionSuccessful={"type": "boolean"}, toolExecutionNotifications=many(TOLD))
    ),
    newlineSequences=many(TEXT),
)
LOG = whole(("runs", "version"), runs=many(RUN), version={"const": "2.1.0"}, _schema={"const": sarif.SCHEMA})


@pytest.mark.parametrize("folder", ["megatron", "mindformers", "mindspeed"])
def test_a_log_has_the_form_of_the_standard(folder: str) -> None:
    log = json.loads(sarif.render(preflight.check(sorted((EXAMPLES / folder).iterdir()))))
    jsonschema.validate(log, LOG, format_checker=jsonschema.FormatChecker())
    assert log["runs"][0]["results"]


def test_what_cannot_be_read_has_the_form_of_the_standard() -> None:
    error = Unreadable("run.yaml", 3, 1, "is not YAML")
    log = json.loads(sarif.render(Report(errors=(error,))))
    jsonschema.validate(log, LOG)
    (invocation,) = log["runs"][0]["invocations"]
    assert not invocation["executionSuccessful"] and len(invocation["toolExecutionNotifications"]) == 1
