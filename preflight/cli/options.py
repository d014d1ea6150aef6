"""Options that several commands share: each group is declared once, and a command takes the groups it needs."""

from __future__ import annotations

from collections.abc import Callable

from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Annotated, Any, TypeVar


class Option(NamedTuple):
    """The declaration of an option or, without names, of an argument for typer, which hooks do not load.

    completion: the function of preflight.cli.completion that completes its values.
    """

    names: tuple[str, ...]
    more: dict[str, Any]
    completion: str


def option(*names: str, help: str, completion: str = "", **more: Any) -> Option:
    """Declare an option. more: additional arguments of typer.Option."""
    return Option(names, {"help": help, "show_default": False, **more}, completion)


Started = Annotated[list[str] | None, "the command after --"]
"""The type of the parameter that takes the command after a bare `--`, in a command function that has one."""


class Entry(NamedTuple):
    """How an option is read without typer. flag: its value if it takes no word, otherwise None. least: the lowest
    number. repeats: its values form a list.
    """

    name: str
    kind: type[str] | type[int] | type[float] | type[bool] = str
    flag: bool | None = None
    least: float | None = None
    repeats: bool = False


class Table(NamedTuple):
    """The options and arguments of a command: options by their spelling, and the parameter of the words that are not
    options."""

    options: dict[str, Entry]
    words: str = ""


class Inputs(NamedTuple):
    """Which files."""

    paths: Annotated[list[str] | None, option(metavar="[PATHS|-]...", help="Files, folders, or - for stdin.")] = None
    stdin_filename: Annotated[
        str | None, option("--stdin-filename", metavar="PATH", help="File name to use for the text on stdin.")
    ] = None
    exclude: Annotated[
        list[str] | None, option("--exclude", metavar="PATTERN", help="File patterns to skip in folders.")
    ] = None
    force_exclude: Annotated[
        bool,
        option("--force-exclude", help="Apply exclusions to given files, too; after `--`, only paths are accepted."),
    ] = False
    allow_unclaimed: Annotated[
        bool, option("--allow-unclaimed", help="Skip given files that are not training configs.")
    ] = False
    include: Annotated[
        list[str] | None,
        option("--include", metavar="PATTERN", help="Additional file patterns to search for in folders."),
    ] = None
    no_gitignore: Annotated[bool, option("--no-gitignore", help="Also check files that .gitignore excludes.")] = False
    include_markdown: Annotated[
        bool, option("--include-markdown", help="Also look for commands in Markdown files.")
    ] = False


class JobFacts(NamedTuple):
    """Options about the job, not about files."""

    world_size: Annotated[int | None, option("--world-size", metavar="N", help="Total number of devices.")] = None
    nodes: Annotated[int | None, option("--nodes", metavar="N", help="Number of nodes.")] = None
    devices_per_node: Annotated[
        int | None, option("--devices-per-node", metavar="M", help="Number of devices per node.")
    ] = None
    device: Annotated[
        str | None, option("--device", metavar="NAME", help="Name of the accelerator.", completion="devices")
    ] = None
    target: Annotated[
        str | None,
        option(
            "--target",
            metavar="FRAMEWORK[@VERSION]",
            help="The framework that reads the config, and optionally its release.",
            completion="targets",
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        option("--set", metavar="NAME=VALUE", help="Override an argument or a script variable; repeatable."),
    ] = None
    program: Annotated[
        str | None,
        option("--program", metavar="PATH", help="The source of the program that runs: a checkout or an environment."),
    ] = None
    network: Annotated[
        str | None,
        option(
            "--network", metavar="NAME|GB/S", help="The network between nodes, e.g. HDR; used to estimate step times."
        ),
    ] = None


PYTHON = "With --site: the job's Python; its packages are compared with the release."
INVENTORY = "With --site: a file with the output of `sinfo --json` or `scontrol show node --json`."


class AtSite(NamedTuple):
    """Whether the files that a run names are examined on this machine. `--site=slurm` stands for `--site --scheduler
    slurm`."""

    site: Annotated[
        bool,
        option(
            "--site",
            help="Also check the data, checkpoints and folders that a run names (with =slurm, also the nodes).",
        ),
    ] = False
    python: Annotated[str | None, option("--python", metavar="PATH", help=PYTHON)] = None
    inventory: Annotated[str | None, option("--inventory", metavar="FILE", help=INVENTORY)] = None
    scheduler: Annotated[
        str | None, option("--scheduler", metavar="slurm", help="With --site: query this scheduler about its nodes.")
    ] = None


SELECT = (
    "Rules to report: rule ids (* is a wildcard), a framework, a topic (memory, shell, silent-change) or a severity."
)


class Rules(NamedTuple):
    """Which rules run, and with which settings."""

    select: Annotated[
        list[str] | None,
        option("--select", metavar="RULE", help=SELECT, completion="rules"),
    ] = None
    ignore: Annotated[
        list[str] | None, option("--ignore", metavar="RULE", help="Rules not to report.", completion="rules")
    ] = None
    min_severity: Annotated[
        str | None,
        option("--min-severity", metavar="error|warning|note", help="Lowest severity to report.", completion="levels"),
    ] = None
    config: Annotated[
        str | None, option("--config", metavar="FILE", help="Use this settings file instead of the nearest one.")
    ] = None
    isolated: Annotated[bool, option("--isolated", help="Ignore settings files, and open only the given files.")] = (
        False
    )


Color = Annotated[
    str,
    option(
        "--color", metavar="auto|always|never", help="Whether to use colors (auto respects NO_COLOR and FORCE_COLOR)."
    ),
]
File = Annotated[str | None, option("--output-file", "-o", metavar="FILE", help="Write the report to this file.")]
Quiet = Annotated[bool, option("--quiet", "-q", help="Print only the findings, without a summary.")]
LANG = "Language of messages; the default is that of the locale for text, and English for machine-readable formats."
Lang = Annotated[str | None, option("--lang", metavar="en|zh", help=LANG, completion="languages")]
FORMATS = "Output format: text, concise, json, sarif, github, gitlab, junit, markdown, html, statistics; repeatable."


class Output(NamedTuple):
    """Output options of `check`."""

    output_format: Annotated[
        list[str] | None, option("--output-format", "-f", metavar="FORMAT[:FILE]", help=FORMATS, completion="formats")
    ] = None
    output_file: File = None
    color: Color = "auto"
    quiet: Quiet = False
    verbose: Annotated[bool, option("--verbose", "-v", help="Also print how files were read and what was skipped.")] = (
        False
    )
    show_unknown: Annotated[bool, option("--show-unknown", help="List the checks that were skipped.")] = False
    no_group: Annotated[bool, option("--no-group", help="Print repeated warnings and notes one by one.")] = False
    lang: Lang = None


class Printed(NamedTuple):
    """Output options of commands that describe runs."""

    output_format: Annotated[
        str,
        option("--output-format", "-f", metavar="text|json", help="Output for people (text) or for programs (json)."),
    ] = "text"
    output_file: File = None
    color: Color = "auto"
    lang: Lang = None


class Compared(NamedTuple):
    """Output options of `diff`, which can also write a review comment."""

    output_format: Annotated[
        str,
        option(
            "--output-format",
            "-f",
            metavar="text|markdown|json",
            help="Output for people (text), for a review comment (markdown) or for programs (json).",
        ),
    ] = "text"
    output_file: File = None
    color: Color = "auto"
    lang: Lang = None


class Outcome(NamedTuple):
    """Output options of `fix`."""

    color: Color = "auto"
    quiet: Quiet = False
    lang: Lang = None


class Scope(NamedTuple):
    """Which findings are reported."""

    baseline: Annotated[
        str | None,
        option(
            "--baseline", metavar="FILE", help="Hide the findings in this file, which `preflight baseline` recorded."
        ),
    ] = None
    diff_base: Annotated[
        str | None,
        option(
            "--diff-base",
            metavar="REV",
            help="Report only findings that changes since this git revision touch or cause.",
        ),
    ] = None


Function = TypeVar("Function", bound=Callable[..., Any])


def takes(*groups: Any) -> Callable[[Function], Function]:
    """Declare that a command function takes groups of options as its first parameters; its own options follow."""

    def mark(function: Function) -> Function:
        function.__dict__["groups"] = groups
        return function

    return mark


def listed(values: list[str] | None) -> tuple[str, ...]:
    """The items of a repeatable option whose values may be separated by commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
