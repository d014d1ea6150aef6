"""Defects of MindSpeed and MindSpeed-LLM releases: the rows of tables, for which the affected releases are computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = defects("mindspeed", a)
MINDSPEED_LLM = defects("mindspeed-llm", a)
