"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from preflight.layouts.search import Found, Result, search
from preflight.layouts.space import Limits
from preflight.layouts.sweep import sweep

__all__ = ["Found", "Limits", "Result", "search", "sweep"]
