"""The trainer's source code, read and never executed: its parser and its checks."""
