"""Builds the site of every version: `python docs/site/versions.py FOLDER`, in a clone that has its tags.

Each tag vX.Y.Z becomes a folder X.Y.Z, built by its own pages and settings. The current tree becomes the folder of its
version, or `main` if that version has a tag. versions.json lists them for the selector of the theme, and the first page
leads to the newest release.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAG = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
FIRST = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>preflight</title>
<meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">preflight {0}</a></html>
"""


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def mkdocs(tree: Path, out: Path) -> None:
    """The site of a tree, by the preflight of that tree."""
    known = {**os.environ, "PYTHONPATH": str(tree), "SITE_VERSION": out.name}
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)], cwd=tree, check=True, env=known
    )


def versions(tags: list[str], current: str) -> dict[str, str | None]:
    """The folders of the site and the tag of each, newest first; None is the current tree."""
    numbered = sorted((tuple(map(int, m.groups())), tag) for tag in tags if (m := TAG.fullmatch(tag)))
    released = {tag[1:]: tag for _, tag in reversed(numbered)}
    return {"main" if current in released else current: None, **released}


def build(out: Path, tags: list[str], current: str, site: Callable[[Path, Path], None] = mkdocs) -> None:
    found = versions(tags, current)
    for folder, tag in found.items():
        if tag is None:
            site(ROOT, out / folder)
            continue
        with tempfile.TemporaryDirectory() as kept:
            tree = Path(kept) / "tree"
            git("worktree", "add", "--detach", "--force", str(tree), tag)
            try:
                site(tree, out / folder)
            finally:
                git("worktree", "remove", "--force", str(tree))
    newest = next((folder for folder, tag in found.items() if tag), next(iter(found)))
    listed = [
        {"version": folder, "title": folder, "aliases": ["latest"] if folder == newest else []} for folder in found
    ]
    (out / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (out / "index.html").write_text(FIRST.format(newest), encoding="utf-8")


if __name__ == "__main__":
    text = (ROOT / "preflight" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    build(Path(sys.argv[1]).resolve(), git("tag", "--list").split(), version[1] if version else "main")
