"""A trainer whose features add options, replace and wrap functions of another program before its parser runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer import write_tree

from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Verdict

MANAGER = """
class MindSpeedPatchesManager:
    patches_info = {}
    @staticmethod
    def register_patch(orig_func_name, new_func=None, force_patch=False, create_dummy=False):
        raise NotImplementedError
    @staticmethod
    def apply_patches():
        raise NotImplementedError
"""
ADAPTOR = """
import argparse
from mindspeed.features import FEATURES
from mindspeed.patch_utils import MindSpeedPatchesManager
parser = argparse.ArgumentParser(allow_abbrev=False)
for feature in FEATURES:
    feature.register_args(parser)
args, _ = parser.parse_known_args()
for feature in FEATURES:
    if feature.is_need_apply(args):
        feature.register_patches(MindSpeedPatchesManager, args)
MindSpeedPatchesManager.apply_patches()
"""
FEATURES = """
class Deep:
    def register_args(self, parser):
        parser.add_argument("--depth", type=int, default=2)
        parser.add_argument("--wide", action="store_true")
    def is_need_apply(self, args):
        return True
    def register_patches(self, manager, args):
        from mindspeed.wrappers import parse_args_wrapper, validate_args_wrapper
        manager.register_patch("megatron.training.arguments.parse_args", parse_args_wrapper)
        manager.register_patch("megatron.training.arguments.validate_args", validate_args_wrapper)
        if args.wide:
            from mindspeed.operators import kernel
            from mindspeed.wrappers import check_wide
            manager.register_patch("megatron.layers.kernel", kernel)
            manager.register_patch("megatron.training.arguments.check", check_wide)
FEATURES = [Deep()]
"""
WRAPPERS = """
from functools import wraps
from mindspeed.features import FEATURES
def parse_args_wrapper(parse_args):
    @wraps(parse_args)
    def wrapper(extra_args_provider=None):
        def provider(parser):
            for feature in FEATURES:
                feature.register_args(parser)
            return parser
        return parse_args(provider)
    return wrapper
def validate_args_wrapper(validate_args):
    @wraps(validate_args)
    def wrapper(args, defaults=None):
        assert args.depth > 1, "too flat"
        return validate_args(args, defaults)
    return wrapper
def check_wide(args):
    assert args.width >= 16, "too narrow"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "mindspeed/__init__.py": "",
        "mindspeed/patch_utils.py": MANAGER,
        "mindspeed/features.py": FEATURES,
        "mindspeed/wrappers.py": WRAPPERS,
        "mindspeed/operators.py": "import nothing_of_the_kind.at_all\nraise RuntimeError('operators are not read')",
        "mindspeed/megatron_adaptor.py": ADAPTOR,
    }
    head = "def check(args):\n    assert args.width % 2 == 0, 'odd'"
    return write_tree(tmp_path, "check(args)", head=head, files=files)


def judged(root: Path, *argv: str) -> Verdict:
    def run() -> Verdict:
        session = Session(Program("mindspeed", (str(root),)), Machine(), Budget())
        session.strict = True
        session.judge(["--wide"], {}, 8)  # patches of one command do not affect the next
        return session.judge(argv, {}, 8)

    verdict: Verdict = in_thread(run)
    return verdict


def test_options_of_features_are_known(root: Path) -> None:
    verdict = judged(root, "--depth", "3")
    assert verdict.outcome == "accepts" and verdict.values["depth"] == 3
    assert judged(root, "--dept", "3").refusals[-1].error == "argparse"


def test_what_wraps_a_check_refuses(root: Path) -> None:
    refusal = judged(root, "--depth", "1").refusals[-1]
    assert refusal.message == "too flat" and refusal.place.file == "mindspeed/wrappers.py"


def test_what_replaces_a_check_counts(root: Path) -> None:
    assert judged(root, "--width", "7").refusals[-1].message == "odd"
    assert judged(root, "--width", "8").outcome == "accepts"
    assert judged(root, "--width", "8", "--wide").refusals[-1].message == "too narrow"
    assert judged(root, "--width", "17", "--wide").outcome == "accepts"


def test_operators_are_not_read(root: Path) -> None:
    assert "mindspeed/operators.py" not in judged(root, "--wide", "--width", "16").files


def test_a_table_of_patches_that_is_asked_refuses_nothing(root: Path) -> None:
    adaptor = root / "mindspeed/megatron_adaptor.py"
    manager = "MindSpeedPatchesManager"
    asked = f'{manager}.register_patch("torch.save", None)\n{manager}.patches_info["torch.save"].apply()\n'
    adaptor.write_text(adaptor.read_text().replace(f"{manager}.apply_patches()", asked))
    assert judged(root).outcome != "refuses"


def test_an_option_that_two_features_add_refuses_nothing(root: Path) -> None:
    wrappers = root / "mindspeed/wrappers.py"
    wrappers.write_text(
        wrappers.read_text().replace("return parser", "FEATURES[0].register_args(parser)\n            return parser")
    )
    assert judged(root).outcome == "unread"


def test_what_is_replaced_twice_ends_the_run(root: Path) -> None:
    features = root / "mindspeed/features.py"
    twice = "            manager.register_patch('megatron.layers.kernel', check_wide)\n"
    features.write_text(features.read_text().replace("FEATURES = [", twice + "FEATURES = ["))
    refusal = judged(root, "--wide", "--width", "16").refusals[-1]
    assert (refusal.certain, refusal.stage, refusal.message) == (True, "patches", "the patch of kernel exist !")
    assert judged(root).outcome == "accepts"
    features.write_text(features.read_text().replace("check_wide)\nF", "check_wide, True)\nF"))
    assert judged(root, "--wide", "--width", "16").outcome == "accepts"


def test_a_derived_manager_reads_no_operators_either(root: Path) -> None:
    derived = """
class Derived(MindSpeedPatchesManager):
    @staticmethod
    def register_patch(orig_func_name, new_func=None, force_patch=True, create_dummy=False):
        MindSpeedPatchesManager.register_patch(orig_func_name, new_func, force_patch, create_dummy)
from mindspeed.operators import kernel
Derived.register_patch("megatron.layers.kernel", kernel)
Derived.patches_info["megatron.layers.kernel"].apply_patch()
"""
    adaptor = root / "mindspeed/megatron_adaptor.py"
    adaptor.write_text(adaptor.read_text() + derived)
    verdict = judged(root, "--width", "16")
    assert verdict.outcome == "accepts" and "mindspeed/operators.py" not in verdict.files


def test_an_argument_that_only_the_later_parser_has_ends_the_run(root: Path) -> None:
    features = root / "mindspeed/features.py"
    features.write_text(features.read_text().replace("if args.wide:", "if args.wide and args.kind == 'fancy':"))
    refusal = judged(root, "--wide").refusals[-1]
    assert (refusal.certain, refusal.stage) == (True, "patches")
    assert refusal.message == "'Namespace' object has no attribute 'kind'"
    assert judged(root).outcome == "accepts"
    assert judged(root, "--wide", "--ai-framework", "mindspore").outcome == "unread"


def test_an_attribute_of_something_else_than_the_arguments_refuses_nothing(root: Path) -> None:
    features = root / "mindspeed/features.py"
    features.write_text(features.read_text().replace("if args.wide:", "if args.wide and manager.other:"))
    assert judged(root, "--wide").outcome == "unread"
