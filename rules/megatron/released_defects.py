"""Known defects in Megatron releases. They are read from a table, and the affected releases are computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.megatron.option_names import a

MEGATRON = defects("megatron", a)
