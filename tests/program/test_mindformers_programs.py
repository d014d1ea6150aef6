"""Programs with the structure of MindFormers: a starting script, a registry, a configuration file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from trainer import judged, write_tree

import preflight
from preflight.program.judge import Session, in_thread
from preflight.program.values import Unknown
from preflight.program.verdict import Budget, Machine, Program, Verdict

SCRIPT = """
import argparse
import os

from mindformers.tools.register import MindFormerConfig
from mindformers.core.context import build_context
from mindformers.trainer import Trainer

def main(config):
    build_context(config)
    trainer = Trainer(config)
    trainer.train()

if __name__ == "__main__":
    work_path = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    args_, rest_args_ = parser.parse_known_args()
    if not os.path.isabs(args_.config):
        args_.config = os.path.join(work_path, args_.config)
    config_ = MindFormerConfig(args_.config)
    if config_.run_mode not in ["train", "predict"]:
        raise TypeError(f"run status must not be {config_.run_mode}")
    main(config_)
"""
CONFIG = """
import yaml
from collections import OrderedDict

class DictConfig(dict):
    def __init__(self, **kwargs):
        super(DictConfig, self).__init__()
        self.update(kwargs)

    def __getattr__(self, key):
        if key not in self:
            return None
        return self[key]

    def __setattr__(self, key, value):
        self[key] = value

    def __delattr__(self, key):
        del self[key]

class MindFormerConfig(DictConfig):
    def __init__(self, *args, **kwargs):
        super(MindFormerConfig, self).__init__()
        found = {}
        for arg in args:
            if isinstance(arg, str) and arg.endswith("yaml"):
                found.update(MindFormerConfig._file2dict(arg))
        found.update(kwargs)
        MindFormerConfig._dict2config(self, found)

    @staticmethod
    def _file2dict(filename=None):
        with open(filename) as file:
            return OrderedDict(sorted(yaml.safe_load(file).items()))

    @staticmethod
    def _dict2config(config, dic):
        if isinstance(dic, dict):
            for key, value in dic.items():
                if isinstance(value, dict):
                    inner = MindFormerConfig()
                    dict.__setitem__(config, key, inner)
                    MindFormerConfig._dict2config(inner, value)
                else:
                    config[key] = dic[key]
"""
REGISTER = """
import inspect
from enum import Enum

class MindFormerModuleType(Enum):
    TRAINER = "trainer"
    MODELS = "models"

class MindFormerRegister:
    registry = {}

    @classmethod
    def register(cls, module_type, alias=None):
        def wrapper(register_class):
            name = alias if alias is not None else register_class.__name__
            cls.registry.setdefault(module_type, {})[name] = register_class
            return register_class
        return wrapper

    @classmethod
    def is_exist(cls, module_type, class_name=None):
        return class_name in cls.registry.get(module_type, {})

    @classmethod
    def get_cls(cls, module_type, class_name=None):
        if not cls.is_exist(module_type, class_name):
            raise ValueError(f"no class {class_name}")
        return cls.registry[module_type][class_name]

    @classmethod
    def get_instance_from_cfg(cls, cfg, module_type, default_args=None):
        args = cfg.copy()
        args.update(default_args or {})
        found = cls.get_cls(module_type, args.pop("type"))
        try:
            return found(**args)
        except Exception as e:
            raise type(e)(f"{found.__name__}: {e}")
"""
CONTEXT = """
import inspect

from mindspore import context
from mindspore.communication.management import get_group_size, init

MODES = {0: context.ParallelMode.DATA_PARALLEL, 1: context.ParallelMode.SEMI_AUTO_PARALLEL}

def validate_mode(config):
    if config.parallel.parallel_mode not in MODES:
        raise ValueError(f"no mode {config.parallel.parallel_mode}")
    config.parallel.parallel_mode = MODES[config.parallel.parallel_mode]

def execute_validator(config):
    module = inspect.getmodule(inspect.currentframe())
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("validate"):
            function(config)

def build_context(config):
    execute_validator(config)
    init()
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(**config.parallel)
"""
TRAINER = """
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

class Trainer:
    def __init__(self, args):
        self.config = args
        self.trainer = MindFormerRegister.get_instance_from_cfg(self.config.trainer, MindFormerModuleType.TRAINER)

    def train(self):
        self.trainer.train(self.config)
"""
BASE = """
import mindspore as ms
from mindspore import _checkparam as Validator

from mindformers.tools.check_rules import check_rules
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

class BaseTrainer:
    def __init__(self, model_name=None):
        self.model_name = model_name

    def create_train_dataset(self):
        raise RuntimeError("data is not there")

    def create_network(self, config):
        return MindFormerRegister.get_instance_from_cfg(
            config.model, MindFormerModuleType.MODELS, default_args={"stages": config.parallel_config.pipeline_stage})

@MindFormerRegister.register(MindFormerModuleType.TRAINER, alias="own")
class OwnTrainer(BaseTrainer):
    def __init__(self, model_name=None):
        super(OwnTrainer, self).__init__(model_name)

    def train(self, config):
        dataset = self.create_train_dataset()
        if dataset is None:
            raise ValueError("no data")
        Validator.check_positive_int(config.parallel_config.pipeline_stage, "pipeline_stage")
        check_rules(config)
        network = self.create_network(config)
        raise RuntimeError("what follows is not read")
"""
RULES = """
import mindspore as ms
from mindspore.communication import get_group_size

def check_rules(config):
    sizes = config.parallel_config
    if ms.get_auto_parallel_context("parallel_mode") == "semi_auto_parallel":
        if sizes.data_parallel * sizes.pipeline_stage != get_group_size():
            raise ValueError(f"{sizes.data_parallel} * {sizes.pipeline_stage} != {get_group_size()}")
"""
MODEL = """
import inspect
from functools import wraps

import numpy as np
from mindspore import nn
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

class Mixin:
    def __init__(self, nothing):
        raise TypeError("a cell goes on to no other class")

def checked(function):
    names = inspect.signature(function).bind_partial(width=int).arguments

    @wraps(function)
    def wrapper(*args, **kwargs):
        given = inspect.signature(function).bind(*args, **kwargs).arguments
        for name, kind in names.items():
            if name in given and not isinstance(given[name], kind):
                raise TypeError(f"{name} must be {kind.__name__}")
        return function(*args, **kwargs)
    return wrapper

class Mapped:
    attribute_map = {"old": "new"}

    def __setattr__(self, key, value):
        if key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        super().__setattr__(key, value)

    def __getattribute__(self, key):
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        return super().__getattribute__(key)

@MindFormerRegister.register(MindFormerModuleType.MODELS)
class Model(nn.Cell, Mixin):
    @checked
    def __init__(self, layers, stages, width=8):
        super().__init__()
        mapped = Mapped()
        mapped.old = layers
        if mapped.new < stages:
            raise ValueError(f"{mapped.old} layers for {stages} stages")
        self.dense = nn.Dense(width, width)
"""
FILES = {
    "run_mindformer.py": SCRIPT,
    "mindformers/__init__.py": "",
    "mindformers/core/__init__.py": "",
    "mindformers/core/context/__init__.py": "from .build_context import build_context\n",
    "mindformers/core/context/build_context.py": CONTEXT,
    "mindformers/models/__init__.py": "",
    "mindformers/models/model.py": MODEL,
    "mindformers/tools/__init__.py": "from .register import *\n__all__ = []\n__all__.extend(register.__all__)\n",
    "mindformers/tools/check_rules.py": RULES,
    "mindformers/tools/register/__init__.py": """
        from .config import MindFormerConfig
        from .register import MindFormerModuleType, MindFormerRegister
        __all__ = ["MindFormerConfig", "MindFormerModuleType", "MindFormerRegister"]
    """,
    "mindformers/tools/register/config.py": CONFIG,
    "mindformers/tools/register/register.py": REGISTER,
    "mindformers/trainer/__init__.py": "from .trainer import Trainer\n",
    "mindformers/trainer/base_trainer.py": BASE,
    "mindformers/trainer/trainer.py": TRAINER,
}
SOUND: Mapping[str, object] = {
    "run_mode": "train",
    "parallel": {"parallel_mode": 1},
    "parallel_config": {"data_parallel": 4, "pipeline_stage": 2},
    "trainer": {"type": "own"},
    "model": {"type": "Model", "layers": 4},
}


def told(
    root: Path, changed: Mapping[str, object] = {}, *, world_size: int | None = 8, files: Mapping[str, str] = {}
) -> Verdict:
    """The result of the program for the valid configuration with some changed sections."""
    for name, text in {**FILES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run() -> Verdict:
        session = Session(Program("mindformers", (str(root),)), Machine(), Budget())
        session.strict = True
        return session.judge([], {}, world_size, {**SOUND, **changed})

    verdict: Verdict = in_thread(run)
    return verdict


def test_a_sound_configuration_reaches_the_network(tmp_path: Path) -> None:
    verdict = told(tmp_path)
    assert (verdict.outcome, verdict.why) == ("accepts", "")
    assert verdict.stages[-1] == "network"


REFUSED = {
    "run_mode": ({"run_mode": "trian"}, "run_mindformer.py", "run status must not be trian"),
    "validator": ({"parallel": {"parallel_mode": 7}}, "mindformers/core/context/build_context.py", "no mode 7"),
    "registry": ({"trainer": {"type": "Owm"}}, "mindformers/tools/register/register.py", "no class Owm"),
    "signature": (
        {"trainer": {"type": "own", "modelname": "x"}},
        "mindformers/tools/register/register.py",
        "OwnTrainer: __init__() got an unexpected keyword argument 'modelname'",
    ),
    "rule": (
        {"parallel_config": {"data_parallel": 2, "pipeline_stage": 2}},
        "mindformers/tools/check_rules.py",
        "2 * 2 != 8",
    ),
    "checked type": (
        {"parallel_config": {"data_parallel": 4, "pipeline_stage": "2"}},
        "mindformers/trainer/base_trainer.py",
        "'pipeline_stage' must be int, but got '2' of type str",
    ),
    "network": (
        {"model": {"type": "Model", "layers": 1}},
        "mindformers/models/model.py",
        "Model: 1 layers for 2 stages",
    ),
    "decorated": (
        {"model": {"type": "Model", "layers": 4, "width": "8"}},
        "mindformers/models/model.py",
        "Model: width must be int",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_stage_refuses_in_its_own_words(tmp_path: Path, name: str) -> None:
    changed, file, message = REFUSED[name]
    verdict = told(tmp_path, changed)
    assert verdict.outcome == "refuses", verdict
    assert (verdict.refusals[-1].place.file, verdict.refusals[-1].message) == (file, message)


def test_a_name_that_the_program_mentions_elsewhere_is_left_open(tmp_path: Path) -> None:
    files = {"mindformers/tools/names.py": "NAMES = ['Later']\n"}
    assert told(tmp_path, {"trainer": {"type": "Later"}}, files=files).outcome in ("unread", "may refuse")


def test_the_number_of_devices_is_named_where_it_is_not_known(tmp_path: Path) -> None:
    verdict = told(tmp_path, world_size=None)
    assert verdict.outcome == "may refuse"
    assert any("world size" in fact for one in verdict.refusals for fact in one.unless)


def test_other_modes_are_not_held_to_the_product(tmp_path: Path) -> None:
    assert told(tmp_path, {"parallel": {"parallel_mode": 0}}, world_size=2).outcome == "accepts"


HEAD = """
import inspect

class Settings(dict):
    def __getattr__(self, key):
        return self.get(key)

    def __delattr__(self, key):
        del self[key]

class Plain:
    pass

def signed(n, *rest, even=True, **named):
    pass
"""
CONSTRUCTS = {
    "own methods before __getattr__": "held = Settings(width=args.width)\nheld.update(more=1)\nassert held.width == 8",
    "missing names of a dictionary": (
        "held = Settings(width=args.width)\nassert held.nothing is None and held.width == 8"
    ),
    "dict.__setitem__": "held = Settings()\ndict.__setitem__(held, 'width', args.width)\nassert held['width'] == 8",
    "object.__new__": "held = object.__new__(Plain)\nheld.n = args.width\nassert held.n == 8",
    "__delattr__": "held = Settings(n=1)\ndel held.n\nassert 'n' not in held and args.width == 8",
    "object.__setattr__": "held = Plain()\nheld.__setattr__('n', args.width)\nassert held.n == 8",
    "signature": (
        "kinds = [one.kind.name for one in inspect.signature(signed).parameters.values()]\n"
        "assert kinds[1] == 'VAR_POSITIONAL' and kinds[3] == 'VAR_KEYWORD'\n"
        "assert inspect.signature(signed).parameters['even'].default is True and args.width == 8"
    ),
    "bound arguments": (
        "given = inspect.signature(signed).bind(args.width)\ngiven.apply_defaults()\n"
        "assert given.arguments['n'] == 8 and given.kwargs['even'] is True"
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct_refuses_and_accepts_what_python_would(tmp_path: Path, name: str) -> None:
    root = write_tree(tmp_path, CONSTRUCTS[name], head=HEAD)
    assert judged(root, []).outcome == "accepts"
    assert judged(root, ["--width", "7"]).outcome == "refuses"


OWN_RULE = """
from mindspore.communication import get_group_size

def check_rules(config):
    if config.parallel_config.data_parallel % 2:
        raise ValueError(f"an odd data_parallel: {config.parallel_config.data_parallel}")
"""
YAML = """
run_mode: 'train'
use_parallel: True
trainer:
  type: own
parallel:
  parallel_mode: 1
parallel_config:
  data_parallel: {data}
  model_parallel: 1
  pipeline_stage: 1
  micro_batch_num: 1
model:
  type: Model
  layers: 4
  model_config:
    type: LlamaConfig
    num_layers: 4
  arch:
    type: LlamaForCausalLM
"""


def test_a_report_tells_a_refusal_of_the_source_at_its_key(tmp_path: Path) -> None:
    tree, config = tmp_path / "tree", tmp_path / "run.yaml"
    files = {
        "mindformers/models/model.py": MODEL.replace("width=8)", "width=8, **more)"),
        "mindformers/tools/check_rules.py": OWN_RULE,
        "mindformers/version_info.txt": "1.7.0",
    }
    told(tree, files=files)

    def report(data: int) -> preflight.Report:
        config.write_text(YAML.format(data=data), encoding="utf-8")
        return preflight.check(config, program=str(tree), world_size=data, select=["own-check"])

    assert report(8).findings == ()
    (finding,) = report(7).findings
    assert "mindformers/tools/check_rules.py:6" in str(finding.message) and "an odd data_parallel: 7" in str(
        finding.message
    )
    assert finding.span.text == "7"
    (tree / "run_mindformer.py").unlink()  # an installed package has none
    assert report(8).findings == () and not report(8).undecided
    assert "an odd data_parallel: 7" in str(report(7).findings[0].message)
    (tree / "mindformers/trainer/trainer.py").unlink()
    left = report(8)
    assert left.undecided
    assert "could not be read: the started script" in str([one.because for one in left.unknown])


SECTIONS = """
from dataclasses import dataclass, field, fields, is_dataclass
from typing import List, get_args, get_origin

@dataclass
class Base:
    @classmethod
    def from_dict(cls, data):
        types = {f.name: f.type for f in fields(cls)}
        strange = [key for key in data if key not in types]
        if strange:
            raise ValueError(f"Unknown configuration keys for {cls.__name__}: {strange}")
        made = cls(**{key: cls.converted(value, types[key]) for key, value in data.items()})
        for one in fields(made):
            made.checked(getattr(made, one.name), one.type, one.name)
        return made

    @staticmethod
    def converted(value, kind):
        if is_dataclass(kind) and isinstance(value, dict):
            return kind.from_dict(value)
        if get_origin(kind) is list and is_dataclass(get_args(kind)[0]):
            return [get_args(kind)[0].from_dict(one) for one in value]
        return value

    @staticmethod
    def checked(value, kind, name):
        if is_dataclass(kind) and not isinstance(value, kind):
            raise TypeError(f"Expected {kind.__name__} for '{name}', got {type(value).__name__}")

@dataclass
class Training(Base):
    steps: int = 1

@dataclass
class Layout(Base):
    tensor_parallel: int = 1

@dataclass
class TrainConfig(Base):
    training: Training = field(default_factory=Training)
    parallelism: Layout = field(default_factory=Layout)
    callbacks: List[Training] = field(default_factory=list)
"""


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("training: {steps: 3}\nparallelism: {tensor_parallel: 2}\ncallbacks: [{steps: 3}]\n", ""),
        ("training: {stepps: 3}\nparallelism: {}\n", "Unknown configuration keys for Training: ['stepps']"),
        ("training:\nparallelism: {}\n", "Expected Training for 'training', got NoneType"),
        ("training: {}\nparallelism: {}\ncallbacks: [{size: 3}]\n", "Training: ['size']"),
    ],
)
def test_a_configuration_of_pynative_mode_is_read_as_far_as_its_classes(
    text: str, refused: str, tmp_path: Path
) -> None:
    tree, config = tmp_path / "tree", tmp_path / "run.yaml"
    files = {
        "mindformers/version_info.txt": "2.1.0",
        "mindformers/pynative/__init__.py": "",
        "mindformers/pynative/config.py": SECTIONS,
    }
    told(tree, files=files)
    config.write_text(text, encoding="utf-8")
    report = preflight.check(config, program=str(tree), target="mindformers@2.1.0", select=["own-check"])
    assert [refused in str(one.message) for one in report.findings] == [True] * bool(refused)
    assert report.undecided is not bool(refused)


STARTS = """
from mindspore.mint.distributed import get_rank, get_world_size, init_process_group
from mindspore import nn
from mindformers.pynative.config import TrainConfig

class Trainer:
    def __init__(self, config):
        self.config = TrainConfig.from_dict(config)
        self.world_size = get_world_size()
        if self.world_size > 1:
            init_process_group()
        self.compute()
        self.model = self.build()
        self.apply()

    def compute(self):
        size = self.config.parallelism.tensor_parallel
        self.data = self.world_size // size
        if self.data <= 0:
            raise ValueError(f"{size} ranks, {self.world_size} devices")
        if self.config.training.steps % self.data:
            raise ValueError(f"{self.config.training.steps} steps, {self.data} replicas, rank {get_rank()}")

    def build(self):
        found = vars(__import__("mindformers.pynative.layers", globals(), locals(), ["Layer"]))["Layer"]
        return found(self.config.training.steps)

    def apply(self):
        for layer in self.model.layers:
            layer.shard(self.world_size)
        if self.config.training.steps == 16:
            raise ValueError("found after layers that are unknown")
"""
LAYERS = """
from mindspore import nn

class Layer:
    def __init__(self, steps):
        if steps == 24:
            raise ValueError("no layer has 24 steps")
        self.layers = nn.SequentialCell([nn.Dense(1, 1)])
"""


@pytest.mark.parametrize(
    ("training", "parallelism", "devices", "refused"),
    [
        ("{steps: 8}", "{tensor_parallel: 2}", 8, ""),
        ("{steps: 8}", "{}", 8, ""),
        ("{steps: 8}", "{tensor_parallel: 16}", 8, "16 ranks, 8 devices"),
        ("{steps: 8}", "{tensor_parallel: 16}", 16, ""),
        ("{steps: 7}", "{tensor_parallel: 2}", 8, "7 steps, 4 replicas, rank 0"),
        ("{steps: 7}", "{tensor_parallel: 8}", 8, ""),
        ("{steps: 7}", "{tensor_parallel: 2}", None, ""),
        ("{steps: 24}", "{tensor_parallel: 8}", 8, "no layer has 24 steps"),
        ("{steps: 16}", "{tensor_parallel: 8}", 8, ""),
        ("{stepps: 7}", "{tensor_parallel: 2}", 8, "Unknown configuration keys for Training: ['stepps']"),
    ],
)
def test_the_trainer_of_pynative_mode_refuses_what_is_surely_wrong(
    training: str, parallelism: str, devices: int | None, refused: str, tmp_path: Path
) -> None:
    tree, config = tmp_path / "tree", tmp_path / "run.yaml"
    files = {
        "mindformers/version_info.txt": "2.1.0",
        "mindformers/pynative/__init__.py": "",
        "mindformers/pynative/config.py": SECTIONS,
        "mindformers/pynative/layers.py": LAYERS,
        "mindformers/pynative/trainer/__init__.py": "",
        "mindformers/pynative/trainer/trainer.py": STARTS,
    }
    told(tree, files=files)
    config.write_text(f"training: {training}\nparallelism: {parallelism}\n", encoding="utf-8")
    report = preflight.check(
        config, program=str(tree), target="mindformers@2.1.0", world_size=devices, select=["own-check"]
    )
    assert [refused in str(one.message) for one in report.findings] == [True] * bool(refused)
    assert report.undecided is not bool(refused)


def test_a_refusal_after_what_could_not_be_read_is_left_open(tmp_path: Path) -> None:
    lost = CONTEXT.replace("    init()", "    exec('nothing = 1')\n    init()")
    files = {"mindformers/core/context/build_context.py": lost}
    odd = {"parallel_config": {"data_parallel": 2, "pipeline_stage": 2}}
    assert told(tmp_path, odd).outcome == "refuses"
    assert told(tmp_path, odd, files=files).outcome == "unread"


def test_a_value_that_nobody_knows_refuses_nothing(tmp_path: Path) -> None:
    odd = {"parallel_config": {"data_parallel": Unknown(("$DATA",)), "pipeline_stage": 2}}
    assert told(tmp_path, odd).outcome == "may refuse"
