"""Declared checks and rules for Megatron, by topic."""

FAMILIES = {
    "core": "Checks for patterns, lists and modules that the model configuration rejects.",
    "parsing": "Checks for options and values that the parser does not accept.",
}
"""Rule functions in files whose names share a prefix are documented on one page; this is its introduction."""
