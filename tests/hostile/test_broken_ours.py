"""A broken training config is reported, even if other broken files are ignored: in a folder, in a hook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Cli

BROKEN = {
    "a bracket at the end": "toy: true\ndata: 3\nlast: [1, 2\n",
    "a bracket in the middle": "toy: true\nlist: [1, 2\ndata: 3\nname: x\n",
    "a bracket at the beginning": "list: [1, 2\ndata: 3\ntoy: true\nname: x\n",
    "a brace in a section": "toy: true\nsection:\n  a: 1\n  b: {c: 1\n  d: 2\nname: x\n",
    "a quote that is not closed": 'first: 1\nname: "loud\ntoy: true\ndata: 3\n',
    "two brackets": "first: [1\ntoy: true\ndata: 3\nsecond: [2\n",
    "a wrong indent": "toy: true\ndata: 3\n  tensor: 4\nname: x\n",
    "a mark of a merge": "toy: true\n<<<<<<< HEAD\ndata: 3\n=======\ndata: 4\n>>>>>>> other\n",
}
FOREIGN = {
    "a bracket": "kind: Deployment\nlist: [1, 2\nspec: {}\n",
    "a template": "toy: {{ value }}\nlist: [\n",
    "no YAML at all": "}}} %% [[[ \n" * 20,
}
WHY = re.compile("invalid YAML|unresolved merge conflict")


@pytest.mark.parametrize("text", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_config_is_told_of_in_a_folder_and_in_a_hook(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    for words in (["."], ["run.yaml", "--allow-unclaimed"]):
        ran = cli("check", *words)
        assert (ran.code, ran.err.startswith("preflight: run.yaml:"), bool(WHY.search(ran.err))) == (2, True, True), ran


@pytest.mark.parametrize("text", FOREIGN.values(), ids=list(FOREIGN))
def test_a_broken_file_of_others_passes(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "chart.yaml").write_text(text)
    assert cli("check", ".", "--allow-unclaimed") == (0, "", "")
