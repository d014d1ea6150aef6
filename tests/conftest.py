"""Fixtures that several tests share."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Ran, with_toy
from hypothesis import HealthCheck, settings
from one_rule import pytest_addoption as pytest_addoption
from one_rule import pytest_collection_modifyitems as pytest_collection_modifyitems
from one_rule import pytest_configure as pytest_configure
from one_rule import pytest_ignore_collect as pytest_ignore_collect
from one_rule import pytest_xdist_auto_num_workers as pytest_xdist_auto_num_workers

from preflight.plugins.manager import Plugins
from preflight.source.translation import ENGLISH, VARIABLE

os.environ[VARIABLE] = ENGLISH  # whatever the locale of who runs the tests
sys.dont_write_bytecode = False  # otherwise each of the many started processes compiles every module
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Lets Ctrl-C reach the started processes, even if a shell ignores it for background jobs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def toys() -> Plugins:
    return with_toy()


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a command line in an empty folder, with the toy plugin for all plugins."""
    from preflight.cli import run
    from preflight.plugins import manager as plugins

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "load", with_toy)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(list(words))
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def real_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a command line in an empty folder, with preflight's own rules."""
    from preflight.cli import run

    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Ran:
        code = run(list(words))
        return Ran(code, *capsys.readouterr())

    return call
