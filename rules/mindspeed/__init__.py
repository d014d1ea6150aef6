"""Declared constraints and rules of mindspeed, by topic."""
