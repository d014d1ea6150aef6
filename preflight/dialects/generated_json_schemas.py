"""JSON Schemas generated from the options of a release, by name; those in files are under preflight.schemas."""

from __future__ import annotations

from preflight.dialects.megatron.json_schema import names as names
from preflight.dialects.megatron.json_schema import schema as schema
