"""Fixes as edits: applied to text, proven, written."""
