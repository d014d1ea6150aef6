"""Known defects in MindSpeed and MindSpeed-LLM releases. They are read from tables, and the affected releases are
computed."""

from preflight.lint.defect_rules import defects
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = defects("mindspeed", a)
MINDSPEED_LLM = defects("mindspeed-llm", a)
