"""Settings files: valid settings, their effects, and messages about errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from harness import Cli
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from preflight.run.project_settings import Facts, path_matches, validator, verify
from preflight.run.settings_files import load
from preflight.source.source_file import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = json.loads(files("preflight.schemas").joinpath("settings.json").read_text(encoding="utf-8"))
BAD = "toy: true\ndata: 3\ntensor: 2\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("world-size = 8", 1),
        ("world-size = 6", 0),
        ("world-size = 8\nignore = ['toy-devices']", 0),
        ("world-size = 8\nselect = ['toy-name']", 0),
        ("world-size = 8\nfail-on = 'never'", 0),
        ("[per-file.'*.yaml']\nworld-size = 8", 1),
        ("[per-file.'sub/*.yaml']\nworld-size = 8", 0),
        ("world-size = 8\n[per-file.'run.yaml']\nworld-size = 6", 0),
        ("world-size = 8\n[per-file.'run.yaml']\nignore = ['toy-devices']", 0),
        ("world-size = 8\n[per-file.'other.yaml']\nignore = ['toy-devices']", 1),
        ("world-size = 8\n[rules.toy-devices]\nallow-idle = true", 0),
        ("required-version = '>=0.1'", 0),
        ("device = 'mine'\n[[devices]]\nname = 'mine'\nmemory-gib = 4", 0),
        ("exclude = ['run.yaml']", 0),
    ],
)
def test_settings_hold(cli: Cli, tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "preflight.toml").write_text(text)
    (tmp_path / "run.yaml").write_text(BAD)
    assert cli("check", "run.yaml").code == code
    (tmp_path / "preflight.toml").unlink()
    body = re.sub(r"^(\[+)", r"\1tool.preflight.", text, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\n[tool.preflight]\n{body}\n")
    assert cli("check", "run.yaml").code == code
    assert cli("check", "run.yaml", "--isolated").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ingore = []", "preflight.toml:1: there is no setting 'ingore'; did you mean 'ignore'?"),
        ("\nworld-size = '8'", 'preflight.toml:2: world-size must be an integer, not "8"'),
        ("world-size = true", "preflight.toml:1: world-size must be an integer, not true"),
        ("world-size = 0", "preflight.toml:1: world-size must be at least 1, not 0"),
        (
            "fail-on = 'eror'",
            "preflight.toml:1: fail-on must be one of error, warning, note, never, not 'eror'; did you mean 'error'?",
        ),
        ("select = 'toy-name'", 'preflight.toml:1: select must be a list, not "toy-name"'),
        (
            "[per-file.'*.yaml']\nignor = []",
            "preflight.toml:2: per-file.*.yaml has no setting 'ignor'; did you mean 'ignore'?",
        ),
        ("[[devices]]\nname = 'x'", "preflight.toml:1: devices needs 'memory-gib'"),
        ("ignore = [", "preflight.toml:1: is not TOML: Invalid value"),
        ("ignore = ['toy-nam']", "preflight.toml: there is no rule or group 'toy-nam'; did you mean 'toy-name'?"),
        ("[rules.toy-nam]", "preflight.toml: there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        (
            "[rules.toy-devices]\nallow-idel = true",
            "preflight.toml: rule 'toy-devices' has no option 'allow-idel'; did you mean 'allow-idle'?",
        ),
        (
            "[rules.toy-devices]\nallow-idle = 1",
            "preflight.toml: option 'allow-idle' of rule 'toy-devices' must have the type of its default, "
            "False, but is 1",
        ),
        ("required-version = '>=99'", "preflight.toml: requires preflight >=99, but this is {version}"),
        (
            "[per-file.'*.yaml']\nselect = ['toy-nam']",
            "preflight.toml: there is no rule or group 'toy-nam'; did you mean 'toy-name'?",
        ),
        ("target = 'tooy'", "preflight.toml: there is no framework 'tooy'; did you mean 'toy'?"),
        (
            "world-size = 8\nnodes = 3\ndevices-per-node = 2",
            "preflight.toml: a world size of 8 contradicts 3 nodes with 2 devices each, which have 6 devices",
        ),
        ("device = 'none'", "preflight.toml: there is no device 'none'; known devices are toy-card"),
    ],
)
def test_a_fault_in_the_settings_is_one_line_and_exit_2(cli: Cli, tmp_path: Path, text: str, message: str) -> None:
    import preflight

    (tmp_path / "preflight.toml").write_text(text)
    (tmp_path / "run.yaml").write_text(BAD)
    ran = cli("check", "run.yaml")
    assert (ran.code, ran.err.replace(f"{tmp_path}/", "")) == (
        2,
        f"preflight: {message.replace('{version}', preflight.__version__)}\n",
    )


def test_the_nearest_file_holds_and_nothing_is_merged(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "preflight.toml").write_text("world-size = 8\n")
    below = tmp_path / "below"
    below.mkdir()
    (below / "run.yaml").write_text(BAD)
    monkeypatch.chdir(below)
    assert cli("check", "run.yaml").code == 1
    (below / "pyproject.toml").write_text("[tool.other]\npreflight = 1\n")
    assert cli("check", "run.yaml").code == 1
    (below / "pyproject.toml").write_text("[tool.preflight]\n")
    assert cli("check", "run.yaml").code == 0
    assert cli("check", "run.yaml", "--config", "../preflight.toml").code == 1
    assert "world-size" in cli("check", "--show-settings", "--config", "../preflight.toml").out


def test_the_command_line_outweighs_the_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text("world-size = 8\n[per-file.'*']\nworld-size = 12\n")
    (tmp_path / "run.yaml").write_text(BAD)
    assert cli("check", "run.yaml", "--world-size", "6").code == 0
    assert cli("check", "run.yaml", "--nodes", "2", "--devices-per-node", "3").code == 0


def test_facts_said_here_outweigh_facts_said_there() -> None:
    assert Facts(world_size=4).over(Facts(nodes=2, devices_per_node=8)) == Facts(world_size=4, devices_per_node=8)
    assert Facts(nodes=2).over(Facts(world_size=4, devices_per_node=8)) == Facts(nodes=2, devices_per_node=8)


@pytest.mark.parametrize(
    ("path", "pattern", "matches"),
    [
        ("a/b.yaml", "*.yaml", True),
        ("a/b.yaml", "a", True),
        ("a/b.yaml", "a/", True),
        ("a/b.yaml", "a/*.yaml", True),
        ("a/b.yaml", "./a/b.yaml", True),
        ("a/b/c.yaml", "a/b", True),
        ("x/a/b.yaml", "a/b.yaml", False),
        ("a/b.yaml", "b", False),
    ],
)
def test_patterns(path: str, pattern: str, matches: bool) -> None:
    assert path_matches(path, pattern) is matches


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-2, 9),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["error", "warn", "x"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["name", "memory-gib", "select", "z"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@effort(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), VALUES, max_size=3))
def test_whatever_the_schema_refuses_is_one_line(data: dict[str, Any]) -> None:
    try:
        verify(data, Path("preflight.toml"), repr(data))
    except InputError as error:
        assert not validator(SCHEMA).is_valid(data)
        assert "\n" not in str(error) and "does not match the schema" not in str(error)
    else:
        assert jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_a_float_is_no_whole_number(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text("world-size = 8.0\n")
    (tmp_path / "run.yaml").write_text(BAD)
    assert "preflight.toml:1: world-size must be an integer, not 8.0" in cli("check", "run.yaml").err


PROGRAM = """
import sys
from pathlib import Path
from preflight.run.settings_files import load
load(Path(sys.argv[1]))
print("jsonschema" in sys.modules)
"""


def validated(path: Path, cache: Path) -> bool:
    """Whether reading a settings file loads the validator."""
    environment = {**os.environ, "PREFLIGHT_CACHE_DIR": str(cache)}
    words = [sys.executable, "-c", PROGRAM, str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout == "True\n"


def test_a_settings_file_is_validated_once_per_content(tmp_path: Path) -> None:
    file, cache = tmp_path / "preflight.toml", tmp_path / "cache"
    file.write_text("world-size = 8\n")
    assert [validated(file, cache) for _ in range(2)] == [True, False]
    file.write_text("world-size = 16\n")
    assert [validated(file, cache) for _ in range(2)] == [True, False]
    file.write_text("world-size = 8\n")
    assert not validated(file, cache)


def test_a_faulty_settings_file_is_never_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "preflight.toml"
    file.write_text("world-size = 0\n")
    for _ in range(2):
        with pytest.raises(InputError, match="must be at least 1"):
            load(file)


def test_a_table_of_pyproject_in_a_file_of_our_own_is_explained(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text("[tool.preflight]\nworld-size = 8\n")
    assert "settings do not go under [tool.preflight]" in cli("check", "run.yaml").err


def test_settings_extend_those_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    sub = tmp_path / "sub"
    sub.mkdir()
    (tmp_path / "base.toml").write_text("nodes = 2\nignore = ['a']\n[set]\nA = 1\nB = 1\n")
    (sub / "preflight.toml").write_text("extend = '../base.toml'\nignore = ['b']\n[set]\nB = 2\n")
    found = load(sub / "preflight.toml")
    assert (found.facts.nodes, found.choice.ignore, found.facts.set) == (2, ("b",), {"A": "1", "B": "2"})
    assert found.root == sub


@pytest.mark.parametrize(
    ("name", "why"),
    [("../../x.toml", "is outside of the project"), ("gone.toml", "does not exist"), ("a.toml", "extends itself")],
)
def test_settings_that_cannot_be_extended_are_refused(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "setup.py").touch()
    (tmp_path / "a.toml").write_text(f"extend = '{name}'\n")
    with pytest.raises(InputError, match=why):
        load(tmp_path / "a.toml")


def test_the_schema_is_ready_for_schemastore() -> None:
    """SchemaStore accepts draft 7: the schema of settings uses nothing from a later draft."""
    older = {**SCHEMA, "$schema": "http://json-schema.org/draft-07/schema#"}
    jsonschema.Draft7Validator.check_schema(older)
    assert not {"$defs", "prefixItems", "unevaluatedProperties", "dependentRequired"} & set(
        re.findall(r'"([$\w]+)":', json.dumps(older))
    )
    entry = json.loads((Path(__file__).parents[1] / "editors" / "schemastore" / "catalog-entry.json").read_text())
    assert entry["fileMatch"] == ["preflight.toml"] and entry["url"].endswith("/preflight.json")


def test_a_pyproject_is_parsed_only_where_it_may_have_settings(real_cli: Cli, tmp_path: Path) -> None:
    """Every way that TOML has to write the table; a project that only depends on preflight costs no parser."""
    (tmp_path / "run.yaml").write_text("a: 1\n")
    project = tmp_path / "pyproject.toml"
    ways = (
        "[tool.preflight]\nnope = 1",
        '[ tool . "preflight" ]\nnope = 1',
        "[tool]\npreflight = {nope = 1}",
        "[ 'tool' ] # all\npreflight.nope = 1",
        "tool.preflight.nope = 1",
        "tool = {preflight = {nope = 1}}",
        "'tool'.'preflight'.nope = 1",
    )
    for text in ways:
        project.write_text(f"{text}\n")
        assert "there is no setting 'nope'" in real_cli("check", "run.yaml").err, text
    project.write_text("[project]\nname = 'x'\nversion = '1'\ndependencies = ['preflight-llm']\n[tool.ruff]\n")
    assert "nope" not in real_cli("check", "run.yaml").err


def test_the_settings_in_effect_are_toml(cli: Cli, tmp_path: Path) -> None:
    text = "nodes = 2\nignore = ['toy-devices']\n\n[set]\nA = '1'\n\n[per-file.'a b/*.sh']\nignore = ['toy-name']\n"
    (tmp_path / "preflight.toml").write_text(text)
    shown = cli("check", "--show-settings", "--devices-per-node", "4").out
    files, _, called = shown.partition("# on the command line, which takes precedence\n")
    assert files.startswith(f"# {tmp_path}/preflight.toml\n")
    assert tomllib.loads(files) == tomllib.loads(text)
    assert called == "devices-per-node = 4\n"
    assert cli("check", "--show-settings", "--isolated").out == "# no settings file\n"
