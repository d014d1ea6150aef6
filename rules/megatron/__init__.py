"""Declared constraints and rules of megatron, by topic."""
