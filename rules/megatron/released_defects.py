"""Known defects in Megatron releases, each with the releases that it affects."""

from preflight.lint.defect_rules import defects
from preflight.rules.megatron.option_names import a

MEGATRON = defects("megatron", a)
