"""Checks for keys of pynative configs that are unknown, ignored, set twice, or of the wrong type."""

from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, rule, schemas
from preflight.dialects.mindformers.pynative_network_fields import NAMES
from preflight.dialects.mindformers.pynative_releases import faults_at, name_at
from preflight.dialects.mindformers.pynative_schema import Fault, schema, strangers
from preflight.dialects.mindformers.release_tables import table
from preflight.lint.value_kinds import LIST, ValueKind
from preflight.loaders.document import Node
from preflight.run.arguments import REMOVE
from preflight.source.source_file import Span

GONE = {
    "data_parallel": "the data-parallel size is derived as devices / (tensor × pipeline × context)",
    "micro_batch_num": "the number of micro-batches is global_batch_size / (data-parallel size × local_batch_size)",
    "gradient_accumulation_steps": "accumulation is global_batch_size / (data-parallel size × local_batch_size)",
    "batch_size": "it is called local_batch_size",
    "epochs": "the length of a run is steps",
    "model_parallel": "it is called tensor_parallel",
    "pipeline_stage": "it is called pipeline_parallel",
    "use_seq_parallel": "it is called sequence_parallel",
    "context_parallel_algo": "it is called context_parallel_method",
    "data_loader": "it is called dataloader",
    "pp_interleave_num": "it is called pipeline_parallel_interleave_num",
    "offset": "layers are placed by pipeline_parallel_layers_per_stage",
    "full_recompute": "it is called full_recompute_layer, with mode full",
    "select_recompute": "it is called select_module, with mode select",
    "recompute": "it is called full_recompute_layer, with mode full",
}
_RENAMED = {
    "batch_size": "local_batch_size",
    "model_parallel": "tensor_parallel",
    "pipeline_stage": "pipeline_parallel",
    "use_seq_parallel": "sequence_parallel",
    "data_loader": "dataloader",
    "pp_interleave_num": "pipeline_parallel_interleave_num",
}


@rule(id="pynative-unknown-key", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_unknown_key(job: Job) -> Iterator[Finding]:
    """A section that accepts only known keys contains a key that pynative mode does not know.

    ## What it does
    Compares the keys of the sections of a pynative config that accept only known keys (training, parallelism,
    checkpoint, train_dataset, context, recompute, recompute_comm, swap, monitor, profiler, lora_config, inference) with
    those of the requested release: 1.9.0, 2.0.0, otherwise 2.1.0. A key that another release has is renamed if this one
    has the same setting under another name.

    ## Why is this bad?
    Loading the file fails.

    ## Example
        parallelism: {tensor_paralel: 2}
    Use instead:
        parallelism: {tensor_parallel: 2}

    ## Fix safety
    Unsafe: the setting takes effect once its key is spelled correctly.

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/config.py:115, BaseConfig.from_dict
    """
    tree = job.documents[0].tree
    for fault in faults_at(tree, job.target.version) if tree is not None else ():
        if fault.kind != "unknown":
            continue
        name, section = str(fault.key[-1]), ".".join(str(part) for part in fault.key[:-1])
        now = name_at(job.target.version, fault.key[:-1], name)
        near = now or (
            _RENAMED.get(name)
            if _RENAMED.get(name) in fault.choices
            else next(iter(get_close_matches(name, fault.choices, 1, 0.75)), None)
            if now is None
            else None
        )
        hint = (
            Message("; it is now {near}", near=now)
            if now
            else Message("; {gone}", gone=GONE[name])
            if name in GONE
            else Message("; did you mean {near}?", near=near)
            if near
            else ""
        )
        fix = (
            Fix(f"rename it to {near}", (Edit("rename", fault.key, near),))
            if near and not _given(job, fault.key, near)
            else None
        )
        yield Finding(
            Message("{section} has no key {name}{hint}", section=section, name=name, hint=hint),
            fault.node.span,
            key=fault.key,
            fix=fix,
            upstream=fault.upstream,
        )


def _given(job: Job, key: tuple[str | int, ...], name: str) -> bool:
    """Whether the section also contains the right name, so that renaming would set it twice."""
    return job.arguments.given(".".join(str(part) for part in (*key[:-1], name))) is not None


_SWITCHES = {"true": True, "false": False, "flase": False, "ture": True, "yes": True, "no": False}


@rule(id="pynative-wrong-type", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_wrong_type(job: Job) -> Iterator[Finding]:
    """A value in a pynative config is missing or has the wrong type.

    ## What it does
    Checks types as the configuration classes do: a bool is not an integer, `2.0` is not an integer, a number field also
    accepts integers but no strings, and null is accepted only if the field allows it. In YAML 1.1, `1e-5` without a dot
    is a string. Also finds missing required fields: model_type, architectures, and the type of the schedule, the reader
    and the callbacks.

    ## Why is this bad?
    Loading the file fails.

    ## Example
        lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1e-5}
    Use instead:
        lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5}

    ## Fix safety
    Safe if the fix only writes the same value with the type that the field accepts. Unsafe if the fix changes a string
    to a list with one element.

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/utils.py:22-113, check_type; config.py:110, BaseConfig.from_dict
    MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:459, of dense_fsdp_shard_size once more
    """
    tree = job.documents[0].tree
    for fault in faults_at(tree, job.target.version) if tree is not None else ():
        if fault.kind == "missing":
            section = ".".join(str(part) for part in fault.key[:-1]) or "the file"
            yield Finding(
                Message("{section} does not set {wanted}", section=section, wanted=fault.wanted),
                _start(job, fault),
                key=fault.key,
                upstream=fault.upstream,
            )
        elif fault.kind == "type":
            name = ".".join(str(part) for part in fault.key)
            yield Finding(
                Message("{name} is {shown}; it must be {wanted}", name=name, shown=_shown(fault), wanted=fault.wanted),
                fault.node.span,
                key=fault.key,
                fix=_fix(fault),
                upstream=fault.upstream,
            )


def _start(job: Job, fault: Fault) -> Span:
    return fault.node.span if len(fault.key) > 1 else job.start


def _shown(fault: Fault) -> str:
    node = fault.node
    if node.kind != "scalar":
        return "a mapping" if node.kind == "mapping" else "a list"
    if node.value is None:
        return "null"
    kind = "the string " if isinstance(node.value, str) else ""
    return f"{kind}{node.span.text[:40]}"


def _fix(fault: Fault) -> Fix | None:
    """The number, switch or string that the value plainly represents in another type, or a list that contains this one
    string."""
    value = fault.node.value
    meant = next((meant for meant in _meanings(fault.node) if _fits(meant, fault.accepted)), None)
    if meant is not None:
        return Fix(f"write {meant}", (Edit("set", fault.key, meant),), Safety.SAFE)
    if isinstance(value, str) and value and fault.accepted == (LIST,):
        return Fix(f"write a list of {value}", (Edit("set", fault.key, [value]),))
    return None


def _fits(meant: object, accepted: tuple[ValueKind, ...]) -> bool:
    """Whether it is certainly the intended value. If the field accepts several kinds, only an integer is
    certain."""
    return any(kind.takes(meant) for kind in accepted) and (len(accepted) == 1 or type(meant) is int)


def _meanings(node: Node) -> Iterator[object]:
    """The values that may be intended, the likeliest first."""
    value = node.value
    if isinstance(value, str):
        bare = value.strip().lower()
        with suppress(ValueError):
            yield float(bare)
        if bare.removeprefix("-").isdecimal():
            yield int(bare)
        if bare in _SWITCHES:
            yield _SWITCHES[bare]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and value.is_integer():
            yield int(value)
        yield str(value)
    elif node.kind == "sequence" and len(node.items) == 1 and isinstance(node.items[0].value, str):
        yield node.items[0].value


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


@rule(id="pynative-ignored-key", severity=Severity.WARNING, sometimes=(Severity.NOTE,), frameworks=("pynative",))
def pynative_ignored_key(job: Job) -> Iterator[Finding]:
    """Pynative mode does not read a top-level section or a key of the model.

    ## What it does
    Finds top-level names that pynative mode does not read, which are misspelled sections or leftover sections of the
    older graph mode, and misspelled keys of `model`. The top level of a pynative config and its `model` section accept
    every name.

    ## Why is this bad?
    At most one line is printed in the log. With `paralellism:`, every parallel degree keeps its default, and the run
    trains with a layout, a batch size or a network that differs from the file.

    ## Example
        paralellism: {tensor_parallel: 2}
    Use instead:
        parallelism: {tensor_parallel: 2}

    ## Fix safety
    Unsafe: the section takes effect once its name is spelled correctly.

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/config.py:114, BaseConfig.from_dict (allow_extra)
    MindFormers 2.1.0, mindformers/parallel_core/config_converter.py, ConfigConverter.convert (unmapped keys)
    """
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
    """Reports keys of the network that do not exist but resemble an existing key."""
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


_CLASSES = {"qwen3": "Qwen3Config", "deepseek_v3": "DeepseekV3Config", "deepseek_v4": "DeepseekV4Config"}
_PLACE = "mindformers/parallel_core/transformer_config_utils.py:687"


@rule(id="pynative-clashing-names", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_clashing_names(job: Job) -> Iterator[Finding]:
    """A network field is set to different values under two of its names.

    ## What it does
    Finds fields of `model` in a pynative config that are set under two of their names (num_nextn_predict_layers and
    mtp_num_layers, num_key_value_heads and num_query_groups) to different values. Equal values are accepted. The
    defaults of the model's class also count: `num_hidden_layers` has a value even if the file sets only `num_layers`.

    ## Why is this bad?
    The conversion of the config fails before the network is created.

    ## Example
        model: {num_key_value_heads: 8, num_query_groups: 4}
    Use instead:
        model: {num_key_value_heads: 8}

    ## Fix safety
    Unsafe: either of the two values may be the intended one. Safe if the fix only renames a setting to the name that
    the model's class uses.

    ## References
    MindFormers 2.1.0, mindformers/parallel_core/transformer_config_utils.py:687, ConfigLogHandler.check_and_raise
    """
    own = table("2.1.0").mcore_models.get(_CLASSES.get(str(job.arguments.get("model.model_type").raw), ""), {})
    for field, names in NAMES.items():
        typed = [value for name in names if (value := job.arguments.given(f"model.{name}")) is not None]
        if len(typed) == 2 and typed[0].raw != typed[1].raw:
            one, other = typed
            message = Message(
                "{name} is {one} and {other_name} is {other}, but both set {field}",
                name=one.key[-1],
                one=one.raw,
                other_name=other.key[-1],
                other=other.raw,
                field=field,
            )
            fix = Fix(f"remove {other.key[-1]}", other.becomes(REMOVE), Safety.UNSAFE)
            yield Finding(message, job.place(other), one.related, fix, key=other.key, upstream=_PLACE)
        elif (
            len(names) > 1
            and len(typed) == 1
            and typed[0].key[-1] != names[0]
            and (usual := own.get(names[0])) not in (None, typed[0].raw)
        ):
            one = typed[0]
            fix = Fix(f"rename it to {names[0]}", (Edit("rename", one.key, names[0]),), Safety.SAFE)
            message = Message(
                "{name} {value} sets the same field as {right}, which the model itself sets to {usual}; write {right}",
                name=one.key[-1],
                value=one.raw,
                right=names[0],
                usual=usual,
            )
            yield Finding(message, job.place(one), (), fix, key=one.key, upstream=_PLACE)
