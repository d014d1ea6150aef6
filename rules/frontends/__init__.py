"""Declared constraints and rules for programs that start Megatron internally, with one module for each program."""
