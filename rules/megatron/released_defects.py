"""Defects of Megatron releases: rows of a table for which the affected releases are computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.megatron.option_names import a

MEGATRON = defects("megatron", a)
