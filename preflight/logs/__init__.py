"""Logs of training runs: why a job died, and how fast one was that did not."""
