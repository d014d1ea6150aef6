"""A setting holds a value of a sort that the framework refuses.

## What it does
Checks the sort of every setting that graph-mode MindFormers, or MindSpeed's counterpart MindSpore below it, checks before
training: degrees must be whole numbers of at least 1, switches must be True or False, `max_device_memory` a size like `58GB`,
types, formats and modes one of the names that exist. What a run does not read is not judged: `load_ckpt_format` where nothing is
loaded, `device_id` where the launcher chooses the device.

## Why is this bad?
The launch is rejected once all processes are up. `"2"`, `2.0` and `True` are all refused where a whole number is due.

## Example
    parallel_config:
      data_parallel: "8"

Use instead:

    parallel_config:
      data_parallel: 8

## Fix safety
Safe where the text or the whole float is replaced by the value that it spells. Unsafe where a batch setting becomes the smallest that works,
or where a setting is left out so that its default holds.

## References
MindFormers v1.5.0, mindformers/modules/transformer/op_parallel_config.py:163, OpParallelConfig
MindFormers v1.5.0, mindformers/core/context/build_context.py:200, MSContextOperator.set_context
MindFormers v1.5.0, mindformers/trainer/utils.py:469, check_checkpoint_config_valid
MindFormers v1.5.0, mindformers/models/utils.py:56, convert_mstype
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:59, convert_str_to_mstype
MindSpore 2.7.1, mindspore/context.py:478, set_device_target; :325, set_ascend_config; mindspore/train/model.py:1329, Model.train
MindFormers v1.5.0, mindformers/trainer/base_trainer.py:278, _check_grad_accumulation_steps
MindFormers v1.5.0, mindformers/tools/check_rules.py:336, in 1.7.0 mindformers/tools/check_rules.py:332, in 2.1.0
mindformers/tools/check_rules.py:356, _check_swap, say the same of swap_config.swap once more
"""

import re
from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Safety, Severity, Value, known, rule
from preflight.arguments import REMOVE
from preflight.constraints.versions import matches
from preflight.dialects.mindformers.mcore import PARTS, has_part
from preflight.dialects.mindformers.types import CHOICES, WORDS, Sort, applying, fits
from preflight.spelling import float_of_yaml, meant_boolean, nearest

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d{1,3})?")
_CONTEXT = "mindformers/core/context/parallel.py"
_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "half": "float16", "float": "float32"}
_SIZES = frozenset(f"parallel_config.{size}" for size in ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel", "expert_parallel"))
_STAGE = {"1.5.0": (63, 62, 109), "1.7.0": (56, 63, 104), "2.1.0": (56, 63, 104)}


_NO_DEFAULT = tuple(f"model.model_config.{name}" for name in ("num_layers", "vocab_size", "seq_length", "scaling_factor", "theta", "hidden_size", "num_heads"))


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    version = job.target.version
    for sort in applying(version):
        value = _value(job, sort) if sort.name in job.touched else None
        if value is None or not value.known or not _active(job, sort):
            continue
        if sort.name == "parallel_config.vocab_emb_dp":
            value = value.derived(job.arguments.get(sort.name).raw, "")
        if value.known and not fits(sort.sort, value.raw, version):
            yield _finding(job, sort, value)


def _value(job: Job, sort: Sort) -> Value | None:
    """What was typed for a setting; one of an mcore network may be called otherwise."""
    if not sort.name.startswith("mcore."):
        return job.arguments.given(sort.name)
    value = job.arguments.get(sort.name)
    return value if value.written else None


def _active(job: Job, sort: Sort) -> bool:
    """Whether the check is made in this run."""
    get = job.arguments.get
    if sort.when == "parallel":
        return bool(get("use_parallel").raw) if get("use_parallel").known else False
    if sort.when == "training":
        return get("training").raw is True
    if sort.when == "built":
        return get("training").raw is True or matches(job.target.version, ">=1.5")
    if sort.when == "sunk":
        return get("training").raw is True and get("runner_config.sink_mode").known and bool(get("runner_config.sink_mode").raw)
    if sort.when == "profiled":
        return get("training").raw is True and get("profile").raw is True and get("runner_config.sink_mode").raw is True
    if sort.when == "swap":
        return get("swap_config.swap").raw is True
    if sort.when == "ascend":
        return get("context.device_target").raw in ("Ascend", None)
    if sort.when == "alone":
        return get("use_parallel").raw is False
    if sort.when == "loading":
        return isinstance(path := get("load_checkpoint").raw, str) and path != ""
    if sort.when in ("glm", "grouped glm"):
        glm = get("kind").raw == "legacy" and get("model.model_config.type").raw == "ChatGLM2Config"
        return glm and (sort.when == "glm" or get("model.model_config.multi_query_attention").raw is True)
    if sort.when == "served":
        return bool(get("kind").raw == "mcore" and get("run_mode").raw == "predict")
    if sort.when in PARTS:
        return get("kind").raw == "mcore" and get("training").raw is True and has_part(job.arguments, sort.when)
    if sort.when in ("mcore", "legacy"):
        return bool(get("kind").raw == sort.when)
    if sort.when == "yarn":
        return _family(job) and str(get("model.model_config.extend_method").raw).lower() == "yarn"
    if sort.when == "widened":
        return _family(job) and get("model.model_config.intermediate_size").raw is None
    if sort.when == "layered":
        return get("kind").raw == "legacy" and job.plan.model.family.raw in ("llama", "glm", "deepseek")
    return _family(job) if sort.when == "llama" else True


def _family(job: Job) -> bool:
    return job.arguments.get("kind").raw == "legacy" and job.arguments.get("model.model_config.type").raw in ("LlamaConfig", "InternLM2Config")


def _finding(job: Job, sort: Sort, value: Value) -> Finding:
    shown = value.setting.span.text[:40] if value.setting else repr(value.raw)
    where = sort.places.get(job.target.version, next(iter(sort.places.values())))
    if sort.name == "parallel_config.pipeline_stage":
        where = _stage_place(job, value) or where
    fix = None
    meant = _meant(value.raw)
    fewest = _least(job, sort.name)
    if isinstance(meant, int) and isinstance(fewest, int) and meant < fewest:
        meant = fewest
    if meant is not None and (not isinstance(meant, bool) or "bool" in sort.sort) and fits(sort.sort, meant, job.target.version):
        fix = Fix(f"write {meant}", value.becomes(meant), Safety.SAFE)
    elif (number := _number(value, sort.sort)) is not None:
        fix = number
    elif isinstance(value.raw, str) and (switch := meant_boolean(value.raw.strip().lower())) is not None and fits(sort.sort, switch, job.target.version):
        fix = Fix(f"write {switch}", value.becomes(switch))
    elif isinstance(value.raw, str) and (near := _near(value.raw, sort.sort)) is not None:
        fix = Fix(f"write {near}", value.becomes(near))
    elif fewest is not None:
        fix = Fix(f"write {fewest}", value.becomes(fewest))
    elif sort.name not in _NO_DEFAULT:
        fix = Fix(f"leave {value.key[-1]} out, so that its default holds", value.becomes(REMOVE))
    name = ".".join(map(str, value.key)) if sort.name.startswith("mcore.") else sort.name
    message = f"{name} is {shown or 'empty'}; it must be {WORDS[sort.sort]}"
    return Finding(message, job.place(value), key=value.key, fix=fix, upstream=where, layout=sort.name in _SIZES)


def _number(value: Value, sort: str) -> Fix | None:
    """Writes a number as it is spelled where one is due."""
    text = value.raw.strip() if isinstance(value.raw, str) else ""
    if value.setting is None or not _NUMBER.fullmatch(text) or not fits(sort, float(text), ""):
        return None
    spelled = float_of_yaml(text) if "e" in text.lower() else text
    return Fix(f"write {spelled}", (Edit("splice", value.key, spelled, value.setting.span),), Safety.SAFE)


def _near(text: str, sort: str) -> str | None:
    """The text that was most likely meant, of those that the sort allows."""
    choices = CHOICES.get(sort.removesuffix(" or null"), ())
    by_lower = {choice.lower(): choice for choice in choices}
    return by_lower.get(nearest(text.strip().lower(), by_lower) or "")


def _stage_place(job: Job, value: Value) -> str | None:
    """The number of stages is used before it is checked."""
    text, empty, other = _STAGE.get(job.target.version, _STAGE["1.5.0"])
    if not (switch := job.arguments.get("use_parallel")).known or not switch.raw:
        return None
    if isinstance(value.raw, str):
        return f"{_CONTEXT}:{text}"
    if value.raw is None:
        return f"mindformers/core/parallel_config.py:{empty}"
    return f"{_CONTEXT}:{other}" if isinstance(value.raw, float) else None


def _least(job: Job, name: str) -> int | str | None:
    """The smallest batch setting that works, and the schedule that always does."""
    stages = known(job.plan.layout.pipeline)
    least = {"runner_config.batch_size": 1, "runner_config.gradient_accumulation_steps": 1, "parallel_config.micro_batch_num": stages[0] if stages else 1}
    if name == "parallel.pipeline_config.pipeline_scheduler":
        return "1f1b"
    return least.get(name)


def _meant(raw: object) -> object:
    """The value that a text or a whole float spells, or None."""
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if not isinstance(raw, str):
        return None
    bare = raw.strip()
    if bare in _TYPES:
        return _TYPES[bare]
    if (switch := meant_boolean(bare)) is not None:
        return switch
    if bare.upper().replace(" ", "").removesuffix("B").removesuffix("G").replace(".", "", 1).isdigit() and bare.upper().rstrip("B").endswith("G"):
        return f"{bare.upper().replace(' ', '').removesuffix('B').removesuffix('G')}GB"
    return int(bare) if bare.isdigit() else None
