"""The checkout around a file: which framework is in it, of which release, with which additional options and checks.
Read, never run."""
