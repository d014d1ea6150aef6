"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from preflight.layouts.result import Found, Result
from preflight.layouts.search import search
from preflight.layouts.space import Limits
from preflight.layouts.sweep import sweep

__all__ = ["Found", "Limits", "Result", "search", "sweep"]
