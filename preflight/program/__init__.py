"""The trainer's own source as it lies there, read and never run: its parser and its checks."""
