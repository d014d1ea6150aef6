"""The options and defaults of a release's entry scripts, from their code and neighbouring files."""

from __future__ import annotations

from upstream.entries import entries

TRAIN = """
from arguments import add_image_options
from megatron.training import pretrain

if __name__ == "__main__":
    pretrain(provider, extra_args_provider=add_image_options, args_defaults={"tokenizer_type": "Null"})
"""
ARGUMENTS = """
def add_image_options(parser):
    parser.add_argument("--images", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    return _more(parser)

def _more(parser):
    parser.add_argument("--image-tag", choices=["a", "b"])
    return parser

def add_others(parser):
    parser.add_argument("--others", type=int)
"""
SERVE = """
if __name__ == "__main__":
    initialize_megatron(extra_args_provider=lambda parser: parser.add_argument("--port", type=int, default=5000))
"""
BROKEN = "if __name__ == '__main__':\n    pretrain(f'{x['y']!r:{'\n"
TEXTS = {
    "examples/images/train.py": TRAIN,
    "examples/images/arguments.py": ARGUMENTS,
    "tools/serve.py": SERVE,
    "tools/broken.py": BROKEN,
    "tests/train.py": TRAIN,
    "tools/plot.py": "if __name__ == '__main__':\n    plot()\n",
}


def test_a_script_has_the_options_of_the_functions_that_it_hands_over() -> None:
    found = entries(TEXTS, {"--bf16": ["bf16", "true", False]})["examples/images/train.py"]
    assert found["options"] == {
        "--image-tag": ["image_tag", "str", None, None, ["a", "b"]],
        "--images": ["images", "int", 1],
    }
    assert found["defaults"] == {"tokenizer_type": "Null"}
    assert found["trains"] is True


def test_a_script_that_serves_does_not_train() -> None:
    assert entries(TEXTS, {})["tools/serve.py"] == {"options": {"--port": ["port", "int", 5000]}}


def test_tests_tools_and_code_of_a_newer_python_are_no_entry_scripts() -> None:
    assert set(entries(TEXTS, {})) == {"examples/images/train.py", "tools/serve.py"}
