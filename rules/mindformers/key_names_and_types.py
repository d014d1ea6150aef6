"""Checks of values of the wrong type, settings with two names, and mappings that are nested too deeply."""

from collections.abc import Callable, Iterator

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, Unverified, Value, known, rule
from preflight.dialects.mindformers.config_kind_and_loading import MAX_NESTING
from preflight.dialects.mindformers.graph_kind_checks import Checked, checked_in
from preflight.dialects.mindformers.mcore_model_config import SECTIONS, Clash
from preflight.dialects.mindformers.release_tables import read_at
from preflight.lint.evaluator import compiled
from preflight.lint.expressions import Expression
from preflight.lint.severity_downgrades import lowered
from preflight.lint.value_kinds import ValueKind, ways
from preflight.loaders.document import Node, Unknown
from preflight.run.arguments import REMOVE
from preflight.run.version_ranges import matches
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import meant_boolean, slips

_NUMBER = lazy_pattern(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d{1,3})?")
_GIGABYTES = lazy_pattern(r"(\d+(?:\.\d*)?|\.\d+)(?:GB?)?")
_CONTEXT = "mindformers/core/context/parallel.py"
_STAGES = "parallel_config.pipeline_stage"
_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "half": "float16", "float": "float32"}
_OTHER_NAMES = {"npu": "Ascend", "cuda": "GPU"}
"""Common names of devices, and the names that the setting uses."""
_DEGREES = ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel", "expert_parallel")
_SIZES = frozenset(f"parallel_config.{size}" for size in _DEGREES)
_STAGE_LINES = {"1.5.0": (63, 62, 109), "1.7.0": (56, 63, 104), "2.1.0": (56, 63, 104)}
_NEEDED = ("num_layers", "vocab_size", "seq_length", "scaling_factor", "theta", "hidden_size", "num_heads")
_NO_DEFAULT = frozenset(f"model.model_config.{name}" for name in _NEEDED)


@rule(id="wrong-type", severity=Severity.ERROR, frameworks=("mindformers",))
def wrong_type(job: Job) -> Iterator[Finding]:
    """The value of a setting has the wrong type, or is not one of the allowed names.

    ## What it does
    Checks every setting whose value graph-mode MindFormers, or the underlying MindSpore, checks before training.
    Degrees must be positive integers, switches must be True or False, `max_device_memory` must be a size like `58GB`,
    and types, formats and modes must be names that exist. Settings that a run does not read are not checked, such as
    `load_ckpt_format` if nothing is loaded, or `device_id` if the launcher chooses the device.

    ## Why is this bad?
    The launch fails once all processes are up. `"2"`, `2.0` and `True` are all rejected if an integer is expected.

    ## Example
        parallel_config:
          data_parallel: "8"

    Use instead:

        parallel_config:
          data_parallel: 8

    ## Fix safety
    Safe if the string or the whole float is replaced by the number or switch that it represents. Unsafe if the fix sets
    a batch setting to the smallest value that works, or removes a setting so that its default applies.

    ## References
    MindFormers v1.5.0, mindformers/modules/transformer/op_parallel_config.py:163, OpParallelConfig
    MindFormers v1.5.0, mindformers/core/context/build_context.py:200, MSContextOperator.set_context
    MindFormers v1.5.0, mindformers/trainer/utils.py:469, check_checkpoint_config_valid
    MindFormers v1.5.0, mindformers/models/utils.py:56, convert_mstype
    MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:59, convert_str_to_mstype
    MindSpore 2.7.1, mindspore/context.py:478, set_device_target; :325, set_ascend_config; mindspore/train/model.py:1329,
    Model.train
    MindFormers v1.5.0, mindformers/trainer/base_trainer.py:278, _check_grad_accumulation_steps
    MindFormers v1.5.0, mindformers/tools/check_rules.py:336, in 1.7.0 mindformers/tools/check_rules.py:332, in 2.1.0
    mindformers/tools/check_rules.py:356, _check_swap, check swap_config.swap again
    """
    for row in checked_in(job.target.version, core=job.arguments.get("kind").raw == "mcore"):
        value = _value(job, row) if row.name in job.touched else None
        if value is not None and row.kind.accepts(value.raw) is False and _is_made(row.when, job):
            yield _bounded(_finding(job, row, value), job, row, value)


def _bounded(finding: Finding, job: Job, row: Checked, value: Value) -> Finding:
    """Makes it a warning if no release is given and some of the possible releases accept the value."""
    releases, core = job.arguments.certainty.releases, job.arguments.get("kind").raw == "mcore"
    alike = [
        release
        for release in releases
        if any(
            other.name == row.name and other.kind.accepts(value.raw) is False
            for other in checked_in(release, core=core)
        )
    ]
    if len(alike) == len(releases):
        return finding
    return lowered(
        finding, Message("applies from {first} on; the keys also fit {oldest}", first=alike[0], oldest=releases[0])
    )


def _is_made(when: Expression | None, job: Job) -> bool:
    """Whether this run certainly makes the check."""
    holds = True if when is None else compiled(when)(job.answers)
    return not isinstance(holds, Unknown) and bool(holds)


def _value(job: Job, row: Checked) -> Value | None:
    """The value written for a setting. A setting of an mcore network may have another name."""
    value = job.arguments.given(row.name)
    if not row.renamed and not row.switched:
        return value
    effective = job.arguments.get(row.name)
    if row.renamed:
        return effective if effective.written else None
    return value.derived(effective.raw, effective.note) if value is not None else None


def _finding(job: Job, row: Checked, value: Value) -> Finding:
    shown = value.setting.span.text[:40] if value.setting else repr(value.raw)
    name = ".".join(map(str, value.key)) if row.renamed else row.name
    shown, words = shown or Message("empty"), row.kind.words
    message = Message("{name} is {shown}; it must be {words}", name=name, shown=shown, words=words)
    fixes = tuple(_fixes(job, row, value))
    fix = next(iter(fixes), None)
    others = tuple(one for one in fixes[1:] if one.offered)  # the same digits with the other sign
    upstream = _upstream(job, row, value)
    return Finding(
        message,
        job.place(value),
        key=value.key,
        fix=fix,
        alternatives=others,
        upstream=upstream,
        layout=row.name in _SIZES,
    )


def _upstream(job: Job, row: Checked, value: Value) -> str:
    """The place where the framework rejects the value: it uses the number of stages before it checks it."""
    text, empty, other = _STAGE_LINES.get(read_at(job.target.version), _STAGE_LINES["1.5.0"])
    parallel = job.arguments.get("use_parallel")
    if row.name == _STAGES and parallel.known and parallel.raw:
        if value.raw is None:
            return f"mindformers/core/parallel_config.py:{empty}"
        if isinstance(value.raw, (str, float)):
            return f"{_CONTEXT}:{text if isinstance(value.raw, str) else other}"
    return row.places.get(read_at(job.target.version), next(iter(row.places.values())))


def _fixes(job: Job, row: Checked, value: Value) -> Iterator[Fix]:
    """The possible replacements, the likeliest first."""
    meant, fewest = _meant(value.raw, row.kind), _fewest(job, row.name)
    if isinstance(meant, int) and isinstance(fewest, int):
        meant = max(meant, fewest)
    if meant is not None and row.kind.takes(meant):
        yield Fix(f"write {meant}", value.becomes(meant), Safety.SAFE)
    yield from _number(value, row.kind)
    if isinstance(value.raw, str) and (near := _near(value.raw, row.kind)) is not None:
        yield Fix(f"write {near}", value.becomes(near))
    if fewest is not None:
        yield Fix(f"write {fewest}", value.becomes(fewest))
    elif row.name not in _NO_DEFAULT:
        yield Fix(f"remove {value.key[-1]}, so that its default applies", value.becomes(REMOVE))


def _number(value: Value, kind: ValueKind) -> Iterator[Fix]:
    """Replaces a string by the number that it represents if the setting expects a number."""
    text = value.raw.strip() if isinstance(value.raw, str) else ""
    if value.setting is not None and _NUMBER.fullmatch(text) and kind.takes(float(text)):
        if "e" in text.lower():
            yield from ways(text, value.key, value.setting.span)
        else:
            yield Fix(f"write {text}", (Edit("splice", value.key, text, value.setting.span),), Safety.SAFE)


def _near(text: str, kind: ValueKind) -> str | None:
    """The most likely of the possible names."""
    if (other := _OTHER_NAMES.get(text.strip().lower())) in kind.choices:
        return other
    found = slips(text.strip(), kind.choices, 0.6)
    return found[0] if len(found) == 1 else None


def _fewest(job: Job, name: str) -> int | str | None:
    """The smallest batch setting that works, and the schedule that always works."""
    stages = known(job.plan.layout.pipeline)
    return {
        "runner_config.batch_size": 1,
        "runner_config.gradient_accumulation_steps": 1,
        "parallel_config.micro_batch_num": stages[0] if stages else 1,
        "parallel.pipeline_config.pipeline_scheduler": "1f1b",
    }.get(name)


def _meant(raw: object, kind: ValueKind) -> object:
    """The value that a string or a whole float represents, or None."""
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    bare = raw.strip() if isinstance(raw, str) else ""
    read = (meant for reading in _READINGS if (meant := reading(bare)) is not None)
    return next((m for m in read if (kind.switch or not isinstance(m, bool)) and kind.takes(m)), None)


def _gigabytes(text: str) -> str | None:
    amount = _GIGABYTES.fullmatch(text.upper().replace(" ", ""))
    return f"{amount[1]}GB" if amount else None


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


_READINGS: tuple[Callable[[str], object], ...] = (_TYPES.get, meant_boolean, _gigabytes, _whole)
"""The values that a string may represent, the likeliest first."""


_FILE = "mindformers/parallel_core/transformer_config_utils.py"


@rule(id="clashing-names", severity=Severity.ERROR, frameworks=("mindformers",))
def clashing_names(job: Job) -> Iterator[Finding | Unverified]:
    """A setting of an mcore model is given under two different names.

    ## What it does
    Resolves the names in `model_config`, in the sections that go into the transformer config, and in the `config.json`
    of `pretrained_model_dir` to the fields they set, and finds fields that are set twice. MindFormers 1.7 always
    rejects this; since 2.0, it is rejected only if the two values differ. The defaults of the model's class also count:
    `num_hidden_layers` has a value even if the file sets only `num_layers`.

    ## Why is this bad?
    The conversion to a transformer config fails, on every rank.

    ## Example
        model_config: {num_layers: 12, num_hidden_layers: 48}

    Use instead:

        model_config: {num_hidden_layers: 12}

    ## Fix safety
    Unsafe: the fix removes the second setting, but the first may not be the intended one. Safe if the fix only renames
    a setting to the name that the model's class uses.

    ## References
    MindFormers v1.7.0, mindformers/parallel_core/transformer_config_utils.py:485, convert_to_transformer_config
    MindFormers 2.1.0, mindformers/parallel_core/transformer_config_utils.py:687, ConfigLogHandler.check_and_raise
    """
    new = matches(job.target.version, ">=2")
    for clash in job.arguments.get("clashes").raw:
        if new and clash.same is None:
            yield Unverified(f"whether {clash.one} and {clash.other} agree")
        if new and clash.same is not False:
            continue
        if clash.default is not None:
            yield from _against_class(job, clash, 687 if new else 485)
            continue
        one, other = _find(job, clash.one), _find(job, clash.other)
        typed = other or one
        if typed is None:
            continue
        fix = (
            Fix(f"remove {clash.other}", other.becomes(REMOVE), Safety.UNSAFE)
            if other is not None and one is not None
            else None
        )
        values = (
            Message(" ({one} and {other})", one=one.raw, other=other.raw)
            if one is not None and other is not None and one.known and other.known
            else ""
        )
        message = Message(
            "{one} and {other} set the same field, {target}{values}",
            one=clash.one,
            other=clash.other,
            target=clash.target,
            values=values,
        )
        related = one.related if one is not None and other is not None else ()
        yield Finding(message, job.place(typed), related, fix, key=typed.key, upstream=f"{_FILE}:{687 if new else 485}")


def _against_class(job: Job, clash: Clash, line: int) -> Iterator[Finding]:
    """The other name is not in the file; the class of the model gives it a value."""
    typed = _find(job, clash.other)
    if typed is None:
        return
    fix = Fix(f"rename it to {clash.one}", (Edit("rename", typed.key, clash.one),), Safety.SAFE)
    shown = Message(" {typed}", typed=typed.raw) if typed.known else ""
    message = Message(
        "{other}{shown} sets the same field as {one}, which the model itself sets to {default}; write {one}",
        other=clash.other,
        shown=shown,
        one=clash.one,
        default=clash.default,
    )
    yield Finding(message, job.place(typed), (), fix, key=typed.key, upstream=f"{_FILE}:{line}")


def _find(job: Job, name: str) -> Value | None:
    places = ("model.model_config", *SECTIONS)
    return next((value for place in places if (value := job.arguments.given(f"{place}.{name}")) is not None), None)


_CHECKS = "mindformers/tools/check_rules.py"
UPSTREAM = {
    "mindformers@1.5.0": f"{_CHECKS}:377",
    "mindformers@1.7.0": f"{_CHECKS}:372",
    "mindformers@2.1.0": f"{_CHECKS}:396",
    "pynative": f"{_CHECKS}:396",
}


@rule(id="nested-too-deep", severity=Severity.ERROR, frameworks=("mindformers", "pynative"))
def nested_too_deep(job: Job) -> Iterator[Finding]:
    """Mappings are nested more deeply than the framework allows.

    ## What it does
    Counts the levels of nested mappings; a list ends the count, as in the framework's own check. The framework rejects
    more than 10 levels.

    ## Why is this bad?
    The framework rejects the file before parsing it, on every rank.

    ## Example
        a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: 1}}}}}}}}}}

    Use a flatter mapping instead.

    ## References
    MindFormers v1.5.0, mindformers/tools/check_rules.py:377, check_yaml_depth_before_loading
    """
    if not matches(job.target.version, ">=1.5"):
        return
    for document in job.documents:
        if document.tree is not None and not document.source.name.endswith(".json"):
            deepest = _deepest(document.tree)
            if deepest is not None:
                message = Message(
                    ("mappings are nested more than {max_nesting} levels deep here"), max_nesting=MAX_NESTING
                )
                yield Finding(message, deepest.span, upstream=job.upstream(UPSTREAM))


def _deepest(tree: Node) -> Node | None:
    """The first mapping that is too deep."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if node.kind == "mapping" and depth >= MAX_NESTING and node.entries:
            return node
        if node.value:
            stack += [(entry.value, depth + 1) for entry in reversed(node.entries) if entry.value.kind == "mapping"]
    return None
