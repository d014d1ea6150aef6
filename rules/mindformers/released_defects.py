"""Known defects in MindFormers releases. They are read from a table, and the affected releases are computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindformers.names import a

MINDFORMERS = defects("mindformers", a)
