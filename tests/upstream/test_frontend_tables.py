"""The tables of front ends, read off sources that are patches or whole files."""

from __future__ import annotations

import subprocess

import pytest

from upstream.frontends.flagscale import ENTRIES, FLAGSCALE, flagscale

PATCH = """\
--- a/megatron/training/arguments.py
+++ b/megatron/training/arguments.py
@@ -1,9 +1,12 @@ def _add_distributed_args(parser):
     group.add_argument('--distributed-backend', default='nccl',
-                       choices=['nccl', 'gloo'],
+                       choices=['nccl', 'gloo', 'flagcx'],
                        help='Which backend.')
     group.add_argument('--seed', type=int, default=1234,
                        help='Seed.')
+    group.add_argument('--enable-hetero', action="store_true",
+                       help='meshes (of any kind)')
@@ -90,2 +93,5 @@ def _add_hetero_args(parser):
+    group.add_argument('--hetero-process-meshes', nargs='*', type=int, default=None)
     return parser
"""
LLAVA = "def add(parser):\n    group.add_argument('--prompt-path', type=str, default=None)\n"


def text(path: str) -> str:
    if path == FLAGSCALE:
        return PATCH
    assert path.rpartition("/")[2] in ENTRIES
    return LLAVA


def test_a_patch_tells_what_it_adds_and_changes() -> None:
    keys = flagscale(text)["keys"]
    assert keys["--distributed-backend"] == ["distributed_backend", "str", "nccl", None, ("nccl", "gloo", "flagcx")]
    assert keys["--enable-hetero"] == ["enable_hetero", "true", False]
    assert keys["--hetero-process-meshes"] == ["hetero_process_meshes", "int", None, "*"]
    assert keys["--prompt-path"] == ["prompt_path", "str", None]
    assert "--seed" not in keys
    assert "Qwen2VLTokenizer" in keys["--tokenizer-type"][4]


def test_an_older_release_has_the_whole_file() -> None:
    whole = (
        "def add(parser):\n    group.add_argument('--seed', type=int)\n    group.add_argument('--own', type=float)\n"
    )

    def older(path: str) -> str:
        if path == FLAGSCALE:
            raise subprocess.CalledProcessError(128, "git")
        return whole if path == FLAGSCALE.removesuffix(".patch") else ""

    keys = flagscale(older)["keys"]
    assert keys["--own"] == ["own", "float", None]
    assert "--seed" not in keys


@pytest.mark.parametrize("key", ["--seed", "--enable-hetero", "experiment.runner.nnodes"])
def test_every_option_of_megatron_is_known_beside(key: str) -> None:
    assert key in flagscale(text)["all keys"]
