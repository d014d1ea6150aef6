"""Defects of MindSpeed's and MindSpeed-LLM's releases: rows of tables, whose releases are computed."""

from preflight.lint.defects import defects
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = defects("mindspeed", a)
MINDSPEED_LLM = defects("mindspeed-llm", a)
