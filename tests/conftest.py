"""Fixtures that several tests share."""

from __future__ import annotations

import pluggy
import pytest
import toy

from preflight import hookspecs
from preflight.plugins import Plugins


@pytest.fixture(scope="session")
def toys() -> Plugins:
    """Plugins with nothing but the toy in them."""
    manager = pluggy.PluginManager("preflight")
    manager.add_hookspecs(hookspecs)
    manager.register(toy)
    return Plugins(manager)
