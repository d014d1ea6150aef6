"""Known defects in MindSpeed and MindSpeed-LLM releases, each with the releases that it affects."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = defects("mindspeed", a)
MINDSPEED_LLM = defects("mindspeed-llm", a)
