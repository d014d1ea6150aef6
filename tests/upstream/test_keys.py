"""The keys of configs, from the classes that hold them."""

from __future__ import annotations

from upstream.graph_tables import texts
from upstream.keys import TEMPLATE, keys

TEXT = """
class RunnerConfig(Config):
    _name = "runner_config"
    _required_keys = ["type"]
    epochs = None
    sink_mode = True

class ContextConfig:
    def __init__(self, mode: str = "GRAPH", level=0, *, strict, **kwargs): ...

@dataclass
class MoEConfig:
    experts: int = 1
    names: list = field(default_factory=list)
    path: str = OTHER

class Helper:
    nothing = 1
"""


def test_a_class_of_the_template_stands_for_its_section() -> None:
    found = keys({TEMPLATE: TEXT})
    assert found["runner_config.sink_mode"] == ["sink_mode", "bool", True]
    assert found["runner_config._required_keys"] == ["_required_keys", "list", ["type"]]
    assert "runner_config._name" not in found


def test_a_configuration_class_gives_its_fields_or_arguments() -> None:
    found = keys({"mindformers/core/config.py": TEXT})
    assert found["ContextConfig.mode"] == ["mode", "str", "GRAPH"]
    assert found["ContextConfig.level"] == ["level", "int", 0]
    assert found["ContextConfig.strict"] == ["strict", ""]
    assert found["MoEConfig.experts"] == ["experts", "int", 1]
    assert found["MoEConfig.names"] == ["names", "list", "list()"]
    assert found["MoEConfig.path"] == ["path", "str", "`OTHER`"]
    assert not [name for name in found if name.startswith("Helper")]


def test_the_tables_of_releases_in_between_come_out_the_same() -> None:
    assert [path.name for path, text in texts().items() if path.read_text(encoding="utf-8") != text] == []
