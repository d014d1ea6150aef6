"""Declared checks and rules for MindFormers, by topic."""

FAMILIES = {
    "class": "Checks of the classes that a config names, and of their arguments.",
    "pynative": "Checks of pynative training settings.",
    "recompute": "Checks for recomputation that frees less memory than it seems to.",
    "select_recompute": "Checks of layers and operators that are selected for recomputation.",
}
"""The topic pages. Rule functions whose file names start with the same word share one page."""
