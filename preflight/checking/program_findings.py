"""Checks a run against the source of its program: finds the source, and turns its refusals into findings at the options
of the run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

from preflight.checking.nearby_file_access import Beside
from preflight.checking.refusal_finding import MOST_TEXT, PARSER, refusal_finding, refusal_text, undecided_refusal
from preflight.job import Job, Judged, Refused
from preflight.loaders.document import Document, Launch, Word
from preflight.run.arguments import Switch
from preflight.run.request import Request
from preflight.run.value import Value
from preflight.source.finding import Finding, Message, Severity, Unverified
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace
from preflight.source.resolved_words import Needed
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.program.checkout.enclosing_checkout import Checkout
    from preflight.program.checkout.guarded_statements import Site
    from preflight.program.verdict import Place, Program, Refusal, Remark, Verdict


WORLD = "world size"
"""The interpreter's name for the number of devices."""
USUAL_NODE = 8
"""Assumed devices per node if the number is unknown: programs only check that there are any."""
FIRST = "parse"
"""The stage without which nothing was examined."""
MODULE = "-m"
USUAL = "pretrain_gpt.py"
"""The assumed entry script of a run that does not name one."""
NEVER_SURE = frozenset(["AttributeError", "NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError"])
"""Errors that unread code may cause: they do not refuse a run."""
LACKS_ARGUMENT = ("patches", "AttributeError")
"""Stage and error of a run whose patches need an argument before the parser defines it: this error is certain."""
ASKED_FOR = ("CUDA_DEVICE_MAX_CONNECTIONS",)
UNRECOGNIZED = lazy_pattern(r"unrecognized arguments: (.*)")
REQUIRED = lazy_pattern(r"are required|is required|expected (?:one|at least one) argument")
RANKS = frozenset(["rank", "local_rank", "world_size"])
"""Arguments that a program reads from its environment."""
ADDED = "options that are added when the job starts"
BRANCHES = "options that the script adds on one branch only"
CHECKS = lazy_pattern(r"__post_init__$|validate|check|_args$|(?i:calculator)")
"""Names of functions that check arguments: other functions of a file are run for only one value."""
OF_TRAINING = frozenset(["containers", "groups", "layers", "scheduler", "specs", "vocabulary"])
"""Stages after the argument checks."""
OF_SCRIPT = frozenset(["containers", "specs"])
"""Stages that depend on the started script."""
GROUPS, NEEDS_GROUPS = "groups", frozenset(["layers"])
ARGUMENT = lazy_pattern(r"--[a-z][\w-]+|\b[a-z]+_[a-z_]+\b")
"""Matches the name of an option or an argument in a sentence."""
HERALD, MEANT = lazy_pattern(r"(?i)^\W*warning\W*"), lazy_pattern("(?i)overriding default arguments")
TRAINS = lazy_pattern(r"\bpretrain\s*\(")
MOST_ENTRY = 1_000_000


def with_source(job: Job, document: Document, request: Request, beside: Beside) -> Job:
    """The run with the source of its program, if it is available and the run is read with it."""
    if not job.arguments.certainty.sourced or beside.around is None:
        return job
    checkout = beside.checkout(document)
    if checkout is None:
        return job
    job = replace(job, text_of=partial(_text_of, checkout=checkout, frameworks=tuple(job.versions)))
    if not job.arguments.words:
        return _with_configuration(job, document, request, beside, checkout)
    entry = beside.around.located(document).entry
    judge = partial(_judged, entry=entry, launch=document.launch, request=request, checkout=checkout)
    return replace(job, program=checkout.described(job.target.framework), judge=judge)


def _text_of(path: str, *, checkout: Checkout, frameworks: Sequence[str]) -> str | None:
    """The text of a file of the frameworks that are in a checkout."""
    packages = (package for name in frameworks if (package := checkout.package(name)) is not None)
    return next((text for package in packages if (text := package.files.text(path)) is not None), None)


def _below(roots: Sequence[str], launch: Launch | None) -> str:
    """The script that a launch starts, found in a program by the longest matching end of its path; "" if none
    matches."""
    if launch is None or launch.entry.text is None:
        return ""
    module = bool(launch.launcher_words) and launch.launcher_words[-1].text == MODULE
    path = f"{launch.entry.text.replace('.', '/')}.py" if module else launch.entry.text
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    ends = (os.path.join(root, *parts[at:]) for at in range(len(parts)) for root in roots)
    return next((end for end in ends if os.path.isfile(end)), "")


def _with_configuration(job: Job, document: Document, request: Request, beside: Beside, checkout: Checkout) -> Job:
    """The run of a configuration file with a stated program, whose script reads the file while nothing else changes it.
    A checkout around the file is not used automatically: it contains templates of runs, and interpreting it takes
    longer than the check."""
    if not request.program:
        return job
    from preflight.checking.config_program_findings import judged_configuration, reads_configurations

    path, certainty = document.source.path, job.arguments.certainty
    tree = job.arguments.tree or (document.tree if not request.given else None)
    launched = beside.around.launches(path) if beside.around is not None else ()
    if tree is None or document.launch is not None or document.problems or launched or certainty.completed:
        return job
    if not reads_configurations(job):
        return job
    framework = job.target.framework
    roots, _ = checkout.roots({framework: job.target.version or ""})
    judge = partial(judged_configuration, tree=tree, request=request, roots=roots, site=_site)
    return replace(job, program=checkout.described(framework), judge=judge)


class _Asked(NamedTuple):
    """The key of a query to a program, so that it runs only once."""

    program: Program
    words: tuple[str, ...]
    environment: tuple[tuple[str, str | None], ...]
    world: int | None
    versions: tuple[tuple[str, str], ...]
    devices: int | None
    capability: tuple[int, int] | None
    device: str
    checkpoint: bool = False
    """Whether what a checkpoint may set is unknown."""


def _judged(job: Job, *, entry: str, launch: Launch | None, request: Request, checkout: Checkout) -> Judged:
    """The verdict of the source about a run."""
    from preflight.program.checkpoint_arguments import CHECKPOINT
    from preflight.program.verdict import Program

    roots, lacking = checkout.roots(job.versions)
    if lacking:
        why = Message("the source of {names:and} is not available", names=lacking)
        return Judged("unread", (Unverified(why),), complete=False)
    entry = entry or _below(roots, launch)
    usual, device = os.path.join(checkout.root, USUAL), job.cluster.device
    asked = _Asked(
        Program(job.target.framework, roots, entry or (usual if os.path.isfile(usual) else None)),
        tuple(_words(job.arguments.words)),
        tuple(sorted(_environment(job), key=lambda pair: pair[0])),
        _whole(job.cluster.count),
        tuple(sorted(request.machine.items())),
        _whole(job.cluster.per_node) or min(_whole(job.cluster.count) or USUAL_NODE, USUAL_NODE),
        device.capability if device is not None else None,
        device.driver_name if device is not None else "",
    )
    verdict = _of_training(_on_every_branch(_verdict(asked), asked, job), asked.program.entry, named=bool(entry))
    if job.arguments.settled and verdict.outcome == "refuses":
        again = _of_training(_verdict(asked._replace(checkpoint=True)), asked.program.entry, named=bool(entry))
        verdict = again if again.outcome == "refuses" and CHECKPOINT in again.stages else verdict
    others = None if entry else checkout
    return _told(_where_options_are_added(_without_guesses(verdict, others, job), job), job, roots)


def _on_every_branch(verdict: Verdict, asked: _Asked, job: Job) -> Verdict:
    """The verdict; undecided if only options that the script adds on one branch are refused."""
    certain = next((one for one in verdict.refusals if one.certain), None)
    if certain is None or not any(word.maybe for word in job.arguments.words):
        return verdict
    sure = asked._replace(words=tuple(_words(word for word in job.arguments.words if not word.maybe)))
    alike = any(one.certain and one.place == certain.place for one in _verdict(sure).refusals)
    return verdict if alike else _undecided(verdict, certain, BRANCHES)


def _where_options_are_added(verdict: Verdict, job: Job) -> Verdict:
    """The verdict; undecided if options may be added and the refusal depends on one that is not set."""
    certain = next((one for one in verdict.refusals if one.certain), None)
    if certain is None or not job.arguments.open or verdict.outcome != "refuses":
        return verdict
    missing = certain.error == PARSER and REQUIRED.search(certain.message) is not None
    typed = certain.reads and all(job.arguments.given(name) is not None for name in certain.reads if name not in RANKS)
    return verdict if (typed or certain.error == PARSER) and not missing else _undecided(verdict, certain, ADDED)


def _undecided(verdict: Verdict, certain: Refusal, unless: str) -> Verdict:
    left = (one._replace(certain=False, unless=(unless,)) if one is certain else one for one in verdict.refusals)
    return verdict._replace(outcome="may refuse", refusals=tuple(left))


def _of_training(verdict: Verdict, entry: str | None, *, named: bool) -> Verdict:
    """The verdict without parts that only a training loop runs, if the started script has none, and without parts that
    need process groups, if the interpretation did not reach them. named: the run names its script; otherwise the
    configurations that it builds are unknown.
    """
    left_out = (frozenset() if named else OF_SCRIPT) if _trains(entry) else OF_TRAINING
    if GROUPS not in verdict.stages:
        left_out |= NEEDS_GROUPS
    left = tuple(one for one in verdict.refusals if one.stage not in left_out)
    if len(left) == len(verdict.refusals):
        return verdict
    outcome = verdict.outcome if any(one.certain for one in left) else "may refuse" if left else "accepts"
    return verdict._replace(refusals=left, outcome=outcome)


@lru_cache(maxsize=64)
def _trains(entry: str | None) -> bool:
    """Whether a script calls the training loop."""
    if entry is None or not os.path.isfile(entry):  # the path may be a pipe
        return False
    try:
        with open(entry, encoding="utf-8", errors="replace") as file:
            return TRAINS.search(file.read(MOST_ENTRY)) is not None
    except OSError:
        return False


def _without_guesses(verdict: Verdict, checkout: Checkout | None, job: Job) -> Verdict:
    """The verdict; undecided if unread code may cause the refusal: an undefined name, an option that another script of
    the program may add, the values of a checkpoint. checkout: searched for options if the started script is unknown."""
    from preflight.program.checkpoint_arguments import CHECKPOINT

    if FIRST not in verdict.stages and verdict.outcome != "refuses":
        return verdict._replace(outcome="unread", refusals=(), why=verdict.why or "its parser was not found")
    certain = next((one for one in verdict.refusals if one.certain), None)
    if certain is None or verdict.outcome != "refuses":
        return verdict
    named = UNRECOGNIZED.match(certain.message) if certain.error == PARSER else None
    options = {word.partition("=")[0] for word in named[1].split() if word.startswith("--")} if named else set()
    brought = bool(job.arguments.settled) and certain.error != PARSER and CHECKPOINT not in verdict.stages
    mentioned = checkout is not None and options and options & checkout.mentioned  # this searches the whole checkout
    guessed = certain.error in NEVER_SURE and (certain.stage, certain.error) != LACKS_ARGUMENT
    if not guessed and not brought and not mentioned:
        return verdict
    why = "values of a checkpoint are unknown" if brought else f"{refusal_text(certain)} ({certain.place})"
    return verdict._replace(outcome="unread", refusals=(), why=why)


@lru_cache(maxsize=256)
def _verdict(asked: _Asked) -> Verdict:
    from preflight.program import judge
    from preflight.program.verdict import Machine, Verdict

    try:
        return judge.judge(
            asked.program,
            asked.words,
            env=dict(asked.environment),
            world_size=asked.world,
            machine=Machine(dict(asked.versions), asked.capability, asked.devices, asked.device),
            checkpoint=asked.checkpoint,
        )
    except Exception as error:  # a construct that the interpreter fails at leaves the program unread
        return Verdict("unread", why=f"the interpreter failed with {type(error).__name__}: {error}")


def _words(words: Iterable[Word]) -> Iterator[str]:
    """The words of a command; an option whose value is unknown is separated from it."""
    from preflight.program.verdict import Unstated

    last = ""
    for word in words:
        if word.text is not None:
            last = word.text.partition("=")[0] if word.text.startswith("--") else last
            yield word.text
            continue
        option, value = word.parts
        if value is not None and option.text is not None:
            yield (last := option.text)
        because = (value or word).because
        yield Unstated(because if because.startswith("$") and " " not in because else f"${last}")


def _whole(value: Value) -> int | None:
    return value.raw if value.known and isinstance(value.raw, int) else None


def _environment(job: Job) -> Iterator[tuple[str, str | None]]:
    """The variables of the job; None for variables that trainers read and that are not set, if nothing else sets
    them."""
    for name in ASKED_FOR:
        if job.arguments.environment.get(name) is None:
            yield name, None
    for name, value in job.arguments.environment.items():
        if value.known and isinstance(value.raw, (str, int)):
            yield name, str(value.raw)


def _told(verdict: Verdict, job: Job, roots: Sequence[str]) -> Judged:
    certain = next((one for one in verdict.refusals if one.certain), None) if verdict.outcome == "refuses" else None
    said: list[Finding | Unverified] = []
    refused = None
    if certain is not None:
        site = _site(certain.place, roots) if certain.error != PARSER else None
        refused = _refused(certain, site)
        said.append(refusal_finding(certain, job, site))
    elif verdict.outcome == "may refuse":
        said += _left_open(verdict.refusals, job)
    elif verdict.outcome == "unread":
        said.append(Unverified(Message("the source could not be read: {why}", why=verdict.why)))
    changes = {
        one.argument: Switch(one.argument, one.before, one.after, "", str(one.place))
        for one in verdict.rewrites
        if one.place.file
    }
    if certain is None and verdict.outcome != "unread":
        said += _changed(changes.values(), job)
        said += _remarked(verdict.remarks, job)
    looked = tuple(os.path.join(root, file) for file in verdict.files for root in roots)
    possible = tuple(_refused(one, _site(one.place, roots)) for one in verdict.refusals if not one.certain)
    complete = verdict.outcome in ("accepts", "refuses") or not verdict.why
    checked = frozenset(name.partition(":")[0] for name in verdict.functions if CHECKS.search(name))
    files = checked if verdict.functions else frozenset(verdict.files)
    return Judged(verdict.outcome, tuple(said), refused, possible, files, looked, complete, changes)


def _changed(changes: Iterable[Switch], job: Job) -> Iterator[Finding]:
    """Explicitly set values that the program replaces."""
    for one in changes:
        value = job.arguments.given(one.name)
        if value is None or not value.known or value.setting is None or not _is_another(one.before, one.after):
            continue
        after = "off" if one.after is False else "on" if one.after is True else one.after
        message = Message(
            "the program sets {option} to {after} ({place})",
            option=job.arguments.spell(one.name),
            after=after,
            place=one.upstream,
        )
        yield Finding(message, value.setting.span, key=value.key, upstream=one.upstream, severity=Severity.NOTE)


def _remarked(remarks: Iterable[Remark], job: Job) -> Iterator[Finding]:
    """The program's warnings, at the first option that the text names and the run sets. A warning that names no option
    cannot be assigned to a line of the run; replacing a default of the entry script is intended."""
    for one in dict.fromkeys(remarks):
        text = HERALD.sub("", " ".join(one.text.split()))[:MOST_TEXT]
        named = (name.lstrip("-").replace("-", "_") for name in ARGUMENT.findall(text))
        value = next((value for name in named if (value := job.arguments.given(name)) is not None), None)
        if value is None or value.setting is None or MEANT.match(text) is not None:
            continue
        message = Message("the program warns: {text}", text=text)
        yield Finding(message, value.setting.span, key=value.key, upstream=str(one.place), severity=Severity.NOTE)


def _is_another(before: object, after: object) -> bool:
    """Whether a value is replaced rather than only written differently."""
    if isinstance(before, bool) or isinstance(after, bool):
        return isinstance(before, bool) and isinstance(after, bool) and before is not after
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return (numbers or (isinstance(before, str) and isinstance(after, str)) or after is None) and before != after


def _refused(refusal: Refusal, site: Site | None) -> Refused:
    place = refusal.place
    statement = refusal.statement or (site.hash if site is not None else "")
    return Refused(place.file, place.line, place.end, statement, refusal.reads, refusal.error == PARSER)


def _left_open(refusals: Sequence[Refusal], job: Job) -> list[Unverified]:
    """The facts that decide whether the program refuses; the number of devices is listed once for all checks."""
    world = [one for one in refusals if any(fact.startswith(WORLD) for fact in one.unless)]
    said = [undecided_refusal(one, job) for one in refusals if one not in world]
    if world:
        known = job.cluster.count.known
        because = Message.plural(
            len(world),
            "{count} check of the program depends on the number of devices",
            "{count} checks of the program depend on the number of devices",
            count=len(world),
        )
        said.append(undecided_refusal(world[0], job) if known else Unverified(because, job.start, Needed.WORLD_SIZE))
    return said or [Unverified("it is unknown whether the program rejects this run", job.start)]


def _site(place: Place, roots: Sequence[str]) -> Site | None:
    """The refusal at a place with its condition; None if it cannot be found again."""
    from preflight.program.checkout.statement_at_line import kept_site_at

    for root in roots:
        try:
            with open(os.path.join(root, place.file), encoding="utf-8") as file:
                text = file.read()
            return kept_site_at(place.file, text, place.line)
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
    return None
