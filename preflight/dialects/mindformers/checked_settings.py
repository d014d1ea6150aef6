"""The settings of graph-mode MindFormers whose kind of value the framework checks, release by release."""

from __future__ import annotations

from functools import lru_cache

from preflight.dialects.mindformers.checked_network import NETWORK_SETTINGS
from preflight.dialects.mindformers.checked_run import RUN_SETTINGS
from preflight.dialects.mindformers.checked_setting import Checked
from preflight.run.versions import matches


@lru_cache(maxsize=32)
def checked_in(version: str, *, core: bool) -> tuple[Checked, ...]:
    """The settings that a release checks ("": any release). core: those of an mcore network by its own names, too."""
    rows: tuple[Checked, ...] = (*RUN_SETTINGS, *NETWORK_SETTINGS)
    if core:
        from preflight.dialects.mindformers.checked_core import CORE_SETTINGS

        rows += CORE_SETTINGS
    return tuple(row for row in rows if matches(version, row.versions))
