"""Defects of MindFormers' releases: rows of a table, whose releases are computed."""

from preflight.lint.defects import defects
from preflight.rules.mindformers.names import a

MINDFORMERS = defects("mindformers", a)
