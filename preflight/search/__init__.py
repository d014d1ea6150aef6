"""Layouts that fit: enumerate, estimate, rank, prove with the same rules."""

from preflight.search.layouts import Found, Result, search
from preflight.search.space import Limits

__all__ = ["Found", "Limits", "Result", "search"]
