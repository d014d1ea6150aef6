"""preflight's output about published files: `python benchmarks/gallery.py [--source …]` rewrites docs/gallery.md.

A find on that page is a link to a line of a file at a commit, and below it the command and its output.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from ecosystem import CACHE, ROOT, Repository, fetched, unpack

PAGE = ROOT / "docs" / "gallery.md"
FIND = re.compile(
    r"(?P<link>\]\(https://github\.com/(?P<name>[^/]+/[^/]+)/blob/(?P<commit>[0-9a-f]{40})/(?P<path>[^)#]+)#L(?P<line>\d+)\)"
    r"[^`]*```text\n)\$ (?P<command>[^\n]+)\n.*?(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
RUN = [sys.executable, "-c", "from preflight.cli import main; main()"]


def printed(find: re.Match[str], files: Path) -> str:
    """A finding with the output of its command in a tree of the repository's files."""
    words = shlex.split(find["command"])[1:]
    environment = {**os.environ, "PREFLIGHT_NO_CACHE": "1", "COLUMNS": "120"}
    ran = subprocess.run([*RUN, *words], cwd=files, env=environment, capture_output=True, text=True, check=False)
    lines = [line.rstrip() for line in (ran.stdout + ran.stderr).splitlines()]
    return "\n".join([f"{find['link']}$ {find['command']}", *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="https://github.com/{owner}/{name}")
    parser.add_argument("--cache", type=Path, default=CACHE)
    asked = parser.parse_args()
    trees: dict[tuple[str, str], Path] = {}
    with tempfile.TemporaryDirectory() as folder:

        def rerun(find: re.Match[str]) -> str:
            place = (find["name"], find["commit"])
            if place not in trees:
                repository = fetched(Repository(*place, []), asked.source, asked.cache)
                trees[place] = unpack(repository, find["commit"], Path(folder, str(len(trees))))
            return printed(find, trees[place])

        PAGE.write_text(FIND.sub(rerun, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
