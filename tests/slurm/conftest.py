"""The Slurm that the tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import NEEDED, Slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"Slurm is not installed here ({', '.join(missing)} missing)")
    if os.geteuid() != 0:
        pytest.skip("starting Slurm's daemons needs root")
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # pytest's own folders are closed to other users, who submit here
    folder.chmod(0o711)
    cluster = Slurm(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def gated(slurm: Slurm) -> Iterator[Slurm]:
    """The cluster with the resident checker running."""
    slurm.start_checker()
    yield slurm
    slurm.stop_checker()
