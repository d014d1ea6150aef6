"""Declared checks and rules for programs that start Megatron internally. Each program has its own module or modules."""
