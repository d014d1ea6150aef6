"""Features that work without extras, and messages about missing ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from preflight.source.extras import COMPANIONS, EXTRAS

pytestmark = pytest.mark.slow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
YAML = ROOT / "examples" / "mindformers" / "run_llama2_7b.yaml"
SOUND = ROOT / "examples" / "megatron" / "sound_8b.yaml"
PROGRAM = """
import sys

class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked)
from preflight.cli import run
sys.exit(run(sys.argv[1:]))
"""


def without(modules: list[str], *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line with some modules missing."""
    (folder / "run.yaml").write_text(YAML.read_text(encoding="utf-8"), encoding="utf-8")
    program = PROGRAM.replace("BLOCKED", repr(modules))
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize(
    ("words", "module", "extra"),
    [
        ("lsp", "lsprotocol", "lsp"),
        ("mcp", "mcp", "mcp"),
        ("check --suggest run.yaml", "numpy", "layouts"),
        ("layouts run.yaml", "numpy", "layouts"),
        ("check -f html run.yaml", "jinja2", "reports"),
        ("check -f junit run.yaml", "junitparser", "reports"),
        ("memory --plot a.html run.yaml", "jinja2", "reports"),
        (f"memory --device a100 --world-size 64 --plot a.png {SOUND}", "matplotlib", "plot"),
    ],
)
def test_a_missing_extra_is_one_line_that_names_it_and_exit_2(
    words: str, module: str, extra: str, tmp_path: Path
) -> None:
    together = [name for name, other in COMPANIONS.items() if other == module]
    ran = without([module, *together], *words.split(), folder=tmp_path)
    told = f"preflight: this needs {module}, which is not installed: pip install {module}\n"
    assert EXTRAS[module] == extra
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)
    assert (tmp_path / "run.yaml").read_text(encoding="utf-8") == YAML.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("check run.yaml", 1),
        ("check -f json -f github:a -f gitlab:b -f markdown:c run.yaml", 1),
        ("fix run.yaml", 1),
        ("fix --diff run.yaml", 1),
        ("show run.yaml", 0),
        ("memory run.yaml", 0),
        ("baseline run.yaml", 0),
        ("rules", 0),
        ("explain device-count", 0),
        ("schema report", 0),
        ("--help", 0),
        ("layouts --help", 0),
    ],
)
def test_all_else_works_without_the_extras(words: str, code: int, tmp_path: Path) -> None:
    ran = without(list(EXTRAS), *words.split(), folder=tmp_path)
    assert ran.returncode == code
    assert "preflight: " not in ran.stderr


def test_a_fix_goes_on_where_only_a_search_needs_numpy(tmp_path: Path) -> None:
    ran = without(list(EXTRAS), "fix", "--unsafe", "run.yaml", folder=tmp_path)
    why = "this needs numpy, which is not installed: pip install numpy"
    assert ran.stderr == f"preflight: run.yaml: no other layouts were searched: {why}\n"
    assert ran.returncode == 1 and "2 fixed." in ran.stdout
    assert "learning_rate: 3.0e-4" in (tmp_path / "run.yaml").read_text(encoding="utf-8")


def test_the_gate_refuses_without_the_extras_and_leaves_its_advice_out(tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    words = (
        "--num-layers 30 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024"
    )
    command = (
        f"pretrain_gpt.py {words} --micro-batch-size 1 --pipeline-model-parallel-size 4 --tensor-model-parallel-size 3"
    )
    script.write_text(
        f"#!/bin/bash\n#SBATCH -N 2\ntorchrun --nnodes 2 --nproc-per-node 8 {command}\n", encoding="utf-8"
    )
    gate = ["gate", "--timeout", "60", "--devices-per-node", "8", "--script", str(script)]
    ran = without(list(EXTRAS), *gate, folder=tmp_path)
    assert (ran.returncode, json.loads(ran.stdout)["exit"]) == (1, 1)


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert any(line.startswith(f"{module}>=") for line in extras[extra]), module
        assert not any(line.startswith(f"{module}>=") for line in project["dependencies"]), module
    assert extras["all"] == [f"preflight-llm[{','.join(dict.fromkeys(EXTRAS.values()))}]"]
