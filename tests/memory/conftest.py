"""The plan fixture."""

from __future__ import annotations

from typing import Any

import pytest
from memory_plans import make


@pytest.fixture
def plan() -> Any:
    return make
