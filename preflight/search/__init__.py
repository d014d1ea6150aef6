"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from preflight.search.layouts import Found, Limits, Result, search

__all__ = ["Found", "Limits", "Result", "search"]
