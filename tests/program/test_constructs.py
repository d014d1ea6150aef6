"""Python constructs in validators: the interpreter refuses and accepts the same runs as Python."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from trainer import judged, write_tree


class Case(NamedTuple):
    """A body of validate_args that refuses --width 7 and accepts the default, 8."""

    name: str
    validate: str
    head: str = ""


CASES = [
    Case("assert", "assert args.width % 2 == 0, f'odd {args.width}'"),
    Case("raise", "if args.width % 2:\n    raise ValueError('odd %d' % args.width)"),
    Case("exit", "if args.width % 2:\n    print('odd')\n    exit()"),
    Case("nested function", "def odd(n):\n    return n % 2\nassert not odd(args.width)"),
    Case("closure", "limit = 8\ndef fits():\n    return args.width == limit\nassert fits()"),
    Case("lambda", "even = lambda n: n % 2 == 0\nassert even(args.width)"),
    Case("comprehension", "assert [n for n in range(10) if n == args.width and n % 2 == 0]"),
    Case("dictionary comprehension", "assert {n: n * 2 for n in (6, 8)}[args.width] == 16"),
    Case("generator expression", "assert all(args.width % n == 0 for n in (1, 2, 4))"),
    Case("generator", "def sizes():\n    for n in (2, 4, 8):\n        yield n\nassert args.width in sizes()"),
    Case("while", "n = args.width\nwhile n > 1 and n % 2 == 0:\n    n //= 2\nassert n == 1"),
    Case("for and else", "for n in (4, 8):\n    if n == args.width:\n        break\nelse:\n    raise ValueError('no')"),
    Case("try", "try:\n    {8: 1}[args.width]\nexcept KeyError as error:\n    raise ValueError('no') from error"),
    Case("finally", "try:\n    pass\nfinally:\n    assert args.width == 8"),
    Case("match", "match args.width:\n    case 8 | 16:\n        pass\n    case _:\n        raise ValueError('no')"),
    Case("walrus", "if (rest := args.width % 2) != 0:\n    raise ValueError(rest)"),
    Case("conditional expression", "assert (True if args.width == 8 else False)"),
    Case("starred", "first, *others = [args.width, 1, 2]\nassert first == 8 and others == [1, 2]"),
    Case(
        "keyword arguments",
        "def check(n, *rest, even=True, **named):\n    assert (n % 2 == 0) is even\ncheck(args.width, 1, other=2)",
    ),
    Case("getattr", "assert getattr(args, 'width') == 8 and not hasattr(args, 'nothing')"),
    Case("setattr", "setattr(args, 'doubled', args.width * 2)\nassert args.doubled == 16"),
    Case("vars", "assert vars(args)['width'] == 8"),
    Case("global", "global LIMIT\nLIMIT = args.width\nassert LIMIT == 8", "LIMIT = 0"),
    Case("evaluated text", "assert eval('args.width * 2') == 16"),
    Case("place in a list after another", "assert [8, 4, args.width].index(8, 1) == 2"),
    Case("native module", "import math\nassert math.log2(args.width).is_integer()"),
    Case("regular expression", "import re\nassert re.match(r'^[2468]$', str(args.width))"),
    Case("partial", "from functools import partial\nassert partial(divmod, args.width)(2) == (4, 0)"),
    Case(
        "class",
        "assert Size(args.width).even()",
        "class Size:\n    def __init__(self, n):\n        self.n = n\n"
        "    def even(self):\n        return self.n % 2 == 0",
    ),
    Case(
        "property",
        "assert Size(args.width).even",
        "class Size:\n    def __init__(self, n):\n        self.n = n\n"
        "    @property\n    def even(self):\n        return self.n % 2 == 0",
    ),
    Case(
        "inherited method",
        "Wide(args.width).check()",
        "class Size:\n    def __init__(self, n):\n        self.n = n\n"
        "    def check(self):\n        assert self.n % 2 == 0\nclass Wide(Size):\n    def check(self):\n"
        "        super().check()",
    ),
    Case(
        "class method",
        "assert Size.of(args.width).n == 8",
        "class Size:\n    @classmethod\n    def of(cls, n):\n"
        "        made = cls()\n        made.n = n\n        return made",
    ),
    Case(
        "single instance",
        "assert Only().n == 1 and args.width == 8",
        "class Only:\n    made = None\n"
        "    def __new__(cls):\n        if cls.made is None:\n            cls.made = super().__new__(cls)\n"
        "            cls.made.n = 1\n        return cls.made",
    ),
    Case(
        "dataclass",
        "Size(n=args.width)",
        "from dataclasses import dataclass, field\n@dataclass\nclass Size:\n"
        "    n: int = 1\n    rest: list = field(default_factory=list)\n    def __post_init__(self):\n"
        "        assert self.n % 2 == 0 and self.rest == []",
    ),
    Case(
        "inherited dataclass",
        "Wide(args.width, wide=True)",
        "from dataclasses import dataclass\n@dataclass\n"
        "class Size:\n    n: int = 1\n    def __post_init__(self):\n        assert self.n % 2 == 0\n@dataclass\n"
        "class Wide(Size):\n    wide: bool = False\n    def __post_init__(self):\n        super().__post_init__()",
    ),
    Case(
        "fields of a dataclass",
        "import dataclasses\nassert args.width in [f.default for f in dataclasses.fields(S)]",
        "from dataclasses import dataclass\n@dataclass\nclass S:\n    n: int = 8",
    ),
    Case(
        "fields of a class that derives from a dataclass",
        "import dataclasses\nassert args.width in [f.default for f in dataclasses.fields(Wide)]",
        "from dataclasses import dataclass\n@dataclass\nclass Size:\n    n: int = 8\nclass Wide(Size):\n    pass",
    ),
    Case(
        "dataclass behind a class that stands for it",
        "Size(n=args.width)",
        "import dataclasses\nimport inspect\ndef replaceable(cls):\n    assert inspect.isclass(cls)\n"
        "    class Proxy(cls):\n        def __new__(made, *given, **named):\n"
        "            return object.__new__(Proxy)\n    Proxy.__name__ = cls.__name__\n    return Proxy\n"
        "@replaceable\n@dataclasses.dataclass\nclass Size:\n    n: int = 1\n    def __post_init__(self):\n"
        "        assert self.n in [8] and [f.name for f in dataclasses.fields(self)] == ['n']",
    ),
    Case("enumeration", "Width(args.width)", "import enum\nclass Width(enum.Enum):\n    usual = 8\n    wide = 16"),
    Case(
        "enumeration of texts",
        "assert 'w8' == Width.usual and f'w{args.width}' in [w.value for w in Width]",
        "import enum\nclass Width(str, enum.Enum):\n    usual = 'w8'",
    ),
    Case("own exception", "if args.width % 2:\n    raise Odd('odd')", "class Odd(ValueError):\n    pass"),
    Case(
        "decorator",
        "check(args)",
        "import functools\ndef loud(f):\n    @functools.wraps(f)\n"
        "    def run(*a, **k):\n        return f(*a, **k)\n    return run\n@loud\ndef check(args):\n"
        "    assert args.width % 2 == 0",
    ),
    Case("module of the program", "from megatron.sizes import check\ncheck(args.width)"),
    Case(
        "context",
        "with Held() as n:\n    assert args.width == n",
        "class Held:\n    def __enter__(self):\n        return 8\n    def __exit__(self, *rest):\n        pass",
    ),
    Case("text method", "assert 'width is {:>3}'.format(args.width) == 'width is   8'"),
    Case("sorted by key", "assert sorted([4, args.width, 2], key=lambda n: -n) == [8, 4, 2]"),
    Case(
        "several paths",
        "if LEVEL:\n    half = args.width // 2\nelse:\n    half = 4\nassert half * 2 == args.width",
        "LEVEL = 1",
    ),
]
SIZES = "def check(n):\n    if n % 2:\n        raise RuntimeError('odd')\n"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_refuses_what_the_program_refuses(case: Case, tmp_path: Path) -> None:
    root = write_tree(tmp_path, case.validate, head=case.head, files={"megatron/sizes.py": SIZES})
    verdict = judged(root, ["--width", "7"])
    assert verdict.outcome == "refuses", verdict
    assert verdict.refusals[-1].certain and verdict.refusals[-1].stage == "validate"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_accepts_what_the_program_accepts(case: Case, tmp_path: Path) -> None:
    root = write_tree(tmp_path, case.validate, head=case.head, files={"megatron/sizes.py": SIZES})
    verdict = judged(root, [])
    assert verdict.outcome == "accepts", verdict
    assert verdict.values["width"] == 8


def test_the_place_message_and_arguments_of_a_refusal(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        """
        total = args.heads * 2
        if args.fast:
            assert args.width % total == 0, f"{args.width} is not a multiple of {total}"
        """,
    )
    refusal = judged(root, ["--heads", "3", "--fast"]).refusals[-1]
    assert refusal.place.file == "megatron/training/arguments.py" and refusal.place.function == "validate_args"
    line = (root / refusal.place.file).read_text().splitlines()[refusal.place.line - 1]
    assert line.strip().startswith("assert")
    assert refusal.error == "AssertionError" and refusal.message == "8 is not a multiple of 6"
    assert refusal.reads == ("fast", "heads", "width")


def test_arguments_are_known_within_what_is_called(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, "check(args.width, limit=args.heads)", head="def check(n, limit):\n    assert n < limit"
    )
    assert judged(root, ["--heads", "4"]).refusals[-1].reads == ("heads", "width")


def test_rewrites_and_warnings(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        """
        import warnings
        if args.fast:
            warnings.warn("fast is slow")
            print("WARNING: width is halved")
            args.width = args.width // 2
        """,
    )
    verdict = judged(root, ["--fast"])
    assert [(one.argument, one.before, one.after) for one in verdict.rewrites] == [("width", 8, 4)]
    assert [one.text for one in verdict.remarks] == ["warning: fast is slow", "WARNING: width is halved"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--widht", "4"], "unrecognized arguments: --widht 4"),
        (["--width", "four"], "argument --width: invalid int value: 'four'"),
        (["--kind", "odd"], "argument --kind: invalid choice"),
        (["--stages"], "argument --stages: expected at least one argument"),
    ],
)
def test_the_parser_refuses(argv: list[str], message: str, tmp_path: Path) -> None:
    verdict = judged(write_tree(tmp_path), argv)
    assert verdict.outcome == "refuses"
    assert verdict.refusals[-1].error == "argparse" and verdict.refusals[-1].message.startswith(message)


def test_types_and_actions_of_the_program(tmp_path: Path) -> None:
    head = """
    def even(text):
        if int(text) % 2:
            raise argparse.ArgumentTypeError(f"{text} is odd")
        return int(text)

    class Doubled(argparse.Action):
        def __call__(self, parser, namespace, values, option_string=None):
            setattr(namespace, self.dest, values * 2)
    """
    parser = "group.add_argument('--even', type=even)\ngroup.add_argument('--twice', type=int, action=Doubled)"
    root = write_tree(tmp_path, head=head, parser=parser)
    assert judged(root, ["--even", "3"]).refusals[-1].message == "argument --even: 3 is odd"
    assert judged(root, ["--twice", "4"]).values["twice"] == 8


def test_options_of_the_script(tmp_path: Path) -> None:
    script = """
    from megatron.training import pretrain
    def add(parser):
        parser.add_argument("--extra", type=int, default=3)
        return parser
    if __name__ == "__main__":
        pretrain(None, extra_args_provider=add, args_defaults={"name": "given"})
    """
    files = {
        "megatron/training/__init__.py": "from megatron.training.training import pretrain",
        "megatron/training/training.py": "def pretrain(model, extra_args_provider=None, args_defaults={}):\n    pass",
        "pretrain_small.py": script,
    }
    root = write_tree(tmp_path, "assert defaults == {'name': 'given'}\nassert args.extra < 5", files=files)
    assert judged(root, ["--extra", "4"], entry="pretrain_small.py").outcome == "accepts"
    assert judged(root, ["--extra", "5"], entry="pretrain_small.py").refusals[-1].certain
    assert judged(root, ["--extra", "4"]).outcome == "refuses"


def test_a_module_that_is_imported_is_a_name_of_its_package(tmp_path: Path) -> None:
    files = {
        "megatron/own/__init__.py": "import megatron.own.sizes\nlimit = sizes.LIMIT\n",
        "megatron/own/sizes.py": "LIMIT = 4\n",
    }
    root = write_tree(
        tmp_path, "assert args.width <= limit, 'too wide'", head="from megatron.own import limit", files=files
    )
    assert judged(root, ["--width", "5"]).refusals[-1].message == "too wide"
    assert judged(root, ["--width", "4"]).outcome == "accepts"


PROXY = """
import dataclasses

def replaceable(cls):
    class Proxy(cls):
        def __new__(proxy, *given, **named):
            return object.__new__(Proxy)
    Proxy.__name__ = cls.__name__
    return Proxy

@replaceable
@dataclasses.dataclass
class Sizes:
    depth: int = 2
    rate: float = 0.5
    def __post_init__(self):
        assert self.depth > 1, "too flat"
"""


def test_a_proxy_of_a_data_class_has_its_fields(tmp_path: Path) -> None:
    parser = "for one in dataclasses.fields(Sizes):\n    group.add_argument('--' + one.name, type=one.type)"
    root = write_tree(tmp_path, "Sizes(depth=args.depth)", head=PROXY, parser=parser)
    assert judged(root, ["--depth", "3"]).outcome == "accepts"
    assert judged(root, ["--depth", "1"]).refusals[-1].message == "too flat"
    assert judged(root, ["--dept", "3"]).refusals[-1].error == "argparse"


def test_signals_are_those_of_python(tmp_path: Path) -> None:
    parser = "group.add_argument('--stop', type=lambda name: signal.Signals[name], default=signal.SIGTERM)"
    root = write_tree(tmp_path, "assert args.stop is signal.SIGTERM, 'other'", head="import signal", parser=parser)
    assert judged(root, ["--stop", "SIGTERM"]).outcome == "accepts"
    assert judged(root, ["--stop", "SIGINT"]).refusals[-1].message == "other"


def test_a_type_that_lies_elsewhere_refuses_no_value(tmp_path: Path) -> None:
    head = "import dataclasses\nimport vendor\n@dataclasses.dataclass\nclass Sizes:\n    kernel: vendor.Kernel = None"
    parser = "for one in dataclasses.fields(Sizes):\n    group.add_argument('--' + one.name, type=one.type)"
    root = write_tree(tmp_path, head=head, parser=parser)
    assert judged(root, ["--kernel", "fast"]).outcome == "accepts"


def test_the_calculator_of_micro_batches_of_older_releases(tmp_path: Path) -> None:
    text = """
    def build_num_microbatches_calculator(args):
        assert args.width % 2 == 0, "odd"
    """
    root = write_tree(tmp_path, files={"megatron/microbatches.py": text})
    assert judged(root, ["--width", "7"]).refusals[-1].stage == "microbatches"
    assert judged(root, []).outcome == "accepts"


def test_a_tree_whose_files_are_no_modules_of_it_is_unread(tmp_path: Path) -> None:
    root = write_tree(tmp_path, "assert args.width % 2 == 0")
    for package in ("megatron/training", "megatron"):
        (root / package / "__init__.py").unlink()
    assert judged(root, ["--width", "7"]).outcome in ("unread", "refuses")


def test_the_oldest_releases_have_no_configuration_of_the_model(tmp_path: Path) -> None:
    def without(root: Path) -> Path:
        path = write_tree(root, "assert args.width % 2 == 0") / "megatron" / "training" / "arguments.py"
        path.write_text(path.read_text().replace("def core_transformer_config_from_args(args):\n    pass", ""))
        return root

    old = without(tmp_path / "old")
    assert judged(old, []).outcome == "accepts" and judged(old, ["--width", "7"]).outcome == "refuses"
    odd = without(tmp_path / "odd")
    (odd / "megatron" / "core" / "transformer").mkdir(parents=True)
    (odd / "megatron" / "core" / "transformer" / "transformer_config.py").write_text("class TransformerConfig: pass")
    assert judged(odd, []).outcome == "unread"


@pytest.mark.parametrize(
    ("loop", "outcome"),
    [
        ("for name, one in sys.modules.copy().items():\n    setattr(one, 'patched', name)", "refuses"),
        ("for one in sys.modules.values():\n    one.add(parser)", "may refuse"),
        ("for one in sys.modules.values():\n    add_options(one)", "may refuse"),
        ("for one in sys.modules.values():\n    one.add_arguments()", "may refuse"),
    ],
)
def test_a_loop_over_something_unknown_adds_options_where_it_reaches_a_parser(
    loop: str, outcome: str, tmp_path: Path
) -> None:
    head = "import sys\ndef add_options(one):\n    one.parser.add_argument('--more')"
    root = write_tree(tmp_path, head=head, parser=loop)
    assert judged(root, ["--widht", "4"]).outcome == outcome


def test_the_modules_that_are_loaded_are_a_mapping_of_which_those_of_the_program_are_known(tmp_path: Path) -> None:
    head = """
        import sys
        def patch(name, new):
            for _, one in sys.modules.copy().items():
                if hasattr(one, name) and id(getattr(one, name)) == id(new):
                    setattr(one, name, new)
            sys.modules.pop("of_nobody", None)
        def even(args):
            assert args.width % 2 == 0
        """
    named = "patch('even', even)\nsys.modules[__name__].even(args)\nsys.modules.get(__name__).even(args)"
    root = write_tree(tmp_path / "known", named, head=head)
    assert judged(root, ["--width", "8"]).outcome == "accepts"
    assert judged(root, ["--width", "7"]).outcome == "refuses"
    assert judged(write_tree(tmp_path / "other", "sys.modules['of_nobody'].even(args)", head=head)).outcome == "unread"
    asked = "if 'transformer_engine' in sys.modules:\n    assert args.width > 8"
    assert judged(write_tree(tmp_path / "asked", asked, head=head), ["--width", "8"]).outcome == "may refuse"


STATE = """
_GROUP = None

def initialize_model_parallel(size):
    global _GROUP
    assert 8 % size == 0, "8 devices are not divisible"
    _GROUP = size

def get_pipeline_model_parallel_group():
    assert _GROUP is not None, "group is not initialized"
    return _GROUP

def get_pipeline_model_parallel_rank():
    return get_pipeline_model_parallel_group()
"""
BLOCK = """
from megatron.core import parallel_state

def get_num_layers_to_build(config):
    {body}
"""
BLOCKS = "megatron/core/transformer/transformer_block.py"


@pytest.mark.parametrize(
    ("start", "body", "outcome"),
    [
        ("", "return parallel_state.get_pipeline_model_parallel_rank()", "accepts"),
        ("", "assert parallel_state.get_pipeline_model_parallel_rank() == 0", "accepts"),
        ("", "return parallel_state.get_pipeline_model_parallel_group()", "accepts"),
        ("", "assert False, 'no layer'", "refuses"),
        ("", "raise ValueError('no layer')", "refuses"),
        ("def _initialize_distributed():\n    unread_call(missing_name)\n",
         "return parallel_state.get_pipeline_model_parallel_rank()", "accepts"),
        ("def _initialize_distributed():\n    n = 0\n    while n < 10**9: n += 1\n",
         "return parallel_state.get_pipeline_model_parallel_rank()", "accepts"),
        (
            "from megatron.core import parallel_state\ndef _initialize_distributed():\n"
            "    parallel_state.initialize_model_parallel(8)\n",
            "return parallel_state.get_pipeline_model_parallel_rank()", "accepts",
        ),
        (
            "from megatron.core import parallel_state\ndef _initialize_distributed():\n    pass\n",
            "return parallel_state.get_pipeline_model_parallel_rank()", "refuses",
        ),
        (
            "from megatron.core import parallel_state\ndef _initialize_distributed():\n"
            "    parallel_state.initialize_model_parallel(8)\n",
            "assert parallel_state.get_pipeline_model_parallel_rank() == 0", "refuses",
        ),
        (
            "from megatron.core import parallel_state\ndef _initialize_distributed():\n"
            "    parallel_state.initialize_model_parallel(0)\n",
            "return 1", "refuses",  # the creation itself divides by zero
        ),
        (
            "from megatron.core import parallel_state\ndef _initialize_distributed():\n"
            "    parallel_state.get_pipeline_model_parallel_group()\n",
            "return 1", "accepts",  # another function, which is not called here, may have created them
        ),
    ],
)  # fmt: skip
def test_groups_that_could_not_be_created_refuse_nothing(tmp_path: Path, start: str, body: str, outcome: str) -> None:
    files = {
        "megatron/core/__init__.py": "",
        "megatron/core/parallel_state.py": STATE,
        BLOCKS: BLOCK.replace("{body}", body),
        "megatron/core/transformer/__init__.py": "",
        **({"megatron/training/initialize.py": start} if start else {}),
    }
    assert judged(write_tree(tmp_path, files=files)).outcome == outcome


def test_arguments_that_are_checked_without_their_defaults_have_them_before(tmp_path: Path) -> None:
    """Forks of early releases fill in the defaults of the script, and then call `validate_args(args)`."""
    script = """
    from megatron.training.training import pretrain
    if __name__ == "__main__":
        pretrain(None, args_defaults={"name": "given", "kind": "fancy"})
    """
    files = {
        "train.py": script,
        "megatron/training/training.py": "def pretrain(model, extra_args_provider=None, args_defaults={}):\n    pass",
    }
    root = write_tree(tmp_path, 'assert args.name != "given"', files=files)
    written = root / "megatron/training/arguments.py"
    written.write_text(written.read_text().replace("def validate_args(args, defaults={}):", "def validate_args(args):"))
    assert judged(root, ["--name", "mine"], entry="train.py").outcome == "accepts"
    assert judged(root, [], entry="train.py").outcome == "refuses"


AT_ONCE = """
import argparse

def add_sizes(parser):
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--heads", type=int, default=None)
    parser.add_argument("--name", default=None)
    return parser

def parse_args(extra_args_provider=None, defaults={}, ignore_unknown_args=False):
    parser = add_sizes(argparse.ArgumentParser(allow_abbrev=False))
    if extra_args_provider is not None:
        parser = extra_args_provider(parser)
    if ignore_unknown_args:
        args, _ = parser.parse_known_args()
    else:
        args = parser.parse_args()
    for key in defaults:
        if getattr(args, key) is None:
            setattr(args, key, defaults[key])
    if args.heads is None:
        args.heads = 2
    assert args.width % args.heads == 0, "heads"
    assert args.name != "given", "name"
    return args
"""
BATCHES_AT_ONCE = """
def build_num_microbatches_calculator(args):
    assert args.width < 64, "wide"
"""


@pytest.mark.parametrize(
    ("argv", "message", "reads"),
    [
        ([], "", ()),
        (["--width", "7"], "heads", ("width",)),
        (["--heads", "3"], "heads", ("heads",)),
        (["--name", "given"], "name", ("name",)),
        (["--width", "64"], "wide", ("width",)),
        (["--more", "1"], "more", ("more",)),
        (["--other", "1"], "unrecognized arguments: --other 1", ()),
    ],
)
def test_early_releases_parse_and_check_at_once(
    tmp_path: Path, argv: list[str], message: str, reads: tuple[str, ...]
) -> None:
    script = """
    from megatron.training import pretrain
    def more(parser):
        parser.add_argument("--more", type=int, default=0)
        return parser
    if __name__ == "__main__":
        pretrain(None, extra_args_provider=more, args_defaults={"name": "plain"})
    """
    files = {
        "train.py": script,
        "megatron/__init__.py": "",
        "megatron/training.py": "def pretrain(model, extra_args_provider=None, args_defaults={}):\n    pass",
        "megatron/arguments.py": AT_ONCE.replace(
            '"name"\n', '"name"\n    assert not getattr(args, "more", 0), "more"\n'
        ),
        "megatron/microbatches.py": BATCHES_AT_ONCE,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    verdict = judged(tmp_path, argv, entry="train.py")
    assert verdict.outcome == ("refuses" if message else "accepts"), verdict.why
    assert [one.message for one in verdict.refusals] == ([message] if message else [])
    assert not message or set(reads) <= set(verdict.refusals[0].reads)
    assert message or [(one.argument, one.after) for one in verdict.rewrites] == [("name", "plain"), ("heads", 2)]
