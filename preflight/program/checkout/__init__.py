"""The checkout around a file: which framework lies in it, of which release,
with which further options and checks. Read, never run."""
