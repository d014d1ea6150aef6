"""Parsing faults as values: the errors on which argparse would exit, worded with the user's text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from preflight.dialects.megatron.options import (
    RELEASES,
    Flag,
    Table,
    choice_before,
    option_before,
    releases_with,
    where_an_option_is,
)
from preflight.dialects.megatron.value_conversions import BadValue
from preflight.loaders.document import Problem, Word
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span
from preflight.source.spelling import alike, nearest, slips


def as_it_is(problem: Problem) -> Problem:
    """A problem that is reported unchanged."""
    return problem


def replace_editable(word: Word, editable: bool) -> Word:
    """The word, editable only if a single place holds the whole value."""
    return word if word.editable and editable else word._replace(editable=False)


def from_to(first: Span, last: Span) -> Span:
    """The range between two places, if both are in one text."""
    if first.source is not last.source or last.end < first.start:
        return first
    return Span(first.source, first.start, last.end)


def is_prose(word: Word) -> bool:
    """Whether a word may be part of a phrase, not a number, sign or path."""
    return word.text is None or not re.search(r"[^\w'<>().,-]|[\d\\]", word.text)


def same_placeholder(previous: Word, word: Word) -> bool:
    """Both words come from one variable that the user should have filled in."""
    if not word.uses or previous.uses != word.uses or previous.span.source is not word.span.source:
        return False
    between = word.span.source.text[previous.span.end : word.span.start]
    return (
        previous.span.end < word.span.start and not between.strip(" \t") and not (previous.text or "-").startswith("-")
    )


UNKNOWN_FLAG, BAD_VALUE, BAD_CHOICE, MISSING_VALUE, STRAY_WORD = (
    "unknown-flag",
    "bad-value",
    "bad-choice",
    "missing-value",
    "stray-word",
)

REMOVED = {
    "--DDP-impl": "",
    "--activations-checkpoint-method": "--recompute-method",
    "--checkpoint-num-layers": "--recompute-num-layers",
    "--activations-checkpoint-num-layers": "--recompute-num-layers",
    "--pipeline-model-parallel-split-rank": "",
    "--standalone-embedding-stage": "--account-for-embedding-in-pipeline-split",
    "--use-custom-fsdp": "--use-megatron-fsdp",
    "--keep-fp8-transpose-cache-when-using-custom-fsdp": "--keep-fp8-transpose-cache",
    "--inference-dynamic-batching-max-requests-override": "--inference-dynamic-batching-max-requests",
    "--inference-dynamic-batching-max-tokens-override": "--inference-dynamic-batching-max-tokens",
    "--s3-cache-path": "--object-storage-cache-path",
    "--grpo-default-temperature": "--rl-default-temperature",
    "--grpo-default-top-p": "--rl-default-top-p",
    "--teacher-model-config": "--export-kd-teacher-model-config",
    "--muon-use-nesterov": "--muon-nesterov",
    "--disable-ckpt-fully-parallel-save": "--no-ckpt-fully-parallel-save",
    "--encoder-tensor-model-parallel-size": "",
    "--encoder-pipeline-model-parallel-size": "",
    "--no-async-tensor-model-parallel-allreduce": "",
    "--num-nextn-predict-layers": "--mtp-num-layers",
    "--mtp-loss-scale": "--mtp-loss-scaling-factor",
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
    "--num-key-value-heads": "--num-query-groups",
    "--num-kv-heads": "--num-query-groups",
    "--override-lr-scheduler": "--override-opt_param-scheduler",
    "--use-checkpoint-lr-scheduler": "--use-checkpoint-opt_param-scheduler",
    "--no-scaled-masked-softmax-fusion": "--no-masked-softmax-fusion",
}
"""Options of older releases, or other tools' names for them, and their replacements ("" for none)."""

OTHER_TOOLS = {
    "--adam-epsilon": "--adam-eps",
    "--eval-steps": "--eval-interval",
    "--head-dim": "--kv-channels",
    "--intermediate-size": "--ffn-hidden-size",
    "--learning-rate": "--lr",
    "--logging-steps": "--log-interval",
    "--lora-rank": "--lora-r",
    "--max-grad-norm": "--clip-grad",
    "--max-seq-len": "--seq-length",
    "--max-seq-length": "--seq-length",
    "--max-steps": "--train-iters",
    "--min-learning-rate": "--min-lr",
    "--moe-intermediate-size": "--moe-ffn-hidden-size",
    "--moe-topk": "--moe-router-topk",
    "--num-experts-per-tok": "--moe-router-topk",
    "--num-hidden-layers": "--num-layers",
    "--per-device-train-batch-size": "--micro-batch-size",
    "--resume-from-checkpoint": "--load",
    "--rms-norm-eps": "--norm-epsilon",
    "--rope-theta": "--rotary-base",
    "--save-steps": "--save-interval",
    "--warmup-ratio": "--lr-warmup-fraction",
    "--warmup-steps": "--lr-warmup-iters",
}
"""Names that Transformers, PEFT and other trainers have for the same values."""

MODELOPT = "--export-"
"""Beginnings of ModelOpt's options: before 0.13 they belong to its own scripts."""

_IS_ON = "{parser} has no option {option}, because it is on unless {opposite} is given"
_IS_OFF = "{parser} has no option {option}, because it is off unless {opposite} is given"
_WHOLE_ARRAY = lazy_pattern(r"\$\{\w+\[[@*]\]\}")
CLOSE = 0.93
"""The similarity from which a name counts as a misspelling of another one; a less similar option may come from another
release."""


def unknown_flag(options: Table, word: Word) -> tuple[Problem, Flag | None]:
    """An option that the parser does not know: reports where it exists, and the option that it may be a misspelling
    of."""
    text = word.text or ""
    if (opposite := _opposite(options, text)) is not None:
        template = _IS_ON if opposite.kind == "false" else _IS_OFF
        message = Message(template, parser=options.label, option=text, opposite=opposite.option)
        return Problem(UNKNOWN_FLAG, message, word.span, word.uses, unknown_option=True), opposite
    near = _near(options, text)
    elsewhere = where_an_option_is(text)
    before, in_use = option_before(text)
    hint: str = ""
    replaced = text in REMOVED and (not REMOVED[text] or REMOVED[text] in options.options)
    called = OTHER_TOOLS.get(text.replace("_", "-"), "")
    if called in options.options:
        near, hint = called, Message("; it is called {near} here", near=called)
    elif replaced:
        near = REMOVED[text]
        hint = Message("; it is now {near}", near=near) if near else "; it was removed"
    elif elsewhere:
        hint = _had(elsewhere)
        near = ""
    elif before:
        hint = Message("; {before} had it", before=before)
        near = ""
    elif near:
        hint = Message("; did you mean {near}?", near=near)
    message = Message("{parser} has no option {option}{hint}", parser=options.label, option=text, hint=hint)
    close = replaced or near == called != "" or _close(text.replace("_", "-").lower(), near.lower())
    fix = (f"write {near}", word.span, near) if near and close and word.editable else None
    return Problem(
        UNKNOWN_FLAG, message, word.span, word.uses, fix, before=before, in_use=in_use, unknown_option=True
    ), options.options.get(near)


def of_another_script(options: Table, problem: Problem, frameworks: Iterable[str] = tuple(RELEASES)) -> bool:
    """Whether an option is neither a misspelling nor one that a pretraining script in any release could have: it
    belongs to another entry script."""
    text = problem.span.text
    if problem.kind != UNKNOWN_FLAG or problem.fix is not None or problem.before or text in REMOVED:
        return False
    if _opposite(options, text) is not None:
        return False
    return text.startswith(MODELOPT) or not any(releases_with(framework, text) for framework in frameworks)


def _close(typed: str, near: str) -> bool:
    """Whether a name is a misspelling of another one, and not the same name with a different short word: gpu is not a
    misspelling of cpu."""
    from difflib import SequenceMatcher

    words, others = typed.split("-"), near.split("-")
    swapped = [(a, b) for a, b in zip(words, others, strict=False) if a != b] if len(words) == len(others) else []
    return SequenceMatcher(None, typed, near).ratio() >= CLOSE and not any(
        len(a) <= 3 and len(a) == len(b) and sorted(a) != sorted(b) for a, b in swapped
    )


def _opposite(options: Table, text: str) -> Flag | None:
    """The opposite switch of an option of which only one spelling exists: the nearest name has the opposite meaning."""
    positive = text.startswith("--no-")
    flag = options.options.get(f"--{text[5:]}" if positive else f"--no-{text[2:]}")
    return flag if flag is not None and flag.kind == ("true" if positive else "false") and text not in REMOVED else None


@lru_cache(maxsize=4096)
def _near(options: Table, text: str) -> str:
    """The option that a misspelt one probably means, "" if none is similar."""
    hyphens = text.replace("_", "-")
    if hyphens in options.options:
        return hyphens
    if (same := options.lower.get(hyphens.lower())) is not None:
        return same
    found = alike(hyphens, options.alike(hyphens), 0.8)
    same_head = (name for name in found if _head(name) == _head(hyphens))
    return next(same_head, "") or next((name for name in found if _may_mean(hyphens, name)), "")


def _head(option: str) -> str:
    return option.lstrip("-").partition("-")[0]


def _may_mean(typed: str, name: str) -> bool:
    """Whether the first words of two options are similar, or one option lacks words of the other: --wandb-group does
    not mean --n-group."""
    words, others = set(typed.lstrip("-").split("-")), set(name.lstrip("-").split("-"))
    return words <= others or others <= words or nearest(_head(typed), (_head(name),)) is not None


def _had(parsers: list[str]) -> Message:
    *first, last = parsers
    return Message("; {first} and {last} have it" if first else "; {last} has it", first=tuple(first), last=last)


def bad_value(flag: Flag, name: Word, word: Word, fault: BadValue) -> Problem:
    """A value that the type or the choices of an option reject."""
    if not fault.choices:
        fix = None
        if flag.kind == "int" and (whole := _whole(word.text or "")) is not None:
            fix = _replacing(word, whole)
        message = Message(
            "{option} takes {wanted}, not {value!r}", option=name.text, wanted=fault.wanted, value=word.text
        )
        return Problem(BAD_VALUE, message, word.span, word.uses, fix, crash=fault.crash)
    names = [str(choice) for choice in fault.choices]
    shown = tuple(names) if len(names) <= 12 else (*names[:12], "…")
    meant = slips(word.text or "", names)
    near = meant[0] if len(meant) == 1 else ""
    before, in_use = choice_before(flag.option, word.text or "")
    hint = (
        Message("; {before} accepted it", before=before)
        if before
        else Message("; did you mean {near}?", near=near)
        if near
        else ""
    )
    fix = _replacing(word, near) if near else None
    message = Message(
        "{option} must be one of {choices}, not {value!r}{hint}",
        option=name.text,
        choices=shown,
        value=word.text,
        hint=hint,
    )
    return Problem(BAD_CHOICE, message, word.span, word.uses, fix, crash=fault.crash, before=before, in_use=in_use)


def _whole(text: str) -> str | None:
    """The integer meant by a text such as "50.0" or "1e3", if any."""
    try:
        number = float(text)
        return str(int(number)) if number == int(number) and abs(number) < 2**53 else None
    except (ValueError, OverflowError):
        return None


def _replacing(word: Word, text: str) -> tuple[str, Span, str] | None:
    return (f"write {text}", word.span, text) if word.editable else None


def missing_value(flag: Flag, name: Word, given: int) -> Problem:
    """An option that needs a value, at the end or before another option."""
    some = "at least one value" if flag.nargs == "+" else "a value"
    wanted = Message("{count} values", count=flag.nargs) if isinstance(flag.nargs, int) else some
    template = "{option} needs {wanted}, {given} given" if given else "{option} needs {wanted}, but has no value"
    message = Message(template, option=name.text, wanted=wanted, given=given)
    return Problem(MISSING_VALUE, message, name.span, name.uses)


def unwanted_value(name: Word, value: Word) -> Problem:
    """A switch with "=value"."""
    message = Message(
        ("{option} is a switch and takes no value, but {value!r} follows it"), option=name.text, value=value.text
    )
    return Problem(STRAY_WORD, message, name.span, name.uses)


def split_element(option: Word | None, previous: Word, word: Word) -> Problem | None:
    """A quoted array element that splits if the array is expanded without quotes."""
    use = word.uses[-1] if word.uses else None
    source, start = previous.span.source, previous.span.start
    if (
        use is None
        or previous.uses != word.uses
        or not _WHOLE_ARRAY.fullmatch(use.text)
        or word.span.source is not source
    ):
        return None
    quote = source.text[start - 1 : start]
    end = source.text.find(quote, word.span.end) if quote in ("'", '"') and quote else -1
    text = source.text[start:end] if end >= 0 else ""
    if (
        not 0 < word.span.start - previous.span.end < len(text)
        or "\n" in text
        or use.source.text[use.start - 1 : use.start] == '"'
    ):
        return None
    template = "{text!r} of {option} is split into {count} words, because {array} is not quoted"
    given = option.text if option is not None else ""
    message = Message(template, text=text, option=given, count=len(text.split()), array=use.text)
    fix = (f'write "{use.text}"', use, f'"{use.text}"')
    return Problem(STRAY_WORD, message, previous.span._replace(end=end), (use,), fix, (given,) if given else ())


def stray_word(word: Word, previous: Word | None) -> Problem:
    """A word that no option accepts."""
    before = previous.text if previous is not None else ""
    template = "unexpected argument {word!r} after {before}" if before else "unexpected argument {word!r}"
    return Problem(STRAY_WORD, Message(template, word=word.text, before=before), word.span, word.uses)
