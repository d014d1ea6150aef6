"""Declared constraints and rules of megatron, by topic."""

FAMILIES = {"parsing": "Options and values that the parser does not take."}
"""Rule functions whose files begin alike have one page; what it is about."""
