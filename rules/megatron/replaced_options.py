"""Options of older releases whose replacement takes different values or needs an additional option."""

from __future__ import annotations

from collections.abc import Mapping

from preflight import Edit, Fix, Job, Message
from preflight.loaders.document import Problem
from preflight.rules.megatron.parsing_faults import problems, renamed

RECOMPUTE: Mapping[str, str] = {
    "--activations-checkpoint-method": "recompute_method",
    "--activations-checkpoint-num-layers": "recompute_num_layers",
    "--checkpoint-num-layers": "recompute_num_layers",
    "--distribute-checkpointed-activations": "distribute_saved_activations",
}
"""The options for recomputing whole layers from before --recompute-granularity existed, and their current names."""
WHOLE_LAYERS: Mapping[str, object] = {
    "recompute_granularity": "full",
    "recompute_method": "uniform",
    "recompute_num_layers": 1,
}
"""The values that they implied together if no others were given."""
VALUES: Mapping[str, tuple[str, str]] = {"--fp8-e4m3": ("fp8", "e4m3"), "--fp8-hybrid": ("fp8", "hybrid")}
"""Switches whose successor takes a value."""
COMPANIONS: Mapping[str, tuple[str, object]] = {
    "--num-key-value-heads": ("group_query_attention", True),
    "--num-kv-heads": ("group_query_attention", True),
}
"""Options whose successor has no effect without another one."""
WARMUPS = ("lr_warmup_fraction", "lr_warmup_iters", "lr_warmup_samples")


def replaced(job: Job, problem: Problem) -> Fix | None:
    """The fix for a renamed option, including the options that its new form needs."""
    text = problem.span.text
    if problem.fix is None:
        return None
    if text in RECOMPUTE:
        return _recomputed(job)
    if text in VALUES:
        name, value = VALUES[text]
        return None if job.arguments.given(name) else _fix(job, {}, {text}, {name: value})
    fix = renamed(job, problem)
    if fix is None or text not in COMPANIONS:
        return fix
    companion, with_value = COMPANIONS[text]
    if job.arguments.given(companion):
        return fix
    title = Message("write {options:and}", options=(problem.fix[2], job.arguments.spell(companion)))
    return fix._replace(title=title, edits=(*fix.edits, *job.arguments.put(companion, with_value)))


def replaced_value(job: Job, problem: Problem) -> Fix | None:
    """The fix for a value that an option took under its old meaning: --warmup was a share of the run."""
    old = job.arguments.written.get("warmup")
    if old is None or old.span != problem.span or any(job.arguments.given(one) for one in WARMUPS):
        return None
    try:
        share = float(problem.span.text)
    except ValueError:
        return None
    document = job.documents[0]
    key = ("MODEL_ARGS", "--warmup") if document.kind == "yaml" else ("--warmup",)
    edit = Edit("rename", key, "--lr-warmup-fraction", run=document.run)
    return Fix("write --lr-warmup-fraction", (edit,)) if 0 <= share < 1 else None


def _recomputed(job: Job) -> Fix | None:
    """All recomputation options at once: a single one recomputes nothing, or is refused."""
    old = [problem.span.text for problem in problems(job, "unknown-flag") if problem.span.text in RECOMPUTE]
    switch = job.arguments.given("checkpoint_activations")
    names = {RECOMPUTE[option] for option in old}
    if len(names) < len(old) or any(job.arguments.given(name) for name in (*names, "recompute_activations")):
        return None
    if names == {"recompute_num_layers"} and not switch and not job.arguments.given("recompute_granularity"):
        return None  # a number of layers alone never caused any recomputation
    missing = {
        name: value for name, value in WHOLE_LAYERS.items() if name not in names and job.arguments.given(name) is None
    }
    gone = {job.arguments.spell("checkpoint_activations")} if switch else set()
    return _fix(job, {option: job.arguments.spell(RECOMPUTE[option]) for option in old}, gone, missing)


def _fix(job: Job, names: Mapping[str, str], gone: set[str], values: Mapping[str, object]) -> Fix | None:
    """Options that are renamed, options that are removed, and arguments that get a value."""
    document = job.documents[0]
    before = ("MODEL_ARGS",) if document.kind == "yaml" else ()
    renames = tuple(Edit("rename", (*before, old), new, run=document.run) for old, new in names.items())
    removals = tuple(Edit("remove", (*before, option), run=document.run) for option in gone)
    written = [job.arguments.put(name, value) for name, value in values.items()]
    if not all(written):
        return None
    texts = [*names.values(), *(" ".join((job.arguments.spell(name), str(value))) for name, value in values.items())]
    title = Message("write {options:and}", options=tuple(texts))
    return Fix(title, (*renames, *removals, *(edit for edits in written for edit in edits)))
