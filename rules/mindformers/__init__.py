"""Declared constraints and rules of mindformers, by topic."""

FAMILIES = {
    "class": "Classes that a config names, and their arguments.",
    "pynative": "Settings of pynative training.",
    "recompute": "Recomputation that frees less than it seems to.",
    "select_recompute": "Layers and operators whose recomputation is selected.",
}
"""Rule functions whose files begin alike have one page; what it is about."""
