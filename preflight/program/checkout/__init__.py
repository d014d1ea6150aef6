"""The checkout around a file: which framework lies in it, of which release,
with which options and checks of its own. Read, never run."""
