"""Declared checks and rules for MindSpeed and MindSpeed-LLM, by topic."""
