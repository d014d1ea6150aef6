"""Networks, contexts and arrays of programs with the structure of MindFormers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_mindformers_programs import SOUND, told

from preflight.program.decision_recording_integers import Traced, holds
from preflight.program.judge import _SESSIONS, judge
from preflight.program.mindspore_context_refusals import context_fault, memory_fault, parallel_fault
from preflight.program.values import Unknown
from preflight.program.verdict import Program, Verdict

MODEL = "mindformers/models/model.py"
HEAD = """
import numpy as np
from mindspore import nn
from mindspore.common.initializer import Normal
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

"""
SETTING = (
    HEAD
    + """
class Setting:
    def __init__(self, layers, offset, stages):
        self.offset = np.array(offset, np.int32)
        if self.offset.ndim and self.offset.shape[-1] != stages:
            raise ValueError(f"{self.offset.shape[-1]} offsets for {stages} stages")
        if self.offset.sum() != layers % stages:
            raise ValueError(f"offsets of {self.offset.sum()}, but {layers} % {stages} = {layers % stages}")
        self.offset = np.broadcast_to(self.offset, (1, stages))
        self.rows = np.ones((1, stages), np.int32) * (layers // stages) + self.offset
        self.ends = np.cumsum(self.rows, axis=1)
        self.stages = [int(np.searchsorted(self.ends.reshape(-1), one + 1)) for one in range(layers)]
        taken = np.zeros_like(self.rows)
        for stage in self.stages:
            taken[0, stage] += 1
        assert (taken == self.rows).all()
        if taken.tolist()[0][-1] > 4:
            raise ValueError(f"{taken.tolist()[0][-1]} layers in the last stage")

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(nn.Cell):
    def __init__(self, layers, stages, offset=0):
        super().__init__()
        self.setting = Setting(layers, offset, stages)
"""
)
LAYERS = (
    HEAD
    + """
class Inner(Cell):
    def __init__(self, width, init="normal"):
        super().__init__()
        init = Normal(0.1) if init == "normal" else init
        if isinstance(init, Tensor) and init.ndim != 2:
            raise ValueError("no matrix")
        self.width = width

class Layer(nn.Cell):
    def __init__(self, layer_id, width, last):
        super().__init__()
        self.layer_id = layer_id
        self.inner = Inner(width) if layer_id % 2 else None
        self.others = [Inner(width) for _ in range(8)]
        if layer_id > last:
            raise ValueError(f"layer {layer_id} after {last}")

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(nn.Cell):
    def __init__(self, layers, stages, last=1000, odd=False):
        super().__init__()
        self.layers = [Layer(layer_id=one, width=8, last=last) for one in range(layers)]
        if not issubclass(Layer, nn.Cell) or not isinstance(self.layers[0], Cell):
            raise TypeError("a layer must be a cell")
        if [one.layer_id for one in self.layers] != list(range(layers)):
            raise ValueError("a layer has the number of another one")
        if odd and self.layers[-1].inner is None:
            raise ValueError(f"the last of {layers} layers has nothing in it")
"""
)


def network(root: Path, model: str, **arguments: object) -> Verdict:
    """The result of the program with this network."""
    return told(root, {"model": {"type": "Model", "layers": 4, **arguments}}, files={MODEL: model})


def refusal(verdict: Verdict) -> str:
    """The message of a certain refusal, "" if there is none."""
    return verdict.refusals[-1].message if verdict.outcome == "refuses" else ""


OFFSETS = {
    "even": ({"layers": 8}, ""),
    "one more in a stage": ({"layers": 7, "offset": [1, 0]}, ""),
    "too many": ({"layers": 8, "offset": [1, 1]}, "Model: offsets of 2, but 8 % 2 = 0"),
    "too long": ({"layers": 8, "offset": [0, 0, 0]}, "Model: 3 offsets for 2 stages"),
    "of text": ({"layers": 8, "offset": ["a", "b"]}, "Model: invalid literal for int() with base 10: 'a'"),
    "none": ({"layers": 7}, "Model: offsets of 0, but 7 % 2 = 1"),
    "counted": ({"layers": 10, "offset": 0}, "Model: 5 layers in the last stage"),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_arrays_of_numbers_are_computed(tmp_path: Path, name: str) -> None:
    pytest.importorskip("numpy")
    arguments, message = OFFSETS[name]
    verdict = network(tmp_path, SETTING, **arguments)
    assert (verdict.outcome, refusal(verdict)) == ("refuses" if message else "accepts", message), verdict


def test_without_numpy_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert network(tmp_path, SETTING, layers=8, offset=[1, 1]).outcome != "refuses"


def test_a_large_array_is_not_made(tmp_path: Path) -> None:
    assert network(tmp_path, SETTING, layers=10**9, stages=2).outcome != "refuses"


def test_each_layer_is_judged_with_its_own_number(tmp_path: Path) -> None:
    assert network(tmp_path, LAYERS, layers=60).outcome == "accepts"
    assert refusal(network(tmp_path, LAYERS, layers=60, last=57)) == "Model: layer 58 after 57"
    assert refusal(network(tmp_path, LAYERS, layers=61, odd=True)).startswith("Model: the last of 61 layers")
    assert network(tmp_path, LAYERS, layers=60, odd=True).outcome == "accepts"


def test_many_layers_cost_little_more_than_few(tmp_path: Path) -> None:
    found = network(tmp_path, LAYERS, layers=2000, last=5000)
    assert found.outcome == "accepts"  # 2,000 layers with 9 parts each, one by one, exceed the bound of a network


def test_a_traced_number_tells_which_others_decide_the_same_way() -> None:
    log: list[object] = []
    number = Traced.of(3, lambda numbers: numbers[0], log)  # type: ignore[arg-type]
    assert number + 1 < 10 and number % 2 == 1 and f"layer {number}" == "layer 3"
    assert [holds(log, [one]) for one in (5, 4, 9)] == [True, False, False]  # type: ignore[arg-type]
    assert {3: "here"}[number] == "here"
    assert not holds(log, [5])  # type: ignore[arg-type]


HOLDING = (
    HEAD
    + """
from mindspore import dtype, get_unknown_switch, nn as layers_of

class Layer(nn.Cell):
    def __init__(self, number):
        super().__init__()
        self.number = number

class Numbered(nn.CellList):
    def __init__(self, cells):
        super().__init__()
        for number, cell in cells:
            self._cells[str(number)] = cell

    def __getitem__(self, number):
        return self._cells[str(number)]

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(nn.Cell):
    def __init__(self, layers, stages, case="", start=0, kind="bfloat16"):
        super().__init__()
        self.layers = nn.CellList()
        for number in range(layers):
            self.layers.append(Layer(number))
        self.others = layers_of.CellList([Layer(number) for number in range(start)])
        if case == "empty" and not self.others:
            raise ValueError("no layer")
        if case == "length" and len(self.layers) != 4:
            raise ValueError(f"{len(self.layers)} layers")
        if case == "order" and [one.number for one in self.layers][-1] != 3:
            raise ValueError(f"last is {self.layers[-1].number}")
        if case == "apart" and len(self.others) == len(self.layers):
            raise ValueError("one list stands for both")
        if case == "extended":
            self.layers.extend(self.others)
            if len(self.layers) > 6:
                raise ValueError(f"{len(self.layers)} layers in all")
        if case == "replaced":
            self.layers[0] = Layer(9)
            if self.layers[0].number != start:
                raise ValueError(f"{self.layers[0].number} is not {start}")
        if case == "numbered":
            chosen = Numbered((one, Layer(one)) for one in range(start, start + 2))
            if start not in (one.number for one in chosen) or chosen[start + 1].number > 3:
                raise ValueError(f"{chosen[start + 1].number} is beyond the last")
        if case == "cell" and not isinstance(self.layers, Cell):
            raise TypeError("a list of layers is a layer")
        if case == "unknown":
            if get_unknown_switch():
                self.others.append(Layer(0))
            if not self.others:
                raise ValueError("perhaps no layer")
        if case == "type" and str(getattr(dtype, kind)).lower() != kind:
            raise KeyError(f"no type {kind}")
"""
)
HELD = {
    "no list": ({}, ""),
    "empty": ({"case": "empty"}, "Model: no layer"),
    "filled when it is made": ({"case": "empty", "start": 1}, ""),
    "length": ({"case": "length"}, ""),
    "another length": ({"case": "length", "layers": 5}, "Model: 5 layers"),
    "order": ({"case": "order", "layers": 3}, "Model: last is 2"),
    "two lists": ({"case": "apart", "start": 2}, ""),
    "extended": ({"case": "extended", "start": 3}, "Model: 7 layers in all"),
    "replaced": ({"case": "replaced", "start": 9}, ""),
    "replaced by another": ({"case": "replaced"}, "Model: 9 is not 0"),
    "numbered": ({"case": "numbered", "start": 2}, ""),
    "numbered beyond": ({"case": "numbered", "start": 3}, "Model: 4 is beyond the last"),
    "is a cell": ({"case": "cell"}, ""),
    "type of numbers": ({"case": "type"}, ""),
    "another type": ({"case": "type", "kind": "int8"}, ""),
}


@pytest.mark.parametrize("name", HELD)
def test_a_list_of_layers_holds_what_was_appended(tmp_path: Path, name: str) -> None:
    arguments, message = HELD[name]
    verdict = network(tmp_path, HOLDING, **arguments)
    assert (verdict.outcome, refusal(verdict)) == ("refuses" if message else "accepts", message), verdict


def test_a_list_that_may_be_empty_refuses_nothing_for_sure(tmp_path: Path) -> None:
    assert network(tmp_path, HOLDING, case="unknown").outcome == "may refuse"
    assert network(tmp_path, HOLDING, case="unknown", start=1).outcome == "accepts"


PERHAPS = (
    HEAD
    + """
from mindspore import get_unknown_switch

def plain(width):
    return width

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(nn.Cell):
    def __init__(self, layers, stages):
        super().__init__()
        named = {"width": layers}
        if get_unknown_switch():
            named["height"] = 1
        plain(**named)
        if "width" not in named:
            raise ValueError("no width")
"""
)


def test_an_argument_that_may_be_absent_is_not_surely_refused(tmp_path: Path) -> None:
    verdict = network(tmp_path, PERHAPS)
    assert verdict.outcome == "may refuse"
    assert "unexpected keyword argument 'height'" in verdict.refusals[0].message


DECORATED = (
    HEAD
    + """
import dataclasses

def traced(function):
    def wrapper(self, *given, **named):
        return function(self, *given, **named)
    return wrapper

class Below(nn.Cell):
    def __init__(self, layers):
        super().__init__()
        if layers > 5:
            raise ValueError(f"{layers} layers")

@dataclasses.dataclass
class Options:
    width: int = dataclasses.field(default=8, metadata={"unit": "words"})

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(Below):
    @traced
    def __init__(self, layers, stages):
        super().__init__(layers)
        units = {one.name: dict(one.metadata) for one in dataclasses.fields(Options)}
        if units["width"]["unit"] != "words":
            raise ValueError("no words")
"""
)


def test_super_reaches_what_a_plain_decorator_hides(tmp_path: Path) -> None:
    assert network(tmp_path, DECORATED).outcome == "accepts"
    assert refusal(network(tmp_path, DECORATED, layers=6)) == "Model: 6 layers"


CONTEXTS = {
    "search_mode": ("best", "sharding_propagation"),
    "enable_alltoall": (None, True),
    "enable_parallel_optimizer": ("True", False),
    "full_batch": (1, None),
    "strategy_ckpt_save_file": (7, "./ckpt"),
    "strategy_ckpt_config": ({"only_trainable_params": "no"}, {"save_file": "./ckpt", "only_trainable_params": False}),
    "parallel_optimizer_config": ({"parallel_optimizer_threshold": -1}, {"parallel_optimizer_threshold": 64}),
    "pipeline_config": ({"pipeline_interleave": "yes"}, {"pipeline_interleave": True, "pipeline_scheduler": "1f1b"}),
    "dataset_strategy": ("fullbatch", "full_batch"),
    "pipeline_stages": (0, 2),
    "loss_repeated_mean": ("x", True),
}


@pytest.mark.parametrize("key", CONTEXTS)
def test_the_setter_of_the_context_refuses_what_mindspore_refuses(tmp_path: Path, key: str) -> None:
    wrong, right = CONTEXTS[key]
    verdict = told(tmp_path, {"parallel": {"parallel_mode": 1, key: wrong}})
    assert (verdict.outcome, verdict.refusals[-1].place.file) == (
        "refuses",
        "mindformers/core/context/build_context.py",
    )
    assert told(tmp_path, {"parallel": {"parallel_mode": 1, key: right}}).outcome == "accepts"


def test_a_name_that_other_releases_of_mindspore_may_have_is_left_open(tmp_path: Path) -> None:
    verdict = told(tmp_path, {"parallel": {"parallel_mode": 1, "paralell_mode": 1}})
    assert verdict.outcome == "may refuse"
    assert verdict.refusals[0].unless == ("mindspore",)


@pytest.mark.parametrize("size", ["58GB", "0.5GB", "1024GB", "3.5GB"])
def test_sizes_of_memory_that_mindspore_takes(size: str) -> None:
    assert context_fault("max_device_memory", size) is None


@pytest.mark.parametrize("size", ["58", "58G", "58gb", "0GB", "0.0GB", "-5GB", "58 GB", 58, None])
def test_sizes_of_memory_that_mindspore_refuses(size: object) -> None:
    assert context_fault("max_device_memory", size) is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("init_size", size) for size in ("2GB", "3.5GB", "0.5GB", "10.GB")),
        *(("increase_size", "1GB"), ("max_size", "58GB"), ("huge_page_reserve_size", "0GB")),
        *(("optimize_level", "O0"), ("optimize_level", "O1"), ("max_size", Unknown())),
    ],
)
def test_sizes_that_set_memory_takes(key: str, value: object) -> None:
    assert memory_fault(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("max_size", size) for size in ("58", "58G", "GB", "0GB", "0.0GB", "-1GB", "58 GB", 58, 5.5, True, None)),
        *(("init_size", "2gb"), ("increase_size", "1MB"), ("huge_page_reserve_size", 0)),
        *(("optimize_level", "O2"), ("optimize_level", "o1"), ("optimize_level", 1)),
    ],
)
def test_sizes_that_set_memory_refuses(key: str, value: object) -> None:
    assert memory_fault(key, value) is not None


def test_a_count_of_stages_is_no_truth_value() -> None:
    assert parallel_fault("pipeline_stages", True) is not None
    assert parallel_fault("pipeline_stages", 2) is None


def test_what_the_command_line_gives_is_no_refusal(tmp_path: Path) -> None:
    rules = """
    def check_rules(config):
        if config.resume and not config.load_checkpoint:
            raise ValueError("no checkpoint to resume from")
    """
    files = {"mindformers/tools/check_rules.py": rules}
    for given in ({"load_checkpoint": ""}, {}):
        assert told(tmp_path, {"resume": True, **given}, files=files).outcome in ("unread", "may refuse")
    assert told(tmp_path, {"resume": True, "load_checkpoint": "./x"}, files=files).outcome == "accepts"
    assert SOUND["run_mode"] == "train"


GROUPS = """
    from mindspore.communication import get_group_size

    DEVICES = get_group_size()

    def check_rules(config):
        if config.parallel_config.data_parallel * 2 != get_group_size():
            raise ValueError(f"not {get_group_size()}")
"""


def test_one_reading_serves_any_number_of_devices(tmp_path: Path) -> None:
    told(tmp_path, files={"mindformers/tools/check_rules.py": GROUPS})
    program = Program("mindformers", (str(tmp_path),))

    def outcomes() -> list[str]:
        return [judge(program, [], env={}, world_size=devices, config=SOUND).outcome for devices in (8, 16, 8, None)]

    assert outcomes() == ["accepts", "refuses", "accepts", "may refuse"]
    assert len([key for key in _SESSIONS if str(tmp_path) in str(key)]) == 1
