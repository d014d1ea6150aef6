"""Additions by the started script: options, neighbouring modules, configurations that it builds."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer import judged, write_tree

from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Verdict

SCRIPT = """
from megatron.training.training import pretrain
from {module} import add_own
if __name__ == "__main__":
    pretrain(None, extra_args_provider=add_own)
"""
TRAINING = "def pretrain(model, extra_args_provider=None):\n    pass\n"
OWN = "def add_own(parser):\n    parser.add_argument('--own', type=int, default=1)\n    return parser\n"


def tree(folder: Path, module: str, **files: str) -> Path:
    added = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    return write_tree(
        folder,
        files={
            "megatron/training/training.py": TRAINING,
            "examples/train.py": SCRIPT.format(module=module),
            **added,
        },
    )


def test_options_come_from_a_module_beside_the_script(tmp_path: Path) -> None:
    root = tree(tmp_path, "own_options", examples__own_options=OWN)
    assert judged(root, ["--own", "3"], entry="examples/train.py").values["own"] == 3
    assert judged(root, ["--others", "3"], entry="examples/train.py").outcome == "refuses"


def test_options_that_a_package_elsewhere_adds_are_not_refused(tmp_path: Path) -> None:
    verdict = judged(tree(tmp_path, "nobody.knows"), ["--own", "3"], entry="examples/train.py")
    assert verdict.outcome == "may refuse"
    assert verdict.refusals[0].error == "argparse"


def test_a_package_installed_apart_may_share_the_name_of_a_folder(tmp_path: Path) -> None:
    beside = "from megatron.apart import Loader\n" + OWN
    root = tree(tmp_path, "own_options", examples__own_options=beside)
    (root / "megatron/__init__.py").unlink()
    assert judged(root, ["--own", "3"], entry="examples/train.py").outcome == "accepts"


def test_only_a_script_that_builds_a_configuration_is_refused_by_it(tmp_path: Path) -> None:
    containers = """
    def gpt_config_from_args(args):
        assert args.width < 9, "too wide"
    def pretrain_cfg_container_from_args(args, model=None):
        return model
    """
    other = SCRIPT.replace(
        "if __name__", "from megatron.training.argument_utils import gpt_config_from_args\nif __name__"
    )
    root = tree(
        tmp_path,
        "own_options",
        examples__own_options=OWN,
        megatron__training__argument_utils=containers,
        examples__builds=other.format(module="own_options"),
    )
    assert judged(root, ["--width", "9"], entry="examples/train.py").outcome == "accepts"
    assert judged(root, ["--width", "9"], entry="examples/builds.py").refusals[-1].message == "too wide"


LATER = {
    "megatron__training__vocab_utils": """
    def calculate_padded_vocab_size(vocab_size, make_vocab_size_divisible_by, tensor_model_parallel_size):
        assert make_vocab_size_divisible_by > 0, "nothing divides"
        return vocab_size
    """,
    "megatron__training__training": """
    from megatron.training.global_vars import get_args
    def pretrain(model, extra_args_provider=None):
        pass
    def get_optimizer_param_scheduler(optimizer):
        assert get_args().width != 5, "no iterations"
    """,
    "megatron__training__global_vars": "_GLOBAL_ARGS = None\ndef get_args():\n    return _GLOBAL_ARGS\n",
    "megatron__core__models__gpt__gpt_layer_specs": """
    from nowhere.kernels import Norm
    def get_gpt_layer_local_spec(**named):
        raise RuntimeError("parts are not read")
    def get_gpt_decoder_block_spec(config, use_transformer_engine):
        layer = get_gpt_layer_local_spec(num_experts=config.num_experts)
        assert len(config.moe_layer_freq) == 2, "a pattern of two"
    """,
}
MORE = """
group.add_argument("--make-vocab-size-divisible-by", type=int, default=128)
group.add_argument("--tensor-model-parallel-size", type=int, default=1)
group.add_argument("--vocab-size", type=int)
group.add_argument("--skip-train", action="store_true")
group.add_argument("--num-experts", type=int)
group.add_argument("--moe-layer-freq", type=eval, default=1)
"""


def test_stages_behind_the_configuration(tmp_path: Path) -> None:
    builds = SCRIPT.replace(
        "if __name__", "from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec\nif __name__"
    )
    root = tree(
        tmp_path,
        "own_options",
        examples__own_options=OWN,
        examples__builds=builds.format(module="own_options"),
        **LATER,
    )
    write_tree(root, parser=MORE, config="return args")

    def said(*argv: str, entry: str = "builds") -> str:
        refusals = judged(root, argv, entry=f"examples/{entry}.py").refusals
        return refusals[-1].message if refusals else ""

    assert said("--make-vocab-size-divisible-by", "0") == "nothing divides"
    assert said("--width", "5") == "no iterations"
    assert said("--width", "5", "--skip-train") == ""
    pattern = ("--num-experts", "4", "--moe-layer-freq", "[0,1,1]")
    assert said(*pattern) == "a pattern of two"
    assert said(*pattern, entry="train") == ""
    assert said(*pattern[:2]) == ""


STAGED = """
def get_gpt_layer_local_spec(**named):
    raise RuntimeError("parts are not read")
def {name}(config, use_transformer_engine, vp_stage=None):
    if config.virtual_pipeline_model_parallel_size is not None:
        assert vp_stage is not None, "vp_stage must be passed"
        assert vp_stage < config.virtual_pipeline_model_parallel_size, "a stage too far"
    assert len(config.moe_layer_freq) == 2, "a pattern of two"
"""


@pytest.mark.parametrize("name", ["get_gpt_decoder_block_spec", "get_gpt_decoder_layer_specs"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--moe-layer-freq [0,1]", ""),
        ("--moe-layer-freq [0,1] --virtual-pipeline-model-parallel-size 2", ""),
        ("--moe-layer-freq [0,1] --virtual-pipeline-model-parallel-size 1", ""),
        ("--moe-layer-freq [0,1,1] --virtual-pipeline-model-parallel-size 2", "a pattern of two"),
        ("--moe-layer-freq [0,1,1]", "a pattern of two"),
    ],
)
def test_layers_are_built_for_a_virtual_stage(tmp_path: Path, name: str, words: str, message: str) -> None:
    """Megatron-LM 0.13 to 0.15 need the stage; their scripts pass it."""
    builds = SCRIPT.replace("if __name__", f"from megatron.core.models.gpt.gpt_layer_specs import {name}\nif __name__")
    layers = {"megatron__core__models__gpt__gpt_layer_specs": STAGED.format(name=name)}
    files = {"examples__own_options": OWN, "examples__builds": builds.format(module="own_options"), **LATER, **layers}
    root = tree(tmp_path, "own_options", **files)
    stages = 'group.add_argument("--virtual-pipeline-model-parallel-size", type=int)\n'
    write_tree(root, parser=MORE + stages, config="return args")
    verdict = judged(root, ["--num-experts", "4", *words.split()], entry="examples/builds.py")
    assert [one.message for one in verdict.refusals] == ([message] if message else [])


EARLY = """
from megatron.training.arguments import parse_args
from megatron.training.training import pretrain
if __name__ == "__main__":
    if parse_args().fast:
        print("restarts")
    pretrain(None)
"""


def test_a_script_that_parses_its_command_early_is_read_for_every_command(tmp_path: Path) -> None:
    root = tree(tmp_path, "own_options", examples__own_options=OWN, examples__early=EARLY)

    def run() -> list[Verdict]:
        session = Session(Program("megatron", (str(root),), str(root / "examples/early.py")), Machine(), Budget())
        session.strict = True
        return [session.judge(argv, {}, 8) for argv in (["--kind", "none"], ["--kind", "fancy"], ["--late", "1"])]

    verdicts: list[Verdict] = in_thread(run)
    assert [verdict.outcome for verdict in verdicts] == ["refuses", "accepts", "refuses"]
    assert "invalid choice" in verdicts[0].refusals[-1].message
    assert "unrecognized arguments" in verdicts[2].refusals[-1].message


@pytest.mark.parametrize(
    ("adds", "outcome"),
    [
        ("parser = elsewhere(parser)\n    return parser", "may refuse"),
        ("parser = elsewhere(parser)\n    parser = more(parser)\n    return parser", "may refuse"),
        ("return elsewhere(parser)", "may refuse"),
        ("return elsewhere(more(parser))", "may refuse"),
        ("return more(elsewhere(parser))", "may refuse"),
        ("return elsewhere.add(parser)", "may refuse"),
        ("return more(parser)", "refuses"),
        ("more(parser)\n    return parser", "refuses"),
        ("return parser", "refuses"),
        ("parser = more(parser)\n    return parser", "refuses"),
    ],
)
def test_options_that_an_unread_function_adds_are_not_refused(tmp_path: Path, adds: str, outcome: str) -> None:
    own = (
        "from nobody.knows import elsewhere\n"
        "def more(parser):\n    parser.add_argument('--more', type=int)\n    return parser\n"
        f"def add_own(parser):\n    {adds}\n"
    )
    root = tree(tmp_path, "own_options", examples__own_options=own)
    assert judged(root, ["--own", "3"], entry="examples/train.py").outcome == outcome
