"""Checks of the time limit of a batch job."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span

LIMIT = lazy_pattern(
    r"(?m)^#SBATCH[ \t]+(?:-t[ \t]*|--time[= ][ \t]*)(?P<days>\d{1,3}-)?(?P<clock>\d{1,5}(?::\d{1,2}){0,2})(?=\s|$)"
)
LONG = 10_000
"""Runs with more iterations do not end within two hours."""
HOURS = range(12, 100)
"""Numbers that are usual as hours and unusual as minutes, if nothing but :00 follows."""


def limit(job: Job) -> tuple[Span, float, str] | None:
    """The limit of the job in minutes, with its place and text, as Slurm reads it."""
    document = job.documents[0]
    match = LIMIT.search(document.source.text) if document.kind == "script" else None
    if match is None:
        return None
    parts = [int(part) for part in match["clock"].split(":")]
    if match["days"]:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, minutes, seconds = 0, *(*parts, 0)[:2]
    days = int((match["days"] or "0-")[:-1])
    place = Span(document.source, match.start("days") if match["days"] else match.start("clock"), match.end())
    return place, days * 1440 + hours * 60 + minutes + seconds / 60, (match["days"] or "") + match["clock"]


@rule(
    severity=Severity.WARNING,
    id="megatron/exit-after-limit",
    frameworks=("megatron",),
    reads=("exit_duration_in_mins",),
)
def exit_after_limit(job: Job) -> Iterator[Finding | Unverified]:
    """The run is set to save and exit after the time limit of the batch job.

    ## What it does
    Compares `--exit-duration-in-mins` with the time limit in the `#SBATCH` lines.

    ## Why is this bad?
    The option exists to save a checkpoint before the time limit. If its value exceeds the limit, Slurm ends the job
    first, and everything since the last checkpoint is lost.

    ## Example
        #SBATCH --time=24:00:00
        srun torchrun pretrain_gpt.py --exit-duration-in-mins 2820

    Use instead:

        #SBATCH --time=24:00:00
        srun torchrun pretrain_gpt.py --exit-duration-in-mins 1420

    ## References
    Megatron-LM core_v0.16.0, megatron/training/training.py, checkpoint_and_decide_exit: exit_duration_in_mins
    """
    value = job.arguments.given("exit_duration_in_mins")
    found = limit(job) if value is not None else None
    if value is None or found is None:
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    _, minutes, text = found
    if isinstance(value.raw, int) and value.raw >= minutes > 0:
        message = Message(
            "--exit-duration-in-mins {value} exceeds the time limit of the job, {limit} ({minutes:.0f} minutes)",
            value=value.raw,
            limit=text,
            minutes=minutes,
        )
        yield Finding(message, job.place(value), key=value.key)


@rule(severity=Severity.WARNING, id="megatron/limit-in-minutes", frameworks=("megatron",), reads=("train_iters",))
def limit_in_minutes(job: Job) -> Iterator[Finding]:
    """The time limit of a long run is in minutes and seconds, but hours and minutes seem to be intended.

    ## What it does
    Finds time limits such as `#SBATCH --time=24:00`, from 12:00 to 99:00, in runs of 10,000 iterations or more.

    ## Why is this bad?
    Slurm reads two numbers as minutes and seconds, so the job ends after 24 minutes, not 24 hours.

    ## Example
        #SBATCH --time=24:00
        srun torchrun pretrain_gpt.py --train-iters 100000

    Use instead:

        #SBATCH --time=24:00:00
        srun torchrun pretrain_gpt.py --train-iters 100000

    ## References
    Slurm, man sbatch, --time: "minutes", "minutes:seconds", "hours:minutes:seconds"
    """
    found, a = limit(job), job.arguments
    iterations = a.get("train_iters").raw
    if found is None or a.get("skip_train").raw is True or not isinstance(iterations, int) or iterations < LONG:
        return
    place, minutes, text = found
    shown = text.partition(":")
    if shown[2] == "00" and shown[0].isdecimal() and int(shown[0]) in HOURS:
        message = Message(
            "{text} means {minutes:.0f} minutes, for {count:,} iterations; write {text}:00 for hours",
            text=text,
            minutes=minutes,
            count=iterations,
        )
        yield Finding(message, place)
