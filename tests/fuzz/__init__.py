"""Fuzzing: `python -m tests.fuzz --seconds 60` from the root of the checkout.
With atheris installed it is led by coverage."""
