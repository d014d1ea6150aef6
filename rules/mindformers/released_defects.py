"""Known defects in MindFormers releases, each with the releases that it affects."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindformers.shared_conditions import a

MINDFORMERS = defects("mindformers", a)
