"""Puts the maintainers' tools, which are not installed, on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
