"""Defects of MindFormers releases: the rows of a table, for which the affected releases are computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindformers.names import a

MINDFORMERS = defects("mindformers", a)
