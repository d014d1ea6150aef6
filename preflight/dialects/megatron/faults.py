"""Faults of parsing as values: what argparse would exit on, worded from what was typed. Rules report them."""

from __future__ import annotations

from functools import cache

from preflight.dialects.megatron.convert import BadValue
from preflight.dialects.megatron.earlier import choice_before, option_before
from preflight.dialects.megatron.table import FILES, OLDER, Flag, Table, table
from preflight.document import Problem, Word
from preflight.source import Span
from preflight.spelling import nearest

UNKNOWN_FLAG, BAD_VALUE, BAD_CHOICE, MISSING_VALUE, STRAY_WORD = "unknown-flag", "bad-value", "bad-choice", "missing-value", "stray-word"

REMOVED = {
    "--DDP-impl": "",
    "--activations-checkpoint-method": "--recompute-method",
    "--checkpoint-num-layers": "--recompute-num-layers",
    "--activations-checkpoint-num-layers": "--recompute-num-layers",
    "--pipeline-model-parallel-split-rank": "",
    "--standalone-embedding-stage": "--account-for-embedding-in-pipeline-split",
    "--encoder-tensor-model-parallel-size": "",
    "--encoder-pipeline-model-parallel-size": "",
    "--no-async-tensor-model-parallel-allreduce": "",
    "--mamba-headdim": "--mamba-head-dim",
    "--mamba-d-state": "--mamba-state-dim",
    "--mamba-ngroups": "--mamba-num-groups",
    "--layernorm-epsilon": "--norm-epsilon",
    "--distribute-checkpointed-activations": "--distribute-saved-activations",
    "--use-nanopipe": "",
    "--ampipe-degree": "",
    "--use-pipe-experts": "",
    "--moe-model-type": "",
    "--fp8": "--fp8-format",
    "--fp8-e4m3": "--fp8-format",
    "--fp8-hybrid": "--fp8-format",
    "--use-fp16": "--fp16",
    "--use-bf16": "--bf16",
    "--gradient-clipping": "--clip-grad",
    "--expert-parallel-size": "--expert-model-parallel-size",
    "--tensor-parallel-size": "--tensor-model-parallel-size",
    "--pipeline-parallel-size": "--pipeline-model-parallel-size",
}
"""Options of older releases, or other tools' names for them, and what took their place ("" for nothing)."""

CLOSE = 0.93
"""From here on a name is a slip of another one; below it may be an option of another release."""


def unknown_flag(options: Table, word: Word) -> tuple[Problem, Flag | None]:
    """An option that the parser does not know: says where it exists, and the option that it may be a slip of."""
    text = word.text or ""
    if (opposite := _opposite(options, text)) is not None:
        said = "on" if opposite.kind == "false" else "off"
        message = f"{options.label} has no option {text}: it is {said} unless {opposite.option} is given"
        return Problem(UNKNOWN_FLAG, message, word.span, word.uses), opposite
    near = _near(options, text)
    elsewhere = _elsewhere(options, text)
    message = f"{options.label} has no option {text}"
    before, in_use = option_before(text)
    if text in REMOVED:
        near = REMOVED[text]
        message += f"; it is {near} now" if near else "; it was removed"
    elif elsewhere:
        message += f"; {_listed(elsewhere)} {'has' if len(elsewhere) == 1 else 'have'} it"
        near = ""
    elif before:
        message += f"; {before} had it"
        near = ""
    elif near:
        message += f"; did you mean {near}"
    close = text in REMOVED or _close(text.replace("_", "-").lower(), near.lower())
    fix = (f"write {near}", word.span, near) if near and close and word.editable else None
    return Problem(UNKNOWN_FLAG, message, word.span, word.uses, fix, before=before, in_use=in_use), options.options.get(near)


def _elsewhere(options: Table, text: str) -> list[str]:
    """Where an option exists: the next release of the framework itself, and any other that is read unasked."""
    own = [known for known in (*FILES, *OLDER) if known[0] == options.framework]
    newer = own[: own.index((options.framework, options.version))]
    first = [known for known in reversed(newer) if text in table(*known).options][:1]
    return [table(*known).label for known in (*first, *(known for known in FILES if known not in newer and text in table(*known).options))]


def _close(typed: str, near: str) -> bool:
    """Whether a name is a slip of another one, and not that name with another short word in it: gpu is no slip of cpu."""
    from difflib import SequenceMatcher

    words, others = typed.split("-"), near.split("-")
    swapped = [(a, b) for a, b in zip(words, others, strict=False) if a != b] if len(words) == len(others) else []
    return SequenceMatcher(None, typed, near).ratio() >= CLOSE and not any(len(a) <= 3 and len(a) == len(b) and sorted(a) != sorted(b) for a, b in swapped)


def _opposite(options: Table, text: str) -> Flag | None:
    """The switch that says the contrary of an option of which only one of the two spellings exists: the nearest name means the opposite."""
    positive = text.startswith("--no-")
    flag = options.options.get(f"--{text[5:]}" if positive else f"--no-{text[2:]}")
    return flag if flag is not None and flag.kind == ("true" if positive else "false") and text not in REMOVED else None


@cache
def _near(options: Table, text: str) -> str:
    """The option that a misspelt one may be, "" when none is like it."""
    hyphens = text.replace("_", "-")
    if hyphens in options.options:
        return hyphens
    if (same := options.lower.get(hyphens.lower())) is not None:
        return same
    alike = [option for option in options.options if option[:5] == hyphens[:5] or option[-5:] == hyphens[-5:]]
    return nearest(hyphens, alike, 0.8) or ""


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bad_value(flag: Flag, name: Word, word: Word, fault: BadValue) -> Problem:
    """A value that the type or the choices of an option refuse."""
    if not fault.choices:
        fix = None
        if flag.kind == "int" and (whole := _whole(word.text or "")) is not None:
            fix = _replacing(word, whole)
        return Problem(BAD_VALUE, f"{name.text} takes {fault.wanted}, not {word.text!r}", word.span, word.uses, fix, crash=fault.crash)
    names = [str(choice) for choice in fault.choices]
    shown = ", ".join(names) if len(names) <= 12 else ", ".join(names[:12]) + ", …"
    lower = {choice.lower(): choice for choice in names}
    near = lower.get((word.text or "").lower()) or nearest(word.text or "", names, 0.78) or ""
    before, in_use = choice_before(flag.option, word.text or "")
    hint = f"; {before} took it" if before else f"; did you mean {near}" if near else ""
    fix = _replacing(word, near) if near else None
    said = f"{name.text} is one of {shown}, not {word.text!r}{hint}"
    return Problem(BAD_CHOICE, said, word.span, word.uses, fix, crash=fault.crash, before=before, in_use=in_use)


def _whole(text: str) -> str | None:
    """The whole number that a text such as "50.0" or "1e3" means, if it means one."""
    try:
        number = float(text)
        return str(int(number)) if number == int(number) and abs(number) < 2**53 else None
    except (ValueError, OverflowError):
        return None


def _replacing(word: Word, text: str) -> tuple[str, Span, str] | None:
    return (f"write {text}", word.span, text) if word.editable else None


def missing_value(flag: Flag, name: Word, given: int) -> Problem:
    """An option at the end, or before another option, that needs a value."""
    wanted = f"{flag.nargs} values" if isinstance(flag.nargs, int) else "at least one value" if flag.nargs == "+" else "a value"
    got = "none is given" if not given else f"{given} given"
    return Problem(MISSING_VALUE, f"{name.text} needs {wanted}, {got}", name.span, name.uses)


def unwanted_value(name: Word, value: Word) -> Problem:
    """A switch with "=value"."""
    return Problem(STRAY_WORD, f"{name.text} is a switch and takes no value, not even {value.text!r}", name.span, name.uses)


def stray_word(word: Word, previous: Word | None) -> Problem:
    """A word that belongs to no option."""
    after = f" after {previous.text}" if previous is not None and previous.text else ""
    return Problem(STRAY_WORD, f"{word.text!r}{after} belongs to no option", word.span, word.uses)
