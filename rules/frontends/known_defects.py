"""Known defects in front-end releases. They are read from tables, and the affected releases are computed."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.ms_swift import DERIVED as OF_MS_SWIFT
from preflight.frontends.nemo_rl import DERIVED as OF_NEMO_RL
from preflight.lint.defect_rules import defects
from preflight.lint.expressions import Handles

VERL = defects("verl", Handles(megatron_names() | names("verl")))
SLIME = defects("slime", Handles(megatron_names() | names("slime")))
NEMO_RL = defects("nemo-rl", Handles(megatron_names() | names("nemo-rl") | OF_NEMO_RL))
MS_SWIFT = defects("ms-swift", Handles(megatron_names() | names("ms-swift") | OF_MS_SWIFT))
