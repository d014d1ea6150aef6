"""Declared checks and rules for Megatron, by topic."""

FAMILIES = {
    "core": "Patterns, lists and modules that the model configuration refuses.",
    "parsing": "Options and values that the parser does not take.",
}
"""Rule functions in files whose names share a prefix are documented on one page; this is its introduction."""
