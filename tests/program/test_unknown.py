"""Undecidable values stay unknown, with the facts that would decide them."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer import judged, write_tree

from preflight.program.verdict import Machine

VERSION = """
from importlib.metadata import version
from packaging.version import Version
def has(least):
    return Version(version("transformer-engine")) >= Version(least)
"""
KERNELS = """
try:
    import kernels
    HAVE_KERNELS = True
except ImportError:
    HAVE_KERNELS = False
"""


def test_a_version_decides(tmp_path: Path) -> None:
    root = write_tree(tmp_path, "if args.fast:\n    assert has('2.1'), 'too old'", head=VERSION)
    verdict = judged(root, ["--fast"])
    assert verdict.outcome == "may refuse" and verdict.refusals[0].unless == ("transformer-engine >= 2.1",)
    assert judged(root, []).outcome == "accepts"
    assert judged(root, ["--fast"], machine=Machine({"transformer-engine": "2.0"})).outcome == "refuses"
    assert judged(root, ["--fast"], machine=Machine({"transformer-engine": "2.17"})).outcome == "accepts"


def test_a_package_is_never_absent_because_nobody_names_it(tmp_path: Path) -> None:
    root = write_tree(tmp_path, "if args.fast:\n    assert HAVE_KERNELS, 'install kernels'", head=KERNELS)
    verdict = judged(root, ["--fast"])
    assert verdict.outcome == "may refuse" and verdict.refusals[0].unless == ("package kernels",)
    assert judged(root, ["--fast"], machine=Machine(absent=frozenset({"kernels"}))).outcome == "refuses"
    assert judged(root, ["--fast"], machine=Machine(present=frozenset({"kernels"}))).outcome == "accepts"


def test_an_import_within_a_function_is_asked_when_it_runs(tmp_path: Path) -> None:
    body = "try:\n    import kernels\nexcept ImportError:\n    raise RuntimeError('install kernels')"
    root = write_tree(tmp_path, f"if args.fast:\n    {body.replace(chr(10), chr(10) + '    ')}")
    verdict = judged(root, ["--fast"])
    assert verdict.outcome == "may refuse" and verdict.refusals[0].unless == ("package kernels",)
    assert judged(root, ["--fast"], machine=Machine(absent=frozenset({"kernels"}))).outcome == "refuses"


def test_what_both_paths_leave_equal_is_known(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        """
        if HAVE_KERNELS:
            args.width, args.heads = 4, 1
        else:
            args.width, args.heads = 4, 2
        assert args.width == 8, "width"
        """,
        head=KERNELS,
    )
    verdict = judged(root)
    assert verdict.outcome == "refuses" and verdict.refusals[-1].message == "width"
    assert verdict.values["width"] == 4 and "heads" not in verdict.values


def test_what_follows_an_uncertain_return_is_uncertain(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, "if HAVE_KERNELS:\n    return args\nargs.width = 3\nassert args.width == 8", head=KERNELS
    )
    verdict = judged(root)
    assert verdict.outcome == "may refuse" and verdict.refusals[0].unless == ("package kernels",)


def test_a_loop_over_something_unknown_leaves_its_lists_unknown(tmp_path: Path) -> None:
    validate = """
    found = []
    for one in os.sched_getaffinity(0):
        found.append(one)
    assert found[0] == 1
    """
    assert judged(write_tree(tmp_path, validate)).outcome == "may refuse"


def test_a_list_that_differs_between_paths_has_no_known_length(tmp_path: Path) -> None:
    validate = """
    found = []
    if HAVE_KERNELS:
        found.append(1)
    assert len(found) == 1
    """
    assert judged(write_tree(tmp_path, validate, head=KERNELS)).outcome == "may refuse"


def test_a_missing_file_of_the_program_never_refuses(tmp_path: Path) -> None:
    root = write_tree(tmp_path, "from megatron.lost import check\ncheck(args)")
    verdict = judged(root)
    assert verdict.outcome == "unread" and "megatron.lost" in verdict.why


def test_a_name_that_is_not_there_never_refuses(tmp_path: Path) -> None:
    assert judged(write_tree(tmp_path, "check_it(args)")).outcome == "unread"


def test_a_validator_that_cannot_be_run_is_no_accept(tmp_path: Path) -> None:
    head = "async def check(args):\n    assert args.width == 8"
    assert judged(write_tree(tmp_path, "check(args)", head=head), ["--width", "7"]).outcome == "unread"


def test_options_that_were_not_read_are_not_refused(tmp_path: Path) -> None:
    parser = "for name in os.listdir('/options'):\n    group.add_argument('--' + name)"
    root = write_tree(tmp_path, parser=parser)
    assert judged(root, ["--widht", "4"]).outcome == "may refuse"


def test_a_decorator_of_something_unknown_keeps_the_class(tmp_path: Path) -> None:
    head = """
    import vendor
    from dataclasses import dataclass
    @vendor.choose("size")
    @dataclass
    class Size:
        n: int = 1
        def __post_init__(self):
            assert self.n % 2 == 0
    """
    root = write_tree(tmp_path, "Size(n=args.width)", head=head)
    assert judged(root, ["--width", "7"]).outcome == "refuses"
    assert judged(root).outcome == "accepts"


def test_the_device_and_the_environment(tmp_path: Path) -> None:
    validate = """
    import torch
    if args.fast:
        assert torch.cuda.get_device_capability()[0] >= 9
    assert os.getenv("MODE", "usual") != "odd"
    assert int(os.environ["WORLD_SIZE"]) % 2 == 0
    """
    root = write_tree(tmp_path, validate)
    assert judged(root, ["--fast"]).refusals[0].unless == ("device capability >= 9",)
    assert judged(root, ["--fast"], machine=Machine(capability=(8, 0))).outcome == "refuses"
    assert judged(root, ["--fast"], machine=Machine(capability=(9, 0))).outcome == "accepts"
    assert judged(root, env={"MODE": "odd"}).outcome == "refuses"
    assert judged(root, world_size=3).outcome == "refuses"
    assert judged(root, world_size=None).refusals[0].unless == ("world size",)


def test_outside_names_are_equal_only_to_themselves(tmp_path: Path) -> None:
    validate = """
    import torch
    kind = torch.bfloat16 if args.fast else torch.half
    assert kind == torch.float16 and kind is not None and kind != "float16"
    """
    root = write_tree(tmp_path, validate)
    assert judged(root).outcome == "accepts" and judged(root, ["--fast"]).outcome == "refuses"


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ("assert not isinstance(kernels.Layer, type), 'a class'", "may refuse"),
        ("assert isinstance(kernels.Layer, type), 'no class'", "may refuse"),
        ("assert isinstance(kernels.Layer, object), 'nothing'", "accepts"),
        ("assert not isinstance(kernels.Layer, str), 'a name'", "accepts"),
    ],
)
def test_whether_an_outside_name_is_a_class_is_not_known(tmp_path: Path, check: str, outcome: str) -> None:
    root = write_tree(tmp_path, check, head="import kernels\n")
    assert judged(root, [], machine=Machine(present=frozenset({"kernels"}))).outcome == outcome


def test_what_one_command_changes_is_gone_for_the_next(tmp_path: Path) -> None:
    from preflight.program.judge import Session, in_thread
    from preflight.program.verdict import Budget, Program

    root = write_tree(tmp_path, "SEEN.append(args.width)\nassert len(SEEN) == 1", head="SEEN = []")

    def run() -> list[str]:
        session = Session(Program("megatron", (str(root),)), Machine(), Budget())
        return [session.judge([], {}, 8).outcome for _ in range(3)]

    assert in_thread(run) == ["accepts"] * 3


def test_a_namespace_holds_what_is_unknown(tmp_path: Path) -> None:
    validate = "copy = argparse.Namespace(**{**vars(args), 'where': os.getcwd()})\nassert copy.width == 8"
    root = write_tree(tmp_path, validate)
    assert judged(root).outcome == "accepts" and judged(root, ["--width", "7"]).outcome == "refuses"


def test_options_of_a_class_that_is_unknown_are_not_refused(tmp_path: Path) -> None:
    head = "import dataclasses\nimport vendor\nSize = vendor.pick(1)"
    parser = "for one in dataclasses.fields(Size):\n    group.add_argument(*one.names, **one.options)"
    root = write_tree(tmp_path, "assert args.depth > 0", head=head, parser=parser)
    verdict = judged(root, ["--depth", "4"])
    assert verdict.outcome in ("may refuse", "unread") and not any(one.certain for one in verdict.refusals)


def test_what_decides_is_told_the_right_way_round(tmp_path: Path) -> None:
    validate = """
    import torch
    capability = torch.cuda.get_device_capability()[0]
    if args.kind == "fancy":
        if os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") != "1":
            raise RuntimeError("set it to one")
    elif args.fast:
        if not capability >= 9:
            raise RuntimeError("too old")
    elif args.name == "early":
        if capability < 9:
            return args
        raise RuntimeError("too new")
    elif args.name == "flag":
        old = True if capability < 9 else False
        assert old
    """
    root = write_tree(tmp_path, validate)
    variable = "environment variable CUDA_DEVICE_MAX_CONNECTIONS == 1"
    assert judged(root, ["--kind", "fancy"]).refusals[0].unless == (variable,)
    assert judged(root, ["--fast"]).refusals[0].unless == ("device capability >= 9",)
    assert judged(root, ["--name", "early"]).refusals[0].unless == ("device capability < 9",)
    assert judged(root, ["--name", "flag"]).refusals[0].unless == ("device capability < 9",)


@pytest.mark.parametrize(
    "body",
    [
        "assert os.path.exists(args.name), 'no such path'",
        "assert 'latest' in os.listdir(args.name)",
        "open(args.name)",
        "if any(one.endswith('.bin') for one in os.listdir(args.name)) and args.fast:\n    raise ValueError('no')",
    ],
)
def test_what_lies_in_a_folder_is_left_to_the_machine(tmp_path: Path, body: str) -> None:
    root = write_tree(tmp_path, body + "\nassert args.width == 8, 'width'")
    verdict = judged(root, ["--name", "/data/model", "--fast"])
    assert verdict.outcome == "accepts"
    assert all(one.unless == ("folder contents",) and not one.certain for one in verdict.refusals)
    assert judged(root, ["--name", "/data/model", "--width", "7"]).outcome == "refuses"


def test_what_a_folder_and_a_version_decide_is_open(tmp_path: Path) -> None:
    body = "if os.path.exists(args.name):\n    assert has('2.1'), 'too old'"
    verdict = judged(write_tree(tmp_path, body, head=VERSION), ["--name", "/data/model"])
    assert verdict.outcome == "may refuse"
    assert verdict.refusals[0].unless == ("folder contents", "transformer-engine >= 2.1")


def test_the_version_of_a_package_that_may_be_absent_is_what_decides(tmp_path: Path) -> None:
    head = """
    from packaging.version import Version
    def engine():
        try:
            import transformer_engine as te
            there = True
        except ImportError:
            there = False
        return Version(str(te.__version__)) if there else Version("0.0")
    """
    root = write_tree(tmp_path, "assert engine() >= Version('2.9'), 'too old'", head=head)
    assert judged(root).refusals[0].unless == ("transformer-engine >= 2.9",)
    assert judged(root, machine=Machine(absent=frozenset({"transformer-engine"}))).outcome == "refuses"


def test_a_stated_gpu_has_no_devices_of_other_vendors(tmp_path: Path) -> None:
    head = """
    import shutil
    import torch
    try:
        import extras
        import torch_npu
    except Exception:
        pass
    def npu():
        try:
            return torch_npu.npu.device_count() > 0
        except Exception:
            return False
    """
    body = "assert not npu(), 'npu'\nassert torch.musa.device_count() == 0 and shutil.which('xpu-smi') is None, 'other'"
    root = write_tree(tmp_path, body, head=head)
    assert judged(root, machine=Machine(capability=(9, 0))).outcome == "accepts"
    assert judged(root).outcome == "may refuse"


def test_the_name_of_the_device_decides_where_functions_end_early(tmp_path: Path) -> None:
    head = """
    import torch_npu
    def generation():
        try:
            name = torch_npu.npu.get_device_name()
        except Exception:
            return 0
        if "Ascend950" in name:
            return 5
        elif "Ascend910_93" in name:
            return 3
        return 2
    def at_least(number):
        if generation() == 0:
            return False
        if generation() < number:
            return False
        return True
    """
    root = write_tree(tmp_path, "assert not (at_least(5) and args.fast), 'not there'", head=head)
    assert judged(root, ["--fast"]).refusals[0].unless == ("device",)
    there = frozenset({"torch-npu"})
    assert judged(root, ["--fast"], machine=Machine(device="Ascend910_93", present=there)).outcome == "accepts"
    assert judged(root, ["--fast"], machine=Machine(device="Ascend950", present=there)).outcome == "refuses"


def test_what_a_stage_that_is_left_out_began_does_not_count_as_run(tmp_path: Path) -> None:
    scheduler = """
        def get_optimizer_param_scheduler(optimizer):
            return _steps(optimizer)

        def _steps(optimizer):
            exec("steps = 1")
            return steps
        """
    verdict = judged(write_tree(tmp_path, files={"megatron/training/training.py": scheduler}))
    assert verdict.outcome == "accepts" and "scheduler" not in verdict.stages
    assert not [name for name in verdict.functions if name.startswith("megatron/training/training.py")]


def test_packages_for_devices_of_other_makers_are_absent_where_the_capability_is_known(tmp_path: Path) -> None:
    head = "try:\n    import torch_npu\n    OTHER = True\nexcept ImportError:\n    OTHER = False"
    root = write_tree(tmp_path, "assert not OTHER, 'no such device'", head=head)
    assert judged(root, []).outcome == "may refuse"
    assert judged(root, [], machine=Machine(capability=(9, 0))).outcome == "accepts"
    there = Machine(capability=(8, 0), present=frozenset({"torch-npu"}))
    assert judged(root, [], machine=there).outcome == "refuses"


def test_an_error_behind_one_that_may_be_caught(tmp_path: Path) -> None:
    head = "try:\n    import kernels\n    import torch_npu\nexcept ImportError:\n    pass"
    machine = Machine(absent=frozenset({"torch-npu"}))
    assert judged(write_tree(tmp_path / "imports", head=head), machine=machine).outcome == "accepts"
    either = """
    try:
        if SWITCH:
            raise KeyError("first")
        raise ValueError("second")
    except {caught}:
        {then}
    """
    switch = "import os\nSWITCH = os.nice(0)"
    goes_on = write_tree(tmp_path / "goes on", either.format(caught="KeyError", then="pass"), head=switch)
    assert judged(goes_on).outcome != "refuses"
    again = write_tree(tmp_path / "again", either.format(caught="(KeyError, ValueError)", then="raise"), head=switch)
    assert judged(again).outcome == "refuses"
    both = write_tree(tmp_path / "both", either.format(caught="(KeyError, ValueError)", then="pass"), head=switch)
    assert judged(both).outcome == "accepts"


def test_a_variable_that_the_program_demands_may_be_set_by_its_launcher(tmp_path: Path) -> None:
    demands = write_tree(tmp_path / "program", "os.environ['SLURM_NODEID']", head="import os")
    assert judged(demands).outcome == "accepts"
    assert judged(demands, env={"SLURM_NODEID": None}).outcome == "refuses"


PERHAPS_HELD = {
    "an empty dictionary": ("held = {}", "held['a'] = 1", "assert held", "may refuse"),
    "a dictionary of known length": ("held = {}", "held['a'] = 1", "assert len(held) == 1", "may refuse"),
    "a key": ("held = {}", "held['a'] = 1", "assert 'a' in held", "may refuse"),
    "no key": ("held = {}", "held['a'] = 1", "assert 'a' not in held", "may refuse"),
    "equality": ("held = {}", "held['a'] = 1", "assert {} == held", "may refuse"),
    "the keys": ("held = {'b': 1}", "held['a'] = 1", "assert list(held.keys()) == ['b']", "may refuse"),
    "a walk": ("held = {}", "held['a'] = 1", "for name in held:\n    assert name == 'b'", "may refuse"),
    "a removed key": ("held = {'a': 1}", "del held['a']", "assert held", "may refuse"),
    "a set": ("held = {'b'}", "held.discard('b')\n    held.add('a')", "assert 'a' in held", "may refuse"),
    "two keys": (
        "held = {}",
        "held['a'] = 1\nif HAVE_KERNELS:\n    held['b'] = 1",
        "assert len(held) == 2",
        "may refuse",
    ),
    "another key is there": ("held = {'b': 1}", "held['a'] = 1", "assert held and 'b' in held", "accepts"),
    "both paths set it": ("held = {}", "held['a'] = 1\nelse:\n    held['a'] = 2", "assert 'a' in held", "accepts"),
}


@pytest.mark.parametrize("name", PERHAPS_HELD)
def test_what_one_path_alone_puts_into_a_container_leaves_its_keys_unknown(tmp_path: Path, name: str) -> None:
    before, within, check, outcome = PERHAPS_HELD[name]
    root = write_tree(tmp_path, f"{before}\nif HAVE_KERNELS:\n    {within}\n{check}", head=KERNELS)
    assert judged(root, []).outcome == outcome


def test_a_key_that_is_set_on_some_paths_of_one_path_stays_in_doubt(tmp_path: Path) -> None:
    inner = "if HAVE_KERNELS:\n    if has('2.1'):\n        held['a'] = 1\nelse:\n    held['a'] = 2"
    root = write_tree(tmp_path, f"held = {{}}\n{inner}\nassert 'a' in held", head=VERSION + KERNELS)
    assert judged(root, []).outcome == "may refuse"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("found = types.SimpleNamespace(**read())\nassert found.width == 8", "may refuse"),
        ("found = argparse.Namespace(**vars(args), **read())\nassert found.more == 8", "may refuse"),
        ("found = dict(**read())\nassert found['width'] == 8", "may refuse"),
        ("found = dict(width=8, **read())\nassert found['more'] == 8", "may refuse"),
        ("found = collections.OrderedDict(**read())\nassert found['width'] == 8", "may refuse"),
        ("found = {}\nfound.update(**read())\nassert found['width'] == 8", "may refuse"),
        ("assert '{width}'.format(**read()) == '8'", "may refuse"),
        ("found = Size(**read())\nassert found.width == 8", "may refuse"),
        ("found = functools.partial(double, **read())\nassert found() == 8", "may refuse"),
        ("found = functools.partial(double, **read())\nassert found(width=4) == 8", "accepts"),
        ("found = functools.partial(double, **{'width': 4})\nassert found() == 8", "accepts"),
        ("found = types.SimpleNamespace(**{'width': 4})\nassert found.width == 8", "refuses"),
        ("found = types.SimpleNamespace(**vars(args))\nassert found.width == 8", "accepts"),
        ("found = types.SimpleNamespace(**vars(args))\nassert found.more == 8", "refuses"),
        ("found = max(4, 8, **read())\nassert args.width == 8", "accepts"),
    ],
)
def test_python_functions_with_unknown_keywords(tmp_path: Path, body: str, outcome: str) -> None:
    head = """
import argparse, collections, functools, json, types

Size = collections.namedtuple("Size", "width")

def read():
    with open("/x/sizes.json") as file:
        return json.load(file)

def double(width):
    return 2 * width
"""
    assert judged(write_tree(tmp_path, body, head=head)).outcome == outcome


ADAM = """
import inspect
try:
    from transformer_engine.pytorch.optimizers import FusedAdam as Adam
except ImportError:
    Adam = None
"""


@pytest.mark.parametrize(
    ("name", "version", "outcome"),
    [
        ("exp_avg_dtype", "2.17.1", "accepts"),
        ("exp_avg_dtype", "1.13", "accepts"),
        ("exp_avg_dtype", "1.12.0", "refuses"),
        ("store_param_remainders", "2.1", "accepts"),
        ("store_param_remainders", "2.0", "refuses"),
        ("capturable", "1.8", "accepts"),
        ("capturable", "1.7", "may refuse"),
        ("capturable", "", "may refuse"),
    ],
)
def test_the_parameters_of_an_optimizer_depend_on_its_version(
    tmp_path: Path, name: str, version: str, outcome: str
) -> None:
    root = write_tree(tmp_path, f"assert '{name}' in inspect.signature(Adam).parameters, 'too old'", head=ADAM)
    machine = Machine({"transformer-engine": version} if version else {}, present=frozenset({"transformer-engine"}))
    verdict = judged(root, machine=machine)
    assert verdict.outcome == outcome
    assert outcome != "may refuse" or verdict.refusals[0].unless == ("transformer-engine",)


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ("'cuda' in PLATFORMS.keys()", "accepts"),
        ("'cuda' in PLATFORMS.keys() and PLATFORMS['cuda'] == 1", "accepts"),
        ("'cuda' not in PLATFORMS.keys()", "refuses"),
        ("'other' in PLATFORMS.keys()", "refuses"),
        ("'kernels' in PLATFORMS.keys()", "may refuse"),
        ("'kernels' not in PLATFORMS.keys()", "may refuse"),
        ("'cuda' in dict(PLATFORMS).keys()", "accepts"),
        ("'cuda' in Keys().keys()", "accepts"),
        ("'width' in vars(args).keys()", "accepts"),
        ("'kernels' in {}.keys() or 'cuda' in PLATFORMS.keys()", "accepts"),
    ],
)
def test_a_dict_that_may_have_more_keys_has_the_known_ones(tmp_path: Path, condition: str, outcome: str) -> None:
    head = f"""
{KERNELS}
PLATFORMS = {{"cuda": 1}}
if HAVE_KERNELS:
    PLATFORMS["kernels"] = 2

class Keys:
    def keys(self):
        return ["cuda"]
"""
    assert judged(write_tree(tmp_path, f"assert {condition}", head=head)).outcome == outcome
