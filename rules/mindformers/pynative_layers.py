"""Checks of the layers and modules that pynative configs name."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Edit, Finding, Fix, Job, Message, Severity, known, rule

_CONFIG = "mindformers/pynative/config/config.py"


@rule(id="pynative-monitor-layers", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_monitor_layers(job: Job) -> Iterator[Finding]:
    """The expert monitor names invalid layers.

    ## What it does
    Checks `monitor.moe_monitor.target_layers`: a positive number N selects the first N layers, and a list contains
    layer numbers, which start at 0.

    ## Why is this bad?
    Loading the file fails.

    ## Example
        monitor: {moe_monitor: {target_layers: 0}}
    Use instead:
        monitor: {moe_monitor: {target_layers: [0]}}

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/config.py:748-756, MoeMonitorConfig
    """
    value = job.arguments.given("monitor.moe_monitor.target_layers")
    if value is None or isinstance(value.raw, bool):
        return
    if isinstance(value.raw, int) and value.raw <= 0:
        message = Message(
            "target_layers is {value}; the number of leading layers must be positive",
            value=value.raw,
        )
        yield Finding(message, job.place(value), key=value.key, upstream=f"{_CONFIG}:751")
    elif (
        isinstance(value.raw, list)
        and all(isinstance(layer, int) for layer in value.raw)
        and any(layer < 0 for layer in value.raw)
    ):
        yield Finding(
            Message("target_layers names layer {least}, but layer numbers start at 0", least=min(value.raw)),
            job.place(value),
            key=value.key,
            upstream=f"{_CONFIG}:756",
        )


_LINEAR = ("linear_proj", "linear_fc1", "linear_fc2", "experts", "output_layer", "eh_proj")
LAYERS = {
    "deepseek_v3": (
        *_LINEAR,
        "linear_qkv",
        "linear_qb",
        "linear_kvb",
        "linear_wq_b",
        "linear_wk",
        "linear_weights_proj",
    ),
    "deepseek_v4": (
        *_LINEAR,
        "linear_q_down_proj",
        "linear_q_up_proj",
        "linear_kv_proj",
        "linear_wkv",
        "linear_wgate",
        "linear_wq_b",
        "linear_weights_proj",
    ),
    "qwen3": (*_LINEAR, "linear_qkv"),
}
_PATH = (
    "model decoder layers mtp transformer_layer self_attention core_attention mlp shared_experts indexer "
    "compressor router"
)


@rule(id="pynative-lora-targets", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_lora_targets(job: Job) -> Iterator[Finding]:
    """The LoRA targets of a pynative run match no layer of the model.

    ## What it does
    If `lora_config.target_modules` names one module (such as `.*linear_qkv`), compares it with the linear layers and
    expert blocks of the network. More complex expressions are not checked.

    ## Why is this bad?
    The network is built, and then the run fails because the adapter found nothing to adapt.

    ## Example
        model: {model_type: deepseek_v4}
        lora_config: {target_modules: '.*linear_qkv'}
    Use instead:
        model: {model_type: deepseek_v4}
        lora_config: {target_modules: '.*linear_q_up_proj'}

    ## References
    MindFormers 2.1.0, mindformers/pynative/pet/lora_adapter.py:142, build_lora_model; config.py:975, LoraConfig
    """
    value = job.arguments.given("lora_config.target_modules")
    if value is None or not isinstance(value.raw, str):
        return
    try:
        re.compile(value.raw)
    except (re.error, OverflowError, RecursionError) as error:
        message = Message(
            "target_modules {value!r} is not a regular expression: {error}", value=value.raw[:60], error=str(error)
        )
        yield Finding(message, job.place(value), key=value.key, upstream="mindformers/pynative/config/config.py:975")
        return
    names = LAYERS.get(str(job.arguments.get("model.model_type").raw))
    wanted = value.raw.removeprefix(".*").removesuffix(".*").removesuffix("$")
    if names is None or not wanted.isidentifier() or any(wanted in name for name in (*names, *_PATH.split())):
        return
    near = get_close_matches(wanted, names, 1, 0.5)
    hint = Message("; the nearest name is {near}", near=near[0]) if near else ""
    model = job.arguments.get("model.model_type").raw
    message = Message(
        "target_modules {value!r} matches no layer of {model}{hint}", value=value.raw, model=model, hint=hint
    )
    yield Finding(message, job.place(value), key=value.key, upstream="mindformers/pynative/pet/lora_adapter.py:142")


MODULES = (
    *(
        "self_attention",
        "mlp",
        "input_layernorm",
        "pre_mlp_layernorm",
        "pre_cross_attn_layernorm",
        "cross_attention",
        "hidden_states_dropout",
        "add",
    ),
    *("attn_hc", "ffn_hc", "enorm", "hnorm", "eh_proj", "transformer_layer", "final_layernorm", "hc_head"),
)
_OLD = {
    "attention": "self_attention",
    "feed_forward": "mlp",
    "attention_norm": "input_layernorm",
    "ffn_norm": "pre_mlp_layernorm",
}


@rule(id="pynative-select-no-match", severity=Severity.WARNING, frameworks=("pynative",))
def pynative_select_no_match(job: Job) -> Iterator[Finding]:
    """A module that a pynative config recomputes does not exist in any layer.

    ## What it does
    Compares the first part of each path in `select_module` and `exclude_op` with the modules of a decoder layer and of
    a multi-token-prediction layer. Paths that contain regular expressions are not checked.

    ## Why is this bad?
    The run logs one line and continues without the recomputation, so it needs more memory.

    ## Example
        recompute: {mode: select, select_module: {mpl: ["0-15"]}}
    Use instead:
        recompute: {mode: select, select_module: {mlp: ["0-15"]}}

    ## Fix safety
    Unsafe: the run recomputes more, which saves memory and costs time.

    ## References
    MindFormers 2.1.0, mindformers/pynative/distributed/activation_checkpoint.py:582, _expand_select_module
    MindFormers 2.1.0, mindformers/pynative/transformers/transformer_layer.py:142-191, TransformerLayer
    """
    tree = job.documents[0].tree
    for section, name in (
        ("recompute", "select_module"),
        ("recompute", "exclude_op"),
        ("recompute_comm", "select_module"),
    ):
        node = tree.get(section, name) if tree is not None else None
        mode = job.arguments.get("recompute.mode" if section == "recompute" else "recompute_comm.enable").raw
        if node is None or mode in ("None", False) or (mode == "full" and name == "select_module"):
            continue
        for entry in node.entries:
            first = _first(entry.key.value)
            if entry.shadowed or first is None or first in MODULES:
                continue
            near = None if first in _OLD else next(iter(get_close_matches(first, MODULES, 1, 0.6)), None)
            key = (section, name, str(entry.key.value))
            meant = near + str(entry.key.value)[len(first) :] if near else ""
            fix = Fix(f"write {meant}", (Edit("rename", key, meant),)) if meant and node.get(meant) is None else None
            hint = (
                Message("; did you mean {meant}?", meant=meant)
                if meant
                else Message("; here it is {old}", old=_OLD[first])
                if first in _OLD
                else ""
            )
            message = Message(
                "no layer has a module {first}, so {key} is not recomputed{hint}",
                first=first,
                key=entry.key.value,
                hint=hint,
            )
            yield Finding(
                message,
                entry.key.span,
                key=key,
                fix=fix,
                upstream="mindformers/pynative/distributed/activation_checkpoint.py:582",
            )


def _first(path: object) -> str | None:
    """The first module of a path that is simple enough to read; None for a regular expression."""
    match = re.match(r"([A-Za-z_]\w*)(?:$|\\?\.[A-Za-z_])", path) if isinstance(path, str) else None
    return match[1] if match else None


_DIMS = "mindformers/pynative/distributed/parallel_dims.py"


@rule(id="pynative-expert-region", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_expert_region(job: Job) -> Iterator[Finding]:
    """The ranks of a pynative run are not divisible by the expert-parallel size or the FSDP shard size.

    ## What it does
    Expert parallelism uses the shard × context × tensor ranks within one data-parallel replica, so the expert-parallel
    size must divide the product of these sizes, and more replicas do not help. Also finds a `data_parallel_shard` that
    does not divide the data-parallel ranks into whole replicas.

    ## Why is this bad?
    The mesh of the experts or of the dense weights cannot be built, and every rank crashes at startup.

    ## Example
    With 16 devices:
        parallelism: {tensor_parallel: 2, data_parallel_shard: 2, expert_parallel: 8}
    Use instead:
        parallelism: {tensor_parallel: 2, data_parallel_shard: -1, expert_parallel: 8}

    ## References
    MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:127-142, ParallelDims._validate
    """
    a, layout = job.arguments, job.plan.layout
    if a.get("distributed").raw is not True:
        return
    shard, expert = a.get("parallelism.data_parallel_shard"), layout.expert
    split, written = known(layout.data, a.get("data_parallel_replicate")), a.given("parallelism.data_parallel_shard")
    if split is not None and written is not None and split[0] % split[1]:
        message = Message(
            (
                "the data-parallel size {data} is not divisible by the {replicas} replicas that "
                "data_parallel_shard {written} creates"
            ),
            written=written.raw,
            replicas=split[1],
            data=split[0],
        )
        yield Finding(
            message, job.place(written), layout.data.related, key=written.key, upstream=f"{_DIMS}:128", layout=True
        )
        return
    values = known(shard, layout.context, layout.tensor, expert)
    if values is None:
        return
    region = values[0] * values[1] * values[2]
    if region % values[3]:
        message = Message(
            (
                "expert_parallel {expert} is not a divisor of the {region} ranks (shard {shard} × context {context} "
                "× tensor {tensor})"
            ),
            expert=values[3],
            region=region,
            shard=values[0],
            context=values[1],
            tensor=values[2],
        )
        related = (*shard.related, *layout.tensor.related)
        yield Finding(message, job.place(expert), related, key=expert.key, upstream=f"{_DIMS}:142", layout=True)
