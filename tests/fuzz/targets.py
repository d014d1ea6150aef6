"""What is fuzzed: each target takes choices and raises when something is wrong. InputError is the one allowed way to say no."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml as pyyaml

from preflight import settings
from preflight.constraints.evaluator import evaluate
from preflight.constraints.expressions import Expression, Handle
from preflight.document import UNKNOWN, Document, Unknown, walk
from preflight.engine import Report
from preflight.finding import Edit
from preflight.fixer import fix
from preflight.gate.server import _submission
from preflight.gate.text import told
from preflight.gate.verdict import Policies, judge
from preflight.loaders import load
from preflight.loaders.command import load_command
from preflight.loaders.shell import arithmetic, load_script
from preflight.loaders.yaml import load_yaml
from preflight.proof import prove, same
from preflight.refusal import NotProven
from preflight.request import Request, Target
from preflight.source import InputError, Source
from preflight.workspace import Workspace

from . import configs
from .choices import Choices
from .values import NUMBERS, OTHERS, WORDS, odd, odd_word

Fuzz = Callable[[Choices], None]
FORMATS = ("concise", "github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")
YAML = (
    *(
        "a",
        "b",
        "<<",
        "1",
        "0x1F",
        "0o17",
        "1_0",
        "1e5",
        "1:30",
        "2001-12-14",
        "~",
        "yes",
        ".inf",
        ".nan",
        "é",
        "\u2028",
        "\t",
        " ",
        "  ",
        "\n",
        "\n  ",
        "\n- ",
    ),
    *(": ", ":", "- ", "? ", ", ", "[", "]", "{", "}", "&a ", "*a", "&b ", "*b", "!!int ", "!!str ", "!!binary ", "!!float ", "!!timestamp ", "!x ", "#c"),
    *("'", '"', "|\n ", ">-\n ", "---\n", "...\n", "%YAML 1.1\n", "\\", "\\x41", "\\ud800", "\r\n", "\r", "\ufeff", "<<: *a\n", "a: 1\n", "a: &a {b: 1}\n"),
    *("# preflight: ignore[x] y\n", "parallel_config:\n", "0b1", "0.", "1.e", "-", "=", "@", "`", "''", '""', "190:20:30", "1__0", "0x", "+", "-.inf", "0_x"),
)
SHELL = (
    *(
        "torchrun ",
        "pretrain_gpt.py ",
        "$A",
        "${A[@]}",
        "${B:-",
        "}",
        "A=",
        "A+=(",
        ")",
        "(",
        '"',
        "'",
        "`",
        "$(",
        "$((",
        "))",
        "\\\n",
        "\n",
        " ",
        ";",
        "|",
        "&&",
    ),
    *("if [ $A ]; then ", "fi", "for x in 1 2; do ", "done", "while true; do ", "case $A in ", "esac", "a) ", ";;", "<<EOF\n", "EOF\n", "f() { ", "f ", "{ "),
    *("eval ", "bash -c ", "set -- ", '"$@"', "shift", "#SBATCH -N ", "#SBATCH --nodes=", "2", "--num-layers ", "=", "# c\n", "[[ ", " ]]", "((", "${#", "${!"),
    *(
        "%",
        "%%",
        "##",
        "/",
        "//",
        "^^",
        ",,",
        "é",
        "\r\n",
        "\t",
        "srun -N",
        "msrun_launcher.sh ",
        "source x.sh",
        "export ",
        "local ",
        "$'",
        "<(",
        "**",
        "9**9**9",
    ),
    *(
        "1<<64",
        "{1..9}",
        "{1..999999999}",
        "$RANDOM",
        "${A:1:2}",
        "${A@Q}",
        "read -a A",
        "mapfile",
        "printf -v A ",
        "declare -a ",
        "trap ",
        "exec ",
        "cd x",
        "$?",
    ),
    *(
        "?(a|",
        "*(a)",
        "@(b)",
        "until ",
        "select ",
        "function g ",
        "return ",
        "break",
        "continue",
        "getopts ",
        "&",
        "2>&1",
        ">x",
        "time ",
        "! ",
        "coproc ",
        "let ",
    ),
)
SUMS = (
    *"0123456789",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "<<",
    ">>",
    "<",
    ">",
    "==",
    "!=",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "~",
    "!",
    "?",
    ":",
    "(",
    ")",
    "A",
    "0x",
    "08",
    " ",
    "$A",
)
TOML = (
    *(
        "[preflight]\n",
        "select = ",
        "ignore = ",
        "fail-on = ",
        "exclude = ",
        "[per-file.'*.yaml']\n",
        "[rules.device-count]\n",
        "world-size = ",
        "nodes = ",
        "a",
        "\n",
    ),
    *(
        "devices-per-node = ",
        "device = ",
        "target = ",
        "[[devices]]\n",
        "name = ",
        "memory-gib = ",
        "usable-gib = ",
        "required-version = ",
        "tflops = ",
        "per-node = ",
    ),
    *(
        "[",
        "]",
        "{",
        "}",
        ",",
        "=",
        ".",
        "'x'",
        '"y"',
        "1",
        "-1",
        "0",
        "1e999",
        "inf",
        "nan",
        "true",
        "['*']",
        "[1]",
        "'[a'",
        "1979-05-27",
        "'error'",
        "'mindformers@1.5.0'",
    ),
    *(
        "'h100'",
        "[tool.preflight]\n",
        "[rules]\n",
        "allow-idle = ",
        "[per-file]\n",
        "aliases = ",
        "'''",
        "\\u00e9",
        "0x1",
        "9" * 30,
        "#",
        "per-file = ",
        "rules = ",
    ),
)


def pieces(choices: Choices, parts: tuple[str, ...]) -> str:
    """A text of pieces, sometimes with free text between them."""
    made = []
    while choices.left and len(made) < 200:
        made.append(choices.text(8) if choices.one_in(20) else choices.of(parts))
    return "".join(made)


def well_formed(documents: tuple[Document, ...]) -> None:
    """Spans lie in their text."""
    for document in documents:
        for _, node, _ in walk(document.tree) if document.tree is not None else ():
            assert 0 <= node.span.start <= node.span.end <= len(node.span.source.text), node.span
        for problem in document.problems:
            assert 0 <= problem.span.start <= problem.span.end <= len(problem.span.source.text), problem


def loader(choices: Choices) -> None:
    """YAML: read as PyYAML reads it, or refused."""
    text = pieces(choices, YAML)
    try:
        source = Source.decode(text.encode("utf-8", "surrogatepass"), "run.yaml")
        document = load_yaml(source)
    except InputError:
        return
    well_formed((document,))
    if choices.below(4) or "\ufeff" in text:  # libyaml drops these wherever they stand
        return
    try:
        theirs = pyyaml.safe_load(source.text)
    except (pyyaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        return
    ours = document.tree.plain() if document.tree is not None else None
    assert same(ours, theirs), f"{ours!r} instead of {theirs!r}"


def shell(choices: Choices) -> None:
    well_formed(load_script(Source(pieces(choices, SHELL), "run.sh")))


def sums(choices: Choices) -> None:
    """Arithmetic of the shell."""
    text = pieces(choices, SUMS)
    with contextlib.suppress(arithmetic.NotKnown):
        value = arithmetic.evaluate(text, lambda name: 7)
        assert -(2**63) <= value < 2**63, (text, value)


_VALUES = (*NUMBERS, *WORDS, *OTHERS, UNKNOWN)
_TWO = ("==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "//", "/", "%", "in", "has", "startswith", "and", "or", "count", "min", "max")
_ONE = ("not", "is none", "len")


def _expression(choices: Choices, depth: int = 0) -> Any:
    if depth > 5 or choices.below(3) == 0:
        return Handle(f"h{choices.below(4)}") if choices.below(2) else choices.of(_VALUES)
    if choices.below(5) == 0:
        return Expression(choices.of(_ONE), _expression(choices, depth + 1))
    return Expression(choices.of(_TWO), _expression(choices, depth + 1), _expression(choices, depth + 1))


def evaluator(choices: Choices) -> None:
    """Random trees over random values."""
    values = {f"h{i}": choices.of(_VALUES) for i in range(4)}
    evaluate(_expression(choices), lambda handle: values[handle.name])


@cache
def _declared() -> tuple[Expression, ...]:
    return tuple(rule.refuse for rule in configs.plugins().rules(None) if isinstance(getattr(rule, "refuse", None), Expression))  # type: ignore[attr-defined]


def constraints(choices: Choices) -> None:
    """Declared conditions over random values: with every value unknown or odd, the answer is a plain truth or unknown."""
    tree = choices.of(_declared())
    values: dict[str, Any] = {}
    answer = evaluate(tree, lambda handle: values.setdefault(f"{handle.view} {handle.name}", choices.of(_VALUES)))
    assert isinstance(answer, (bool, Unknown, int, float, str, type(None), list, dict)), answer


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="preflight-fuzz."))


def toml(choices: Choices) -> None:
    """Settings: taken, or refused with a place."""
    path = _folder() / choices.of(("preflight.toml", "pyproject.toml"))
    path.write_text(pieces(choices, TOML), encoding="utf-8", errors="replace")
    try:
        settings.load(path)
    except InputError as error:
        assert str(path) in str(error)


def sound(report: Report) -> Report:
    """No rule crashed, every place is in its text."""
    assert not report.crashes, report.crashes[0].trace
    for finding in report.findings:
        assert finding.line >= 1 and finding.column >= 1, finding
    return report


def render(choices: Choices, report: Report) -> None:
    """One of the report formats; nothing raw comes through that a terminal would obey."""
    format = choices.of(FORMATS)
    text = import_module(f"preflight.report.{format}").render(report)
    text = text[0] if isinstance(text, tuple) else text
    assert "\x1b" not in text and "\u202e" not in text, format


def request(choices: Choices, target: str | None = None) -> Request:
    sizes = (None, 1, 2, 4, 8, 16, 64, 1024, 3, 10**9)
    device = choices.of((None, "910B", "h100", "910C", "h20", "a100"))
    return Request(choices.of(sizes), None, choices.of((None, 8, 16, 1)), device, Target.parse(target) if target else None, {})


def checked(choices: Choices, text: str, name: str, target: str | None) -> None:
    source = Source(text, name, path=_folder() / name)
    with contextlib.suppress(InputError):
        report = sound(Workspace([source], configs.plugins(), request(choices, target)).check())
        if choices.one_in(8):
            render(choices, report)


def tree(kind: str) -> Fuzz:
    """Configs in YAML of one dialect."""

    def run(choices: Choices) -> None:
        text, target = configs.yaml_text(choices, kind)
        checked(choices, text, "run.yaml", target)

    return run


def command(choices: Choices) -> None:
    """Megatron and MindSpeed, as a command."""
    target = choices.of(configs.TARGETS["megatron"])
    argv = [choices.of(("pretrain_gpt.py", "pretrain_gpt.py", "pretrain_hybrid.py", "torchrun")), *configs.words(choices)]
    with contextlib.suppress(InputError):
        sound(Workspace([load_command(argv).source], configs.plugins(), request(choices, target)).check())


def script_text(choices: Choices) -> str:
    """A launch script with its flags in a variable, or an array, or on the line."""
    words = configs.words(choices)
    quoted = [word if word.isprintable() and not set(word) & set(" '\"$`\\|&;<>()*?[]{}~#!") else '"' + word.replace('"', "") + '"' for word in words]
    flags = choices.of((" ", " \\\n  ")).join(quoted)
    shape = choices.below(4)
    head = f"#!/bin/bash\n#SBATCH --nodes={odd_word(choices)}\nTP={odd_word(choices)}\n" if choices.below(2) else "#!/bin/bash\nTP=2\n"
    if shape == 0:
        return f"{head}torchrun --nproc_per_node 8 pretrain_gpt.py {flags}\n"
    if shape == 1:
        return f'{head}ARGS=(\n  {flags}\n  --tensor-model-parallel-size $TP\n)\ntorchrun --nproc_per_node $TP --nnodes 2 pretrain_gpt.py "${{ARGS[@]}}"\n'
    if shape == 2:
        inner = flags.replace('"', "")
        return f'{head}ARGS="{inner} --tensor-model-parallel-size $TP"\ntorchrun $DIST pretrain_gpt.py $ARGS\n'
    return f'{head}export CUDA_DEVICE_MAX_CONNECTIONS=1\npython pretrain_gpt.py {flags} "$@" {choices.of(SHELL)}{choices.of(SHELL)}\n'


def script(choices: Choices) -> None:
    checked(choices, script_text(choices), "run.sh", choices.of((None, *configs.TARGETS["megatron"])))


def fixer(choices: Choices) -> None:
    """Check, fix, check again: what was fixed is text that reads, a second fix finds nothing more."""
    kind = choices.of(("graph", "mcore", "pynative", "megatron", "script"))
    text, target = (script_text(choices), choices.of(configs.TARGETS["megatron"])) if kind == "script" else configs.yaml_text(choices, kind)
    name = "run.sh" if kind == "script" else "run.yaml"
    asked = request(choices, target)
    with contextlib.suppress(InputError):
        done = fix(Workspace([Source(text, name, path=_folder() / name)], configs.plugins(), asked), unsafe=True)
        sound(done.report)
        if name in done.edited:
            again = fix(Workspace([done.edited[name]], configs.plugins(), asked), unsafe=True)
            sound(again.report)


def gate(choices: Choices) -> None:
    """A question to the gate: never an exception, always a verdict."""
    asked: dict[str, str] = {}
    for key in ("nodes", "devices_per_node", "world", "user", "name", "kind", "override"):
        if choices.below(3) == 0:
            asked[key] = choices.of(("1", "8", "0", "x", "٣", "²", "1" * 5000, "-1", "1e3", "\x1b[0m", "sbatch", "manifest", "a.yaml", "../x", "\u202e", ""))
    body = [lambda: script_text(choices).encode("utf-8", "replace"), lambda: choices.data, lambda: configs.yaml_text(choices, "graph")[0].encode()][
        choices.below(3)
    ]()
    try:
        submission = _submission(asked, body)
    except InputError:
        return
    verdict = judge(submission, configs.plugins(), Policies(seconds=0))
    assert verdict.code != 3, verdict.problem
    verdict.as_dict()
    assert all(line.isprintable() for line in told(verdict)), told(verdict)


def proof(choices: Choices) -> None:
    """Edits and texts that do not fit each other are refused, never a crash."""
    text, _ = configs.yaml_text(choices, "graph") if choices.below(2) else (pieces(choices, YAML), None)
    with contextlib.suppress(InputError, NotProven):
        old = load(Source(text, "run.yaml"))
        places = [key for key, node, _ in walk(old[0].tree)] if old[0].tree is not None and old[0].tree.kind == "mapping" else []
        places = [key for key in places if key] or [("a",)]
        action = choices.of(("set", "set", "remove", "rename"))
        value = str(odd(choices)) if action == "rename" else odd(choices)
        edit = Edit(action, choices.of(places[:200]), value)  # type: ignore[arg-type]
        with contextlib.suppress(import_module("preflight.loaders.yaml_edit").CannotEdit):
            splices = import_module("preflight.loaders.yaml_edit").splices(old[0], (edit,))
            new = import_module("preflight.fixer").splice(text, splices)
            prove(old, (edit,), Source(new, "run.yaml"))


TARGETS: dict[str, tuple[int, Fuzz]] = {
    "yaml": (2, loader),
    "shell": (3, shell),
    "arithmetic": (1, sums),
    "evaluator": (1, evaluator),
    "constraints": (1, constraints),
    "settings": (1, toml),
    "megatron-command": (3, command),
    "megatron-script": (3, script),
    "megatron-yaml": (1, tree("megatron")),
    "mindformers-graph": (4, tree("graph")),
    "mindformers-mcore": (3, tree("mcore")),
    "mindformers-pynative": (3, tree("pynative")),
    "fixer": (4, fixer),
    "gate": (2, gate),
    "proof": (1, proof),
}
"""By name: the share of the time, and what is run."""
