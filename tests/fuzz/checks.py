"""Targets that check a whole config, script or command: no rule crashes, every place is in its text,
every format can be written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.loaders.command_line import load_command
from preflight.run.request import Request, Target
from preflight.source.source_file import InputError, Source

from . import configs
from .choices import Choices
from .pieces import SHELL
from .values import odd_word

FORMATS = ("concise", "github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")


def sound(report: Report) -> Report:
    """No rule crashed, every place is in its text."""
    assert not report.crashes, report.crashes[0].trace
    for finding in report.findings:
        assert finding.line >= 1 and finding.column >= 1, finding
    return report


def render(choices: Choices, report: Report) -> None:
    """One of the report formats; its output contains no raw terminal control sequences."""
    format = choices.of(FORMATS)
    text = import_module(f"preflight.report.{format}").render(report)
    text = text[0] if isinstance(text, tuple) else text
    assert "\x1b" not in text and "\u202e" not in text, format


def request(choices: Choices, target: str | None = None) -> Request:
    sizes = (None, 1, 2, 4, 8, 16, 64, 1024, 3, 10**9)
    device = choices.of((None, "910B", "h100", "910C", "h20", "a100"))
    return Request(
        choices.of(sizes), None, choices.of((None, 8, 16, 1)), device, Target.parse(target) if target else None, {}
    )


def checked(choices: Choices, text: str, name: str, target: str | None) -> None:
    source = Source(text, name, path=configs.folder() / name)
    with contextlib.suppress(InputError):
        report = sound(Workspace([source], configs.plugins(), request(choices, target)).check())
        if choices.one_in(8):
            render(choices, report)


def tree(kind: str) -> Callable[[Choices], None]:
    """Configs in YAML of one dialect."""

    def run(choices: Choices) -> None:
        text, target = configs.yaml_text(choices, kind)
        checked(choices, text, "run.yaml", target)

    return run


def command(choices: Choices) -> None:
    """Megatron and MindSpeed, as a command."""
    target = choices.of(configs.TARGETS["megatron"])
    argv = [
        choices.of(("pretrain_gpt.py", "pretrain_gpt.py", "pretrain_hybrid.py", "torchrun")),
        *configs.words(choices),
    ]
    with contextlib.suppress(InputError):
        sound(Workspace([load_command(argv).source], configs.plugins(), request(choices, target)).check())


def script_text(choices: Choices) -> str:
    """A launch script with its flags in a variable, or an array, or on the line."""
    words = configs.words(choices)
    quoted = [
        word
        if word.isprintable() and not set(word) & set(" '\"$`\\|&;<>()*?[]{}~#!")
        else '"' + word.replace('"', "") + '"'
        for word in words
    ]
    flags = choices.of((" ", " \\\n  ")).join(quoted)
    shape = choices.below(4)
    head = (
        f"#!/bin/bash\n#SBATCH --nodes={odd_word(choices)}\nTP={odd_word(choices)}\n"
        if choices.below(2)
        else "#!/bin/bash\nTP=2\n"
    )
    if shape == 0:
        return f"{head}torchrun --nproc_per_node 8 pretrain_gpt.py {flags}\n"
    if shape == 1:
        return (
            f"{head}ARGS=(\n  {flags}\n  --tensor-model-parallel-size $TP\n)\n"
            f'torchrun --nproc_per_node $TP --nnodes 2 pretrain_gpt.py "${{ARGS[@]}}"\n'
        )
    if shape == 2:
        inner = flags.replace('"', "")
        return f'{head}ARGS="{inner} --tensor-model-parallel-size $TP"\ntorchrun $DIST pretrain_gpt.py $ARGS\n'
    return (
        f"{head}export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
        f'python pretrain_gpt.py {flags} "$@" {choices.of(SHELL)}{choices.of(SHELL)}\n'
    )


def script(choices: Choices) -> None:
    checked(choices, script_text(choices), "run.sh", choices.of((None, *configs.TARGETS["megatron"])))
