"""Declared constraints and rules of mindformers, by topic."""
