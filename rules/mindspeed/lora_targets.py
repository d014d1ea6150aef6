"""Checks of the modules that LoRA is applied to."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.loaders.document import Unknown
from preflight.rules.mindspeed.layer_lists import entries
from preflight.rules.mindspeed.llm_companions import OTHER_NAMES
from preflight.run.version_ranges import matches
from preflight.source.finding import Kind
from preflight.source.spelling import nearest

FILE = "mindspeed_llm/training/utils.py"
SINCE = ">=26"


@rule(
    id="mindspeed-llm/lora-empty-stage",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed-llm",),
    upstream=(f"{FILE}:1180", f"{FILE}:1194"),
    reads=("noop_layers",),
)
def lora_empty_stage(job: Job) -> Iterator[Finding | Unverified]:
    """With LoRA, a pipeline stage or virtual stage contains only empty layers.

    ## What it does
    With `--lora-target-modules` and `--noop-layers`, checks that no pipeline stage, and no virtual stage of
    `--num-layers-per-virtual-pipeline-stage` layers, consists only of empty layers.

    ## Why is this bad?
    Such a stage has no parameters to adapt. MindSpeed-LLM rejects it before it validates the arguments, so every rank
    fails at launch.

    ## Example
    The last stage contains layers 6 and 7, which are both empty.

        --num-layers 8 --pipeline-model-parallel-size 4 --noop-layers 6,7 --lora-target-modules linear_qkv

    Use instead:

        --num-layers 8 --pipeline-model-parallel-size 4 --noop-layers 5,7 --lora-target-modules linear_qkv

    ## References
    MindSpeed-LLM c77308a, mindspeed_llm/training/utils.py:1180 and :1194, check_pipeline_config, which
    mindspeed_llm/features_manager/megatron_basic/training_basic.py:62 calls
    """
    arguments = job.arguments
    noop, targets = arguments.given("noop_layers"), arguments.given("lora_target_modules")
    if noop is None or targets is None or not matches(job.versions["mindspeed-llm"], SINCE):
        return
    layers, stages, chunk = (
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage")
    )
    if (numbers := known(noop, targets, layers, stages)) is None or not chunk.known:
        yield Unverified(next((v.because for v in (noop, targets, layers, stages, chunk) if not v.known), ""))
        return
    text, named, count, pipeline = numbers
    empty = frozenset(entries(text) or ())
    if not named or pipeline < 1:
        return
    if (found := first_empty(empty, count // pipeline, pipeline, chunk.raw or 0)) is not None:
        where, first, last, line = found
        held = (
            Message("layer {first} alone, one", first=first)
            if first == last
            else Message("layers {first} to {last}, all", first=first, last=last)
        )
        message = Message(
            "with LoRA, no stage may be empty, but {where} contains {held} of --noop-layers", where=where, held=held
        )
        yield Finding(message, job.place(noop), stages.related, key=noop.key, upstream=f"{FILE}:{line}", layout=True)


def first_empty(empty: frozenset[int], per_stage: int, pipeline: int, chunk: int) -> tuple[str, int, int, int] | None:
    """The first stage or virtual stage without a real layer: its name, its first and last layer, and the line that
    rejects it."""
    for stage in range(pipeline if per_stage > 0 else 0):
        begin = stage * per_stage
        if empty.issuperset(range(begin, begin + per_stage)):
            return Message("pipeline stage {stage}", stage=stage), begin, begin + per_stage - 1, 1180
        for part in range(per_stage // chunk if chunk > 0 else 0):
            first = begin + part * chunk
            if empty.issuperset(range(first, first + chunk)):
                return (
                    Message("virtual stage {part} of pipeline stage {stage}", part=part, stage=stage),
                    first,
                    first + chunk - 1,
                    1194,
                )
    return None


NAME = "lora_target_modules"
FOREIGN = frozenset(
    [*OTHER_NAMES, *"qkv_proj gate_proj up_proj down_proj c_attn c_proj all-linear wq wk wv wo w1 w2 w3 W_pack".split()]
)
LAYERS = (
    "linear_qkv linear_proj linear_fc1 linear_fc2 linear_q_proj linear_kv_proj linear_qb linear_kvb linear_qgkv "
    "linear_q_down_proj linear_q_up_proj linear_kv_down_proj linear_kv_up_proj linear_q linear_k linear_v linear_o "
    "linear_kv linear_qk_nope linear_qk_rope linear_kv_nope linear_o_down_proj linear_o_up_proj"
).split()
OF_SPECS = {"qwen3_next_spec": frozenset(["q_proj", "k_proj", "v_proj"])}
"""Layers of a specification module that have other names elsewhere."""
SPECS = "mindspeed_llm.tasks.models.spec."
ENTRIES = ("pretrain_gpt.py", "posttrain_gpt.py")


@rule(
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    id="mindspeed-llm/lora-matches-nothing",
    frameworks=("mindspeed-llm",),
    reads=(NAME,),
)
def lora_matches_nothing(job: Job) -> Iterator[Finding | Unverified]:
    """The LoRA targets match no layer of the network.

    ## What it does
    For runs with mcore layers, finds names in `--lora-target-modules` that belong to Hugging Face or older layers,
    several names joined with commas into one word, and misspelled mcore names. Nothing is reported if one of the names
    is unknown. The finding is only a warning if a layer of that name may exist, because a misspelled name may be a
    layer of a fork, and a `--spec` from outside MindSpeed-LLM may build any layer.

    ## Why is this bad?
    peft compares whole names. If none of them is the name of a layer, it raises "Target modules not found in the base
    model" on every rank after the network is built. If only some are, peft skips the others, and the run trains fewer
    adapters than intended.

    ## Example
        --lora-r 8 --lora-target-modules q_proj k_proj v_proj o_proj

    Use instead:

        --lora-r 8 --lora-target-modules linear_qkv linear_proj

    ## References
    MindSpeed-LLM v2.3.0, mindspeed_llm/training/training.py:141, model_provider_func_wrapper
    peft 0.7.1, src/peft/tuners/tuners_utils.py, BaseTuner.inject_adapter
    """
    a = job.arguments
    value, entry = a.given(NAME), a.get("entry").raw
    if value is None or entry not in ENTRIES or a.get("use_legacy_models").raw is not False:
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    names = value.raw if isinstance(value.raw, (list, tuple)) else [value.raw]
    module = _module_of_specs(a.get("spec").raw)
    dead = [str(name) for name in names if _is_no_layer(str(name)) and name not in OF_SPECS.get(module or "", ())]
    slips = [name for name in dead if name not in FOREIGN]
    if dead and len(dead) == len(names):
        template = "mcore has no layer named {names}, so peft finds nothing to adapt{hint}"
        message = Message(template, names=", ".join(dead), hint=_hint(dead))
        sure = module is not None and not any("," not in name for name in slips)
        severity = None if sure else Severity.WARNING
        yield Finding(message, job.place(value), key=value.key, severity=severity)
    elif slips:
        template = "mcore has no layer {names}, so peft ignores the name{hint}"
        message = Message(template, names=slips[0], hint=_hint(slips))
        yield Finding(message, job.place(value), key=value.key, severity=Severity.WARNING)


def _module_of_specs(spec: object) -> str | None:
    """The MindSpeed-LLM module that lists the layers of the model, "" for the layers of mcore; None if another module
    may define them."""
    if spec is None:
        return ""
    first = str(spec[0]) if isinstance(spec, (list, tuple)) and spec else ""
    return first.removeprefix(SPECS) if first.startswith(SPECS) else None


def _is_no_layer(name: str) -> bool:
    known = name.rpartition(".")[2] in LAYERS
    return not known and (name in FOREIGN or "," in name or (name.startswith("linear") and bool(_near(name))))


def _near(name: str) -> str | None:
    return nearest(name, LAYERS, 0.8)


def _hint(names: list[str]) -> Message | str:
    if "," in names[0]:
        return Message("; names are separated by spaces, not by commas")
    near = _near(names[0])
    return Message("; did you mean {near}?", near=near) if near else ""
