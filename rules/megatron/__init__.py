"""Declared constraints and rules of megatron, by topic."""

FAMILIES = {
    "core": "Patterns, lists and modules that the model configuration refuses.",
    "parsing": "Options and values that the parser does not take.",
}
"""Rule functions whose files begin alike have one page; what it is about."""
