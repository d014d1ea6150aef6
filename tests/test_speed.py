"""Properties that keep a check fast: few imports, and shortcuts with the same results."""

from __future__ import annotations

import dataclasses
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import preflight
from preflight.lint import rule_registry
from preflight.lint.expressions import Expression
from preflight.plugins.manager import _listed, _scanned, load
from preflight.source import cache_folder
from preflight.source.finding import Finding
from preflight.source.record import replace
from preflight.source.source_file import Source

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
YAML, SCRIPT = EXAMPLES / "mindformers" / "run_llama2_7b.yaml", EXAMPLES / "megatron" / "train_8b.sh"
HEAVY = (
    "typer",
    "click",
    "rich",
    "pygments",
    "jsonschema",
    "ruamel",
    "numpy",
    "pydantic",
    "importlib.metadata",
    "pluggy",
    "inspect",
    "dataclasses",
    "ast",
    "importlib.resources",
)
OTHERS = (
    "preflight.dialects.megatron.dialect",
    "preflight.fix.fixer",
    "preflight.gate",
    "preflight.loaders.manifest",
    "preflight.loaders.shell",
    "preflight.layouts",
    "preflight.testing",
    "preflight.checking.merged_reports",
    "preflight.dialects.mindformers.launch",
    "preflight.dialects.mindformers.network_shape",
)
NEEDED = {
    "hyper_connections": "enable_hyper_connections: True, mhc_layernorm_epsilon: 0",
    "init_rules": "param_init_std_rules: []",
}
"""Modules of rules, each with the setting that they are about."""
CORE = """
run_mode: train
use_legacy: False
model: {model_config: {model_type: qwen3, architectures: Qwen3ForCausalLM%s}}
"""
PROGRAM = """
import sys
from preflight.cli import run
run(["check", sys.argv[1]])
print(*sys.modules, file=sys.stderr)
"""


def imported(path: Path, folder: Path, **more: str) -> set[str]:
    environment = {**os.environ, "PREFLIGHT_CACHE_DIR": str(folder / "cache"), **more}
    for _ in range(2):  # the first fills the table of the rules
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, cwd=folder, env=environment
        )
    return set(done.stderr.split())


def test_a_check_of_a_yaml_imports_nothing_heavy(tmp_path: Path) -> None:
    found = imported(YAML, tmp_path)
    assert "preflight.checking.engine" in found and not found.intersection((*HEAVY, *OTHERS))


def test_rules_load_where_the_setting_is_that_they_are_about(tmp_path: Path) -> None:
    modules = {name: f"preflight.rules.mindformers.{name}" for name in NEEDED}
    (tmp_path / "run.yaml").write_text(CORE % "", encoding="utf-8")
    assert not imported(tmp_path / "run.yaml", tmp_path, PREFLIGHT_NO_CACHE="1").intersection(modules.values())
    for name, setting in NEEDED.items():
        (tmp_path / "run.yaml").write_text(CORE % f", {setting}", encoding="utf-8")
        assert imported(tmp_path / "run.yaml", tmp_path, PREFLIGHT_NO_CACHE="1").intersection(modules.values()) == {
            modules[name]
        }


def test_a_check_of_a_script_imports_nothing_heavy(tmp_path: Path) -> None:
    found = imported(SCRIPT, tmp_path)
    assert "preflight.checking.engine" in found and not found.intersection(HEAVY)
    assert "yaml" not in found


@pytest.mark.slow
@pytest.mark.parametrize("example", ["mindformers/run_llama2_7b.yaml", "megatron/model_config.yaml"])
def test_a_checked_file_leaves_nothing_for_the_garbage_collector(example: str) -> None:
    preflight.check(EXAMPLES / example)
    gc.collect()
    gc.freeze()  # memory that other tests left
    gc.disable()
    try:
        preflight.check(EXAMPLES / example)
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()


PYYAML = """
import re
from preflight.loaders.yaml import load_yaml
from preflight.source.source_file import Source
load_yaml(Source("a.yaml", "when: 2024-02-03\\n"))
import yaml
assert "match" not in vars(yaml.reader.Reader.NON_PRINTABLE), "compiled in vain"
assert isinstance(re.compile("a"), re.Pattern) and re.compile.__module__ == "re"
read = yaml.load("a: [2024-02-03, 1.5e+3, 0x1F, on]", yaml.SafeLoader)
assert str(read) == "{'a': [datetime.date(2024, 2, 3), 1500.0, 31, True]}"
assert yaml.dump({"a": "on", "b": "2024-02-03"}) == "a: 'on'\\nb: '2024-02-03'\\n"
try:
    yaml.load("a: \\x07", yaml.SafeLoader)
except yaml.reader.ReaderError as error:
    print(error.character)
"""


def test_whoever_else_uses_pyyaml_finds_it_whole() -> None:
    done = subprocess.run([sys.executable, "-c", PYYAML], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("7\n", "")


@pytest.mark.parametrize(
    "package",
    ["preflight.rules", "preflight.rules.megatron", "preflight.rules.mindspeed", "preflight.rules.mindformers"],
)
def test_the_table_of_rules_says_what_the_rules_say(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path))
    real, kept = rule_registry.load(package), rule_registry.load(package)
    assert all(isinstance(rule, rule_registry.KeptRule) for rule in kept)
    for one, other in zip(real, kept, strict=True):
        assert (one.id, one.severity, one.frameworks, one.after) == (
            other.id,
            other.severity,
            other.frameworks,
            other.after,
        )
        refuse = getattr(one, "refuse", None)
        if isinstance(refuse, Expression) and other._gate is not None:
            needed, _ = rule_registry.necessary(refuse)
            assert rule_registry.necessary(rule_registry.tree(needed)) == (needed, True)


def test_a_spoilt_table_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path))
    ids = [rule.id for rule in rule_registry.load("preflight.rules")]
    (file,) = tmp_path.glob("*.json")
    first = (cache_folder.read(file.name) or "").partition("\n")[0]
    assert first
    for text in ("", "{", f"{first}\n[[", f"{first}\n[[1, 2, 3]]", f'{first}\n[["os", []]]'):
        cache_folder.write(file.name, text)
        assert [rule.id for rule in rule_registry.load("preflight.rules")] == ids


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, "")
    assert not any(isinstance(rule, rule_registry.KeptRule) for rule in rule_registry.load("preflight.rules"))


@pytest.mark.parametrize("group", ["preflight", "console_scripts", "pytest11"])
def test_the_scan_finds_the_entry_points_that_importlib_finds(group: str) -> None:
    assert set(_scanned(group)) == set(_listed(group))


def test_a_record_is_what_dataclasses_know() -> None:
    finding = Finding("text", Source("a", "b").span(0))
    assert replace(finding, message="other") == dataclasses.replace(finding, message="other") != finding
    assert [field.name for field in dataclasses.fields(finding)][:2] == ["message", "span"]
    with pytest.raises(AttributeError):
        finding.message = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Finding("text")  # type: ignore[call-arg]


def test_a_record_can_be_pickled() -> None:
    device = next(iter(load().devices))
    assert pickle.loads(pickle.dumps(device)) == device


@pytest.mark.parametrize(
    "switches",
    [[], ["--allow-unclaimed"], ["--force-exclude", "--allow-unclaimed"], ["--force-exclude", "--"]],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "paths",
    [[YAML], [YAML, SCRIPT], ["nowhere.yaml"], ["."], ["excluded.yaml"], []],
    ids=lambda paths: " ".join(Path(p).name for p in paths),
)
def test_a_line_that_is_read_without_typer_prints_the_same_with_it(
    paths: list[str | Path], switches: list[str], tmp_path: Path
) -> None:
    words = ["check", *switches, *map(str, paths)]
    (tmp_path / "excluded.yaml").write_text("seed: 1\n", encoding="utf-8")
    (tmp_path / "preflight.toml").write_text('exclude = ["excluded.yaml"]\n', encoding="utf-8")
    program = "import sys; from preflight.cli.app import run; from preflight.cli.fast_parser import apart; "
    typer = ["-c", f"{program}sys.exit(run(apart(sys.argv[1:])))"]
    short, long = (
        subprocess.run([sys.executable, *way, *words], capture_output=True, text=True, cwd=tmp_path)
        for way in (["-m", "preflight"], typer)
    )
    assert (short.returncode, short.stdout, short.stderr) == (long.returncode, long.stdout, long.stderr)


def test_the_kept_table_is_made_anew_when_any_file_of_preflight_changes() -> None:
    stamped = rule_registry.stamp()
    for part in (
        "checking/engine.py",
        "dialects/megatron/dialect.py",
        "lint/constraint.py",
        "run/version_ranges.py",
        "rules/__init__.py",
    ):
        assert part in stamped or "site-packages" in stamped, part
