"""Why a fix is not written."""

from __future__ import annotations


class NotProven(Exception):
    """The edit would change something it did not mean to; the message says what."""
