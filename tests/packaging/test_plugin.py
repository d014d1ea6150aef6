"""A real package of a third party adds a rule, a device, a dialect and a reporter; a broken one is named and fatal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from environments import ROOT, Environment

pytestmark = pytest.mark.slow
ACME = ROOT / "tests" / "plugin" / "acme"


def test_a_plugin_brings_a_rule_a_device_a_dialect_and_a_reporter_and_a_broken_one_is_fatal(
    environment: Environment, checkout: Path, tmp_path: Path
) -> None:
    acme = shutil.copytree(ACME, tmp_path / "acme")
    environment.pip("install", "-q", f"{checkout}[layouts]", acme)
    run_yaml = tmp_path / "run.yaml"
    run_yaml.write_text("acme_trainer: 2\nranks: 8\n")

    def preflight(*words: str, code: int) -> str:
        return environment.preflight(*words, cwd=tmp_path, code=code)

    assert (
        preflight("check", "run.yaml", "-f", "csv", code=0)
        == "path,line,rule,severity,message\nrun.yaml,1,acme-no-seed,warning,the run has no seed\n"
    )
    assert "device       acme-one" in preflight("show", "run.yaml", "--device", "A1", code=0)
    assert "DP 8 · TP 1 · PP 1 · CP 1 on 8 devices" in preflight("show", "run.yaml", code=0)
    assert "Acme handbook, section 4" in preflight("explain", "acme-no-seed", code=0)
    assert "1 fixed." in preflight("fix", "run.yaml", "--unsafe", code=0)
    assert run_yaml.read_text() == "acme_trainer: 2\nranks: 8\nseed: 1234\n"
    assert "model_config.yaml:" in preflight("check", str(checkout / "examples/megatron/model_config.yaml"), code=1)

    train = tmp_path / "run.sh"
    train.write_text("python acme_train.py --layers 24 --width 1024 --heads 16 --batch 97 --micro-batch 4\n")
    assert "run.sh,1,batch-not-divisible,error," in preflight("check", "run.sh", "-f", "csv", code=1)
    preflight("fix", "run.sh", "--unsafe", code=0)
    assert train.read_text() == "python acme_train.py --layers 24 --width 1024 --heads 16 --batch 96 --micro-batch 4\n"

    source = acme / "acme_preflight" / "__init__.py"
    source.write_text(source.read_text() + "\nraise RuntimeError('out of order')\n")
    environment.pip("install", "-q", "--force-reinstall", "--no-deps", acme)
    told = preflight("check", "run.yaml", code=3)
    assert told == (
        "preflight: plugin 'acme' of acme-preflight 1.2.3 (acme_preflight) cannot be loaded: RuntimeError: "
        "out of order\n"
    )

    source.write_text("from preflight import hookimpl\n\n\n@hookimpl\ndef preflight_rulez():\n    return []\n")
    environment.pip("install", "-q", "--force-reinstall", "--no-deps", acme)
    told = preflight("check", "run.yaml", code=3)
    assert told.startswith("preflight: a plugin implements a hook that does not exist")
    assert "preflight_rulez" in told
