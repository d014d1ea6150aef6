"""The trainer's own source as it is there, read and never run: its parser and its checks."""
