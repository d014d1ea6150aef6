"""Nothing reads a top-level section or a key of the model.

## What it does
The top level of a pynative config and its `model` section accept every name. Finds top-level names that pynative does
not read: misspelt sections, and sections of the older graph mode left behind; and misspelt keys of `model`.

## Why is this bad?
There is no message (or one line in the log): `paralellism:` leaves every parallel degree at its default, and the run
trains with another layout, another batch or another network than the file suggests.

## Example
    paralellism: {tensor_parallel: 2}
Use instead:
    parallelism: {tensor_parallel: 2}

## Fix safety
Unsafe: the section starts to count.

## References
MindFormers 2.1.0, mindformers/pynative/config/config.py:114, BaseConfig.from_dict (allow_extra)
MindFormers 2.1.0, mindformers/parallel_core/config_converter.py, ConfigConverter.convert (unmapped keys)
"""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule, schemas
from preflight.dialects.mindformers.pynative_schema import schema, strangers

NOW = {
    "parallel_config": "parallelism",
    "runner_config": "training",
    "recompute_config": "recompute and recompute_comm",
    "swap_config": "swap",
    "lr_schedule": "lr_scheduler",
    "moe_config": "model",
    "monitor_config": "monitor",
    "train_dataset_task": "train_dataset",
    "micro_batch_num": "training.global_batch_size",
    "micro_batch_interleave_num": "training.global_batch_size",
    "gradient_accumulation_steps": "training.global_batch_size",
    "load_checkpoint": "checkpoint.load_path",
    "output_dir": "checkpoint.save_path",
    "profile": "profiler",
    "seed": "training.seed",
}
DEAD = (
    *(
        "use_parallel",
        "parallel",
        "use_legacy",
        "auto_trans_ckpt",
        "resume_training",
        "runner_wrapper",
        "trainer",
        "metric",
        "processor",
    ),
    *(
        "only_save_strategy",
        "src_strategy_path_or_dir",
        "load_ckpt_format",
        "pretrained_model_dir",
        "eval_dataset",
        "do_eval",
        "remote_save_url",
    ),
)


@rule(severity=Severity.WARNING, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    if tree is None:
        return
    sections = tuple(schema()["properties"])
    for entry in strangers(tree):
        name = str(entry.key.value)
        near = None if name in NOW or name in DEAD else next(iter(get_close_matches(name, sections, 1, 0.7)), None)
        told = (
            Message("; in pynative mode this is {now}", now=NOW[name])
            if name in NOW
            else ""
            if name in DEAD
            else Message("; did you mean {near}?", near=near)
            if near
            else ""
        )
        fix = Fix(f"rename it to {near}", (Edit("rename", (name,), near),)) if near and tree.get(near) is None else None
        severity = None if near or name in NOW or name == "parallel" else Severity.NOTE
        yield Finding(
            Message("{name} has no effect in pynative mode{told}", name=name, told=told),
            entry.key.span,
            key=(name,),
            fix=fix,
            severity=severity,
        )
    yield from _model(job)


def _model(job: Job) -> Iterator[Finding]:
    """Keys of the network that are none, but look like one."""
    tree = job.documents[0].tree
    model = tree.get("model") if tree is not None else None
    if model is None:
        return
    for entry in model.entries:
        name = entry.key.value
        if entry.shadowed or not isinstance(name, str) or name in model_keys():
            continue
        near = next(iter(get_close_matches(name, model_keys(), 1, 0.85)), None)
        if near is not None:
            fix = (
                Fix(f"rename it to {near}", (Edit("rename", ("model", name), near),))
                if model.get(near) is None
                else None
            )
            yield Finding(
                Message("the model has no field {name}; did you mean {near}?", name=name, near=near),
                entry.key.span,
                key=("model", name),
                fix=fix,
            )


@lru_cache(maxsize=1)
def model_keys() -> frozenset[str]:
    """Every key of `model` that the networks of pynative mode read."""
    return frozenset(schemas.read("mindformers/pynative-model-keys"))
