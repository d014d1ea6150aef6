"""Declared constraints and rules of programs that start Megatron underneath, one module each."""
