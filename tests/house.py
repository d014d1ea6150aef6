"""The modules that the rules of the house are about."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = sorted(p for p in (ROOT / "preflight").rglob("*.py"))
RULES = sorted(p for p in (ROOT / "rules").rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
