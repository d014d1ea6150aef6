"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from preflight.search.layouts import Found, Result, search
from preflight.search.space import Limits
from preflight.search.sweep import sweep

__all__ = ["Found", "Limits", "Result", "search", "sweep"]
