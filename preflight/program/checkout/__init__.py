"""The checkout around a file: its framework, release, additional options and checks. Read, never executed."""
