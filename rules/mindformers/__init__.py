"""Declared checks and rules for MindFormers, by topic."""

FAMILIES = {
    "class": "Classes that a config names, and their arguments.",
    "pynative": "Settings of pynative training.",
    "recompute": "Recomputation that frees less memory than it seems to.",
    "select_recompute": "Layers and operators selected for recomputation.",
}
"""The topic pages. Rule functions whose file names start with the same word share one page."""
